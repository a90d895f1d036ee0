"""Calculates on the host those results of a function compiled by JAX that depend only on known operands. Values that a
virtual GPU does not compute are taken to be finite, and as a whole equal to what they are compared with."""

import functools
import math
import operator
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
from headroom_jax.known_values import (
    HOLDS, KNOWN, MOST_WHOLE_NUMBERS, UNKNOWN, are_whole, constant, everywhere, is_everywhere, is_followed, is_infinite,
    is_key, is_unknown)
from jax._src import config, core
from jax._src.api import jit
from jax._src.interpreters import partial_eval
from jax._src.lax.control_flow import scan, while_loop  # Calls of those of jax.lax may be steps of the program.

MOST_ELEMENTS = 1 << 16  # of what is calculated in between, if they are not whole numbers
REPEATS = MOST_WHOLE_NUMBERS // MOST_ELEMENTS  # that are assumed of a loop of unknown length
OF_MUCH_WORK = {"conv_general_dilated", "dot_general"}
CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters of a call of another function
CALLED = {"jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call",
          "custom_vjp_call_jaxpr"}
COMPARED = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
NOT_STRICT = {"le", "ge", "eq"}
ALIKE = {"and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert}  # of operands that have one value everywhere
ALIKE.update(dict.fromkeys(("broadcast_in_dim", "convert_element_type", "copy", "reduce_and", "reduce_or", "reshape",
                            "squeeze", "transpose"), lambda value: value))
QUICK_TO_COMPILE = {"xla_backend_optimization_level": 0}
if (0, 6) <= jax.__version_info__ < (0, 11):
    QUICK_TO_COMPILE["xla_cpu_use_fusion_emitters"] = False


class Working(threading.local):
    """`active`: whether the host is calculating."""

    active = False


working = Working()


def are_few(value, repeats, rows=1):
    """Whether the host calculates as many elements as often."""
    count = math.prod(np.shape(value)) * rows
    return count <= MOST_ELEMENTS or are_whole(value.dtype) and count * repeats <= MOST_WHOLE_NUMBERS


def is_light(equation, repeats):
    """Whether the host performs an operation of which it knows the operands as often."""
    if equation.primitive.name in OF_MUCH_WORK:
        repeats *= REPEATS
    for one in equation.outvars:
        if not is_followed(one.aval) or not are_few(one.aval, repeats):
            return False
    parameters = equation.params
    is_of_devices = {"mesh", "axis_name"} & parameters.keys() or any(
        isinstance(axis, str) for axis in np.ravel(parameters.get("axes", ())).tolist())
    if equation.effects or is_of_devices or "callback" in equation.primitive.name:
        return False
    return all(is_light(inner, repeats) for jaxpr in core.jaxprs_in_params(parameters) for inner in jaxpr.eqns)


def hidden(values, repeats, rows=1):
    """Returns values for a loop of JAX, with None in place of those that are not known or too many."""
    return [None if is_unknown(value) or not are_few(value, repeats, rows) else value for value in values]


def shown(values):
    return [UNKNOWN if value is None else value for value in values]


def only(values, wanted):
    """Returns those of the values in whose places `wanted` has one."""
    return [None if one is None else value for value, one in zip(values, wanted)]


def parts_of_scan(operands, num_consts=0, num_carry=0, ft_in=None, **_):
    """Returns of the operands of jax.lax.scan what each step reads, what the loop begins with, and the rows."""
    if ft_in is not None:  # JAX 0.11 and later
        return map(list, ft_in.update(operands).unpack())
    return operands[:num_consts], operands[num_consts:num_consts + num_carry], operands[num_consts + num_carry:]


def kept(step, carried):
    """Returns what of `carried`, with which a loop begins, stays known in its steps."""
    known = len(carried) + 1
    while known > (known := sum(one is not None for one in carried)):
        carried = only(carried, jax.eval_shape(step, carried))
    return carried


def without_sharding(aval):
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def key_of(numbers, aval):
    """Returns keys of random numbers for the whole numbers that they consist of, or numbers as they are."""
    return jax.random.wrap_key_data(numbers, impl=aval.dtype._impl) if is_key(aval) else numbers


def numbers_of(value):
    return jax.random.key_data(value) if is_key(value) else value


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
        self._repeats = 1  # of the loop whose step is traced
        self.compares = False  # whether values that are not known are taken as equal
        self.results = []
        avals = closed.in_avals

        followed = [aval for kind, aval in zip(kinds, avals) if kind is KNOWN]

        def calculate(*known):
            left = map(key_of, known, followed)
            given = [kind if is_unknown(kind) else next(left) if kind is KNOWN else everywhere(kind, aval)
                     for kind, aval in zip(kinds, avals)]
            found = self._called(name, closed.jaxpr, closed.consts, given)
            self.results = [KNOWN if isinstance(value, core.Tracer) else value for value in found]
            return [numbers_of(value) for value in found if isinstance(value, core.Tracer)]

        given = [without_sharding(core.physical_aval(aval)) for aval in followed]
        self._traced = outside_of_meshes(lambda: jax.make_jaxpr(calculate)(*given))
        self.tells = any(result is not UNKNOWN for result in self.results)

    @functools.cached_property
    def _compiled(self):
        consts, operands = self._traced.consts, self._traced.in_avals
        needed, are_used, _ = partial_eval.dce_jaxpr_consts(
            self._traced.jaxpr, [True] * len(self._traced.out_avals), [False] * len(consts) + [True] * len(operands))
        consts = [value for value, is_used in zip(consts, are_used) if is_used]
        avals = [*(variable.aval for variable in needed.constvars), *operands]
        # Constants are operands as well, because in the code they would take memory and time.
        closed = partial_eval.close_jaxpr(partial_eval.convert_constvars_jaxpr(needed))
        place = jax.sharding.SingleDeviceSharding(jax.local_devices(backend="cpu")[0])
        function = jit(core.jaxpr_as_fun(closed), in_shardings=place, out_shardings=place)
        compiled = outside_of_meshes(lambda: function.lower(*map(without_sharding, avals)).compile(QUICK_TO_COMPILE))
        return functools.partial(compiled, *consts)

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
        for variable, value in zip(jaxpr.constvars, consts):
            known = constant(value, variable.aval)
            values[variable] = known if is_unknown(known) else key_of(known, variable.aval)

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
        if name == "scan":
            return self._scanned(operands, **parameters)
        if name == "while":
            return self._looped(operands, **parameters)
        if name == "shard_map":
            return self._sharded(parameters["jaxpr"], outputs)
        if any(map(is_unknown, operands)):
            return [self._assumed(equation, operands) if len(outputs) == 1 else UNKNOWN for _ in outputs]
        if name in ALIKE and all(is_everywhere(operand) for operand in operands):
            return [everywhere(ALIKE[name](*[operand.flat[0] for operand in operands]), outputs[0].aval)]
        draws = name == "bitcast_convert_type" and not are_whole(outputs[0].aval.dtype)
        if draws or not is_light(equation, self._repeats):
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

    def _repeated(self, times, closed, given):
        """Returns the results of the step of a loop."""
        before, self._repeats = self._repeats, self._repeats * times
        try:
            return self._called(None, closed.jaxpr, closed.consts, given)
        finally:
            self._repeats = before

    def _scanned(self, operands, jaxpr, length, reverse, **parts):
        """Returns the results of jax.lax.scan."""
        consts, begun, rows = parts_of_scan(operands, **parts)
        rows, num_carry, repeats = hidden(rows, self._repeats), len(begun), self._repeats * length
        if length == 0:
            return [UNKNOWN] * len(jaxpr.out_avals)

        def step(carried, row):
            found = self._repeated(length, jaxpr, [*consts, *shown(carried), *shown(row)])
            return hidden(found[:num_carry], repeats), hidden(found[num_carry:], self._repeats, rows=length)

        first = [None if row is None else row[0] for row in rows]
        carried = kept(lambda carried: step(carried, first)[0], hidden(begun, repeats))

        def step_of_kept(carried, row):
            after, found = step(carried, row)
            return only(after, carried), found

        last, found = scan(step_of_kept, carried, rows, length, reverse)
        return shown(last) + shown(found)

    def _looped(self, operands, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
        """Returns the results of jax.lax.while_loop."""
        of_cond, of_body = operands[:cond_nconsts], operands[cond_nconsts:cond_nconsts + body_nconsts]

        def goes_on(carried):
            return self._repeated(REPEATS, cond_jaxpr, [*of_cond, *shown(carried)])[0]

        def step(carried):
            return hidden(self._repeated(REPEATS, body_jaxpr, [*of_body, *shown(carried)]), repeats)

        repeats = self._repeats * REPEATS
        carried = kept(step, hidden(operands[cond_nconsts + body_nconsts:], repeats))
        ends = []  # a loop that goes on while something is finite would not end
        jax.eval_shape(lambda carried: ends.append(isinstance(goes_on(carried), core.Tracer)), carried)
        if not ends[0]:
            return [UNKNOWN] * len(carried)
        return shown(while_loop(goes_on, lambda carried: only(step(carried), carried), carried))

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
