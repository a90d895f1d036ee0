"""Calculates on the host those results of a function compiled by JAX that depend only on few numbers that the host
knows, such as counters of steps and the number of what a mask selects, and writes them to the memory of the virtual GPU.
Values that it does not compute are taken to be finite, and as a whole equal to what they are compared with."""

import ctypes
import functools
import math
import operator
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
from headroom_known import comparisons
from jax._src import config, core, dtypes, pjit
from jax._src.api import jit
from jax._src.array import ArrayImpl
from jax._src.interpreters import partial_eval

MOST_NUMBERS = 4096  # whole numbers or flags of an operand
MOST_BYTES = 64 << 10  # of a result, since the virtual GPU keeps no larger copies
MOST_ELEMENTS = 1 << 24  # of what is calculated in between
UNKNOWN, KNOWN = "unknown", "known"
HOLDS = "holds"  # a comparison that holds for all elements if what is compared is equal, or 0
CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters of a call of another function
CALLED = {"jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call",
          "custom_vjp_call_jaxpr"}
COMPARED = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
NOT_STRICT = {"le", "ge", "eq"}
ALIKE = {"and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert}  # of operands that have one value everywhere
ALIKE.update(dict.fromkeys(("broadcast_in_dim", "convert_element_type", "copy", "reduce_and", "reduce_or", "reshape",
                            "squeeze", "transpose"), lambda value: value))
COMPILED_SOON = {"xla_backend_optimization_level": 0}
if jax.__version_info__ >= (0, 6):
    COMPILED_SOON["xla_cpu_use_fusion_emitters"] = False
CANNOT = (RuntimeError, TypeError, ValueError)  # what JAX raises for operations that a processor has not
VALUE = "_headroom_value"  # attribute of an array: a value that it has everywhere, or HOLDS

read = ArrayImpl._value.fget
driver = ctypes.CDLL(None)


class Working(threading.local):
    """`active`: whether the host is calculating."""

    active = False


working = Working()


def is_known(array):
    """Whether a program that reads an array gets what it would get from a real card."""
    if isinstance(getattr(array, VALUE, None), np.ndarray):
        return True
    return all(
        part.nbytes == 0 or part.platform() != "gpu" or
        driver.headroom_gpu_knows(ctypes.c_void_p(part.unsafe_buffer_pointer()), ctypes.c_size_t(part.nbytes))
        for part in (shard.data for shard in array.addressable_shards))


def everywhere(value, aval):
    return np.broadcast_to(np.asarray(value, aval.dtype), aval.shape)


def is_everywhere(value):
    """Whether an array of NumPy has one value in all places, as far as its form tells."""
    return isinstance(value, (np.ndarray, np.generic)) and value.size > 0 and not any(value.strides)


def is_unknown(value):
    return value is UNKNOWN or value is HOLDS


def can_be_known(aval):
    """Whether the host follows the values of such an operand."""
    if not isinstance(aval, core.ShapedArray) or dtypes.issubdtype(aval.dtype, dtypes.extended):
        return False  # such as keys of random numbers
    is_number = dtypes.issubdtype(aval.dtype, np.inexact)
    return math.prod(aval.shape) <= (1 if is_number else MOST_NUMBERS)


def value_of(operand, aval):
    """Returns the value of an operand on the host, or HOLDS or UNKNOWN."""
    if isinstance(operand, jax.Array):
        held = getattr(operand, VALUE, None)
        if held is not None:
            return held
    if not can_be_known(aval):
        return UNKNOWN
    if not isinstance(operand, jax.Array):
        return np.asarray(operand, aval.dtype)
    if operand.is_deleted() or not (operand.is_fully_addressable or operand.is_fully_replicated):
        return UNKNOWN
    operand.block_until_ready()
    return read(operand) if is_known(operand) else UNKNOWN


def kind_of(operand, value):
    """Returns what a slice is chosen by: whether the value is known, or a value that tells how comparisons with unknown
    ones end: one that is the same everywhere, an infinite number, or a 0 that the program gives as a number."""
    if is_unknown(value):
        return value
    is_telling = is_everywhere(value) and (
        value.ndim > 0 or is_infinite(value[()]) or not isinstance(operand, jax.Array) and value == 0)
    return value.flat[0].item() if is_telling else KNOWN


def constant(value, aval):
    """Returns the value of a literal or of another constant of a function."""
    if isinstance(value, jax.Array):
        return value_of(value, aval)
    return np.asarray(value, getattr(value, "dtype", aval.dtype))


def without_sharding(aval):
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def outside_of_meshes(work):
    """Does work in a thread of its own, for which the program has set no mesh of GPUs."""
    is_wide = jax.config.jax_enable_x64

    def do_work():
        working.active = True
        with config.enable_x64(is_wide):
            return work()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(do_work).result()


class Slice:
    """The part of a function's calculations whose results are known. `kinds`: what is known of each operand.
    `results`: of each result of the function KNOWN, HOLDS, UNKNOWN, or its value."""

    def __init__(self, closed, name, kinds):
        self.compares = False  # whether values that are not known are taken as equal
        self.results = []
        avals = closed.in_avals

        def calculate(*known):
            left = iter(known)
            given = [kind if is_unknown(kind) else next(left) if kind is KNOWN else everywhere(kind, aval)
                     for kind, aval in zip(kinds, avals)]
            found = self._called(name, closed.jaxpr, closed.consts, given)
            self.results = [KNOWN if isinstance(value, core.Tracer) else value for value in found]
            return [value for value in found if isinstance(value, core.Tracer)]

        followed = [aval for kind, aval in zip(kinds, avals) if kind is KNOWN]
        self._traced = outside_of_meshes(lambda: jax.make_jaxpr(calculate)(*map(without_sharding, followed)))
        self.tells = any(result is not UNKNOWN for result in self.results)

    @functools.cached_property
    def _compiled(self):
        consts = self._traced.consts
        operands = list(map(without_sharding, self._traced.in_avals))
        needed, are_used, _ = partial_eval.dce_jaxpr_consts(
            self._traced.jaxpr, [True] * len(self._traced.out_avals), [False] * len(consts) + [True] * len(operands))
        consts = [value for value, is_used in zip(consts, are_used) if is_used]
        place = jax.sharding.SingleDeviceSharding(jax.local_devices(backend="cpu")[0])
        function = jit(core.jaxpr_as_fun(core.ClosedJaxpr(needed, consts)), in_shardings=place, out_shardings=place)
        return outside_of_meshes(lambda: function.lower(*operands).compile(COMPILED_SOON))

    def values(self, operands):
        """Returns the results of the function for operands of which the known ones are given."""
        calculated = iter(self._compiled(*operands) if self._traced.out_avals else ())
        return [np.asarray(next(calculated)) if result is KNOWN else result for result in self.results]

    def _called(self, name, jaxpr, consts, given):
        """Returns the results of a function."""
        if name == "isclose" and any(map(is_unknown, given)):  # also a part of allclose
            self.compares = True
            return [everywhere(True, output.aval) for output in jaxpr.outvars]
        values = dict(zip(jaxpr.invars, given))
        values.update((variable, constant(value, variable.aval)) for variable, value in zip(jaxpr.constvars, consts))

        def value(atom):
            return constant(atom.val, atom.aval) if isinstance(atom, core.Literal) else values[atom]

        for equation in jaxpr.eqns:
            values.update(zip(equation.outvars, self._results(equation, list(map(value, equation.invars)))))
        return list(map(value, jaxpr.outvars))

    def _results(self, equation, operands):
        """Returns the results of one operation."""
        name, parameters, outputs = equation.primitive.name, equation.params, equation.outvars
        if name in CALLED:
            inner = next(parameters[key] for key in CALLS if key in parameters)
            return self._called(parameters.get("name"), getattr(inner, "jaxpr", inner), getattr(inner, "consts", []),
                                operands)
        if name == "cond":
            return self._chosen(parameters["branches"], *operands)
        if name == "shard_map":
            return self._sharded(parameters["jaxpr"], outputs)
        if any(map(is_unknown, operands)):
            return [self._assumed(equation, operands) if len(outputs) == 1 else UNKNOWN for _ in outputs]
        if name in ALIKE and all(is_everywhere(operand) for operand in operands):
            return [everywhere(ALIKE[name](*[operand.flat[0] for operand in operands]), outputs[0].aval)]
        if equation.effects or "mesh" in parameters or "callback" in name or not all(map(is_small, outputs)):
            return [UNKNOWN] * len(outputs)
        operands = [jax.lax.full(operand.shape, operand.flat[0]) if is_everywhere(operand) and operand.size > 1 else
                    operand for operand in operands]  # instead of constants that take memory
        found = equation.primitive.bind(*operands, **parameters)
        return found if equation.primitive.multiple_results else [found]

    def _chosen(self, branches, index, *operands):
        """Returns the results of a choice between functions."""
        if is_everywhere(index):
            branches = [branches[min(max(int(index), 0), len(branches) - 1)]]
        found = zip(*[self._called(None, branch.jaxpr, branch.consts, operands) for branch in branches])
        if len(branches) == 1:
            return [values[0] for values in found]
        return [UNKNOWN if any(map(is_unknown, (index, *values))) else jax.lax.select_n(
            jax.lax.clamp(np.int32(0), index, np.int32(len(branches) - 1)), *values) for values in found]

    def _sharded(self, jaxpr, outputs):
        """Returns the results of a function that each device calculates of its part."""
        found = self._called(None, jaxpr, (), [UNKNOWN] * len(jaxpr.invars))
        return [everywhere(value.flat[0], output.aval) if is_everywhere(value) else UNKNOWN
                for value, output in zip(found, outputs)]

    def _assumed(self, equation, operands):
        """Returns what is assumed of the result of an operation with values that are not known."""
        name, output = equation.primitive.name, equation.outvars[0].aval
        if name == "is_finite":
            return everywhere(True, output)
        if name == "reduce_and" and operands[0] is HOLDS:
            self.compares = True
            return everywhere(True, output)
        if name in ("and", "or"):  # which one operand may decide
            deciding = [operand for operand in operands if is_everywhere(operand) and operand.flat[0] == (name == "or")]
            return everywhere(deciding[0].flat[0], output) if deciding and output.dtype == bool else UNKNOWN
        if name not in COMPARED:
            return UNKNOWN
        left, right = [operand.flat[0] if is_everywhere(operand) else 0 if is_unknown(operand) else None
                       for operand in operands]
        if equation.invars[0] is equation.invars[1] or any(map(is_infinite, (left, right))):
            return everywhere(COMPARED[name](left, right), output)
        holds = name in NOT_STRICT and None not in (left, right) and COMPARED[name](left, right)
        return HOLDS if holds else UNKNOWN


def is_infinite(number):
    return isinstance(number, (float, np.inexact)) and bool(np.isinf(number))


def is_small(variable):
    aval = variable.aval
    return isinstance(aval, core.ShapedArray) and not dtypes.issubdtype(aval.dtype, dtypes.extended) and \
        math.prod(aval.shape) <= MOST_ELEMENTS


slices = weakref.WeakKeyDictionary()  # function -> {(name, what is known of its operands): Slice, or None}


def slice_of(closed, name, kinds):
    """Returns the slice of a function for operands of which this is known, or None where nothing can be known."""
    known = slices.setdefault(closed, {})
    if kinds not in known:
        try:
            made = Slice(closed, name, kinds)
        except CANNOT:
            made = None
        known[kinds] = made if made is not None and made.tells else None
    return known[kinds]


def may_tell(closed, name):
    """Whether a function has results that are known if the host knows the operands that it may know."""
    kinds = [KNOWN if can_be_known(aval) else UNKNOWN for aval in closed.in_avals]
    flags = [True if kind is UNKNOWN and getattr(aval, "dtype", None) == bool else kind
             for kind, aval in zip(kinds, closed.in_avals)]
    return slice_of(closed, name, tuple(flags)) is not None


def remember(array, value):
    """Lets reads of an array give a value."""
    if value is HOLDS or value.nbytes > MOST_BYTES and is_everywhere(value):
        setattr(array, VALUE, value)
    elif value.nbytes <= MOST_BYTES and value.dtype == array.dtype:
        array.block_until_ready()  # the kernel that would write it is over
        for shard in array.addressable_shards:
            part = np.ascontiguousarray(value[shard.index])
            driver.cuMemcpyHtoD_v2(ctypes.c_void_p(shard.data.unsafe_buffer_pointer()),
                                   ctypes.c_void_p(part.ctypes.data), ctypes.c_size_t(part.nbytes))


def known_results(closed, name, kinds, values):
    """Returns what is known of the results of a function, or None."""
    found = slice_of(closed, name, kinds)
    try:
        results = found and found.values([value for value, kind in zip(values, kinds) if kind is KNOWN])
    except CANNOT:
        found = slices[closed][kinds] = None
    if found and found.compares:
        comparisons.note()
    return results if found else None


def follow():
    """Lets the host work beside each function that JAX compiles."""
    run = pjit._pjit_call_impl_python
    fast_path = pjit._get_fastpath_data
    executables = weakref.WeakSet()  # which Python shall call

    def run_and_follow(*operands, jaxpr, name, **options):
        if working.active:
            return run(*operands, jaxpr=jaxpr, name=name, **options)
        working.active = True
        try:
            with jax.transfer_guard("allow"):
                values = list(map(value_of, operands, jaxpr.in_avals))  # the function may write in their place
            ran = run(*operands, jaxpr=jaxpr, name=name, **options)
            with jax.transfer_guard("allow"):
                results = known_results(jaxpr, name, tuple(map(kind_of, operands, values)), values)
                for output, value in zip(ran[0], results or ()):
                    if value is not UNKNOWN:
                        remember(output, value)
            if results or may_tell(jaxpr, name):
                executables.add(ran[1])
            return ran
        finally:
            working.active = False

    pjit._pjit_call_impl_python = run_and_follow
    pjit._get_fastpath_data = lambda executable, *rest: (
        None if executable in executables else fast_path(executable, *rest))


def use_processor():
    """Lets JAX use the processor, too, where the program asks for nothing but a GPU."""
    platforms = jax.config.jax_platforms
    if platforms and "cpu" not in platforms.split(","):
        jax.config.update("jax_platforms", platforms + ",cpu")
