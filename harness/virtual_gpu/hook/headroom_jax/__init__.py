"""Records, inside the user's program, what JAX's allocator reports. JAX has no optimizer of its own: a
step is a call that calculates gradients, whether of a compiled function or of what jax.grad made."""

import contextlib
import functools
import inspect
import math
import os
import sys
import threading
import types
import weakref

import headroom_known
import headroom_lines
import headroom_notes
import headroom_tensorflow
import headroom_xla


def peaks():
    """Returns the counters of each device, once JAX has started to use devices."""
    import jax
    from jax._src import xla_bridge

    if not xla_bridge.backends_are_initialized():
        return []  # asking would start the device
    result = []
    for device in jax.local_devices():
        if device.platform == "gpu":
            stats = device.memory_stats() or {}  # none where JAX before 0.10 asks the driver for each array
            use = {"device": device.id, "peak_allocated": stats.get("peak_bytes_in_use")}
            if "peak_pool_bytes" in stats:
                use["peak_reserved"] = stats["peak_pool_bytes"]
            result.append(use)
    return result


def arrays(device):
    """Returns the bytes of Keras's variables by their role. Its trainer keeps the arrays apart from the variables."""
    from jax import numpy as jnp

    result, seen = {}, set()
    for role, classes in headroom_tensorflow.kinds_of_keras("jax").items():
        for owner in headroom_notes.live_objects(*classes):
            new = {id(variable): variable for variable in owner.variables if id(variable) not in seen}
            seen.update(new)
            size = sum(math.prod(variable.shape) * jnp.dtype(variable.dtype).itemsize for variable in new.values())
            result[role] = result.get(role, 0) + size
    return result


def finish(differences):
    """Waits for JAX's asynchronous work, because an error in work that nobody waits for is never raised."""
    import jax
    from jax._src import xla_bridge

    differences += (headroom_known.comparisons.words() + headroom_known.reads.words()
                    + headroom_known.divisors.words() + headroom_known.tries.words())
    if xla_bridge.backends_are_initialized():
        jax.block_until_ready(jax.live_arrays())


def watch_reads():
    """Notes the lines at which the program reads values that a kernel would have computed. A number is read as 1 where
    the program divides by it."""
    import numpy as np
    from headroom_jax import known_results, known_values
    from jax._src import xla_bridge
    from jax._src.array import ArrayImpl

    read = known_values.read

    def reader():
        """Returns the frame of the program, or of a library other than JAX, that reads."""
        frame = outermost = sys._getframe(2)
        while frame is not None and not (headroom_lines.is_users(frame.f_code.co_filename)
                                         or headroom_lines.is_librarys(frame.f_code.co_filename)):
            frame = frame.f_back
        return frame or outermost

    @functools.wraps(read)
    def read_and_note(array):
        alike = getattr(array, known_values.VALUE, None)
        if isinstance(alike, np.ndarray) and not array.is_deleted():
            return alike
        is_first = array._npy_value is None
        value = read(array)  # waits for the kernels
        is_zero = value.size == 1 and not value.any()
        if not is_first and not is_zero or known_values.is_known(array):
            return value
        if is_zero:
            return np.full_like(value, headroom_known.number_read(value.item(), reader()))
        headroom_known.reads.note()
        return value

    ArrayImpl._value = property(read_and_note)
    xla_bridge.register_plugin_callbacks(lambda c_api: known_results.use_processor())
    known_results.follow()


def name_states(trainer):
    """Called once the trainer of Keras has been imported. What it compiles has all variables in one argument."""
    jit = trainer.jit

    @functools.wraps(jit)
    def jit_and_name(function, **options):
        name = getattr(function, "__name__", "")
        roles = ("weights", "weights", *(["optimizer state"] if name == "train_step" else []), "other variables")
        headroom_xla.states_of_keras[f"jit_{name}"] = roles
        return jit(function, **options)

    trainer.jit = jit_and_name


def trust_parameters(distributions):
    """Called once NumPyro's distributions have been imported, which would check parameters whose values are unknown."""
    distributions.Distribution.validate_args = lambda distribution, strict=True: None


LOOPS = (("scan", 0, "f"), ("while_loop", 1, "body_fun"), ("fori_loop", 2, "body_fun"))  # place and name of the body
STAGES = {"trace", "lower", "compile"}  # jax.jit(f).lower(x).compile() can be called like jax.jit(f)


class Called(threading.local):
    """The functions that are being called, the outermost first."""

    def __init__(self):
        self.functions = []


called = Called()
traces = weakref.WeakKeyDictionary()  # function -> what its trace showed. JAX keeps it for when it is compiled again.


class Counted:
    """A function whose calls are steps if it calculates gradients, which shows when JAX traces it."""

    def __init__(self, function, has_gradients=False, traced=None):
        functools.update_wrapper(self, function)
        trace = types.SimpleNamespace(has_gradients=has_gradients)
        self._function, self._trace = function, trace if traced is None else traces.setdefault(traced, trace)

    def __call__(self, *arguments, **options):
        if not called.functions and not headroom_notes.notes.steps:
            headroom_notes.note_start()
        called.functions.append(self)
        try:
            result = self._function(*arguments, **options)
        finally:
            called.functions.pop()
        if self._trace.has_gradients:
            if called.functions:
                called.functions[-1]._trace.has_gradients = True
            elif not headroom_tensorflow.InFit.active:  # Keras counts its own
                headroom_notes.count_steps(1)
        return result

    def __getattr__(self, name):
        value = getattr(self._function, name)
        return self._followed(value) if name in STAGES else value

    # jax.export looks for these in the class, from Python 3.12 on.
    trace = property(lambda self: self.__getattr__("trace"))
    lower = property(lambda self: self.__getattr__("lower"))

    def _followed(self, stage):
        """Wraps a stage of compilation ahead of time, so that calls of what is compiled are counted."""

        @functools.wraps(stage)
        def make(*arguments, **options):
            called.functions.append(self)
            try:
                made = stage(*arguments, **options)
            finally:
                called.functions.pop()
            return Counted(made, self._trace.has_gradients)

        return make

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)


def parts_of(function, arguments, options):
    """Returns the parts of a call's arguments, as (JAX's name, part), in JAX's order, and how they are nested."""
    import jax

    paths, structure = jax.tree_util.tree_flatten_with_path((arguments, options))
    bound = inspect.signature(function).bind(*range(len(arguments)), **{name: name for name in options}).arguments
    names = {place: name + jax.tree_util.keystr(path) for name, places in bound.items()
             for path, place in jax.tree_util.tree_flatten_with_path(places)[0]}
    return [(names[getattr(path[1], "idx" if path[0].idx == 0 else "key")] + jax.tree_util.keystr(path[2:]), part)
            for path, part in paths], structure


class Mapped(Counted):
    """A function that jax.pmap made. JAX compiles it with numbered arguments, so their names are noted here."""

    def __call__(self, *arguments, **options):
        parts, structure = parts_of(self._function, arguments, options)
        if structure not in self.__dict__.setdefault("_noted", set()):
            self._noted.add(structure)
            headroom_xla.mapped_functions.append((getattr(self, "__name__", "function"), [name for name, _ in parts]))
        return super().__call__(*arguments, **options)


class OfLibrary(Counted):
    """A function of a library that jax.jit compiled. It may have packed what the program gave it, as Equinox does, so
    arrays are named after the variables that hold them where the program calls the library."""

    def __call__(self, *arguments, **options):
        compiled = self._function._cache_size()
        try:
            return super().__call__(*arguments, **options)
        finally:
            if not called.functions and self._function._cache_size() > compiled:
                self._note(sys._getframe(1), arguments, options)

    def _note(self, frame, arguments, options):
        import jax

        while frame is not None and not headroom_lines.is_users(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        parts, _ = parts_of(self._function, arguments, options)
        variables = names_of({id(part) for _, part in parts if isinstance(part, jax.Array)}, frame.f_locals)
        names = {name: variables.get(id(part), name) for name, part in parts}
        headroom_xla.functions_of_libraries.append((getattr(self, "__name__", "function"), names))


def names_of(arrays, variables):
    """Returns {id: name} of those arrays, given by their ids, that variables or attributes of `self` hold."""
    import jax

    held_by_self = getattr(variables.get("self"), "__dict__", {})
    found = {}
    for name, value in [*variables.items(), *((f"self.{name}", value) for name, value in held_by_self.items())]:
        with contextlib.suppress(Exception):  # of whatever type, where JAX cannot flatten the value
            if not arrays.isdisjoint(map(id, jax.tree_util.tree_leaves(value))):
                for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]:
                    found.setdefault(id(leaf), name + jax.tree_util.keystr(path))
    return found


def kind_of(function):
    """Returns the class that counts the calls of a function that jax.jit compiles."""
    code = getattr(function, "__code__", None)
    return Counted if code is None or headroom_lines.is_users(code.co_filename) else OfLibrary


def counting(transform, has_gradients=False, kind=lambda function: Counted):
    """Wraps jax.jit, jax.grad or the like, so that calls of the functions that it makes are counted."""

    @functools.wraps(transform)
    def make(*arguments, **options):
        made = transform(*arguments, **options)
        function = arguments[0] if arguments else options.get("fun")
        if function is None:  # called with options only, as a decorator
            return lambda function: make(function, **options)
        return kind(function)(made, has_gradients, None if has_gradients else function)

    return make


def count_loops(lax):
    """Counts calls of loops that calculate gradients outside of compiled functions. JAX keeps their traces, too."""
    for name, place, keyword in LOOPS:

        def run(*arguments, loop=getattr(lax, name), place=place, keyword=keyword, **options):
            body = arguments[place] if place < len(arguments) else options.get(keyword)
            return Counted(loop, traced=body)(*arguments, **options)

        setattr(lax, name, functools.wraps(getattr(lax, name))(run))


def use_stand_in_for_assembler():
    """JAX prefers the assembler of the wheel nvidia-cuda-nvcc, from whose code nobody reads what a kernel writes."""
    from jax._src import lib

    lib.cuda_path = None


def show_gpu(hardware_utils):
    """Makes JAX look for a GPU although there is no device file of NVIDIA's driver."""
    hardware_utils.has_visible_nvidia_gpu = lambda: True


def install(jax):
    """Called after JAX has been imported."""
    from jax._src import xla_bridge

    xla_bridge.register_plugin_callbacks(lambda c_api: headroom_xla.set_flags())  # called before XLA starts
    # JAX records ten frames of each operation by default. Libraries such as Flax take up all of them, and the
    # user's own line would be missing.
    if "JAX_TRACEBACK_IN_LOCATIONS_LIMIT" not in os.environ:
        jax.config.update("jax_traceback_in_locations_limit", 100)
    jax.jit = counting(jax.jit, kind=kind_of)
    for name in ("grad", "value_and_grad"):
        setattr(jax, name, counting(getattr(jax, name), has_gradients=True))
    count_loops(jax.lax)
    jax.vjp = Counted(jax.vjp, has_gradients=True)
    jax.pmap = counting(jax.pmap, kind=lambda function: Mapped)
    differences = ["XLA tries no kernels, which takes memory on a card while it compiles, and uses no CUDA graphs"]
    headroom_notes.add(f"JAX {jax.__version__}", peaks, differences, arrays, finish=lambda: finish(differences))
    if not headroom_notes.CAPTURE:
        use_stand_in_for_assembler()
    if headroom_known.FOLLOW:
        try:
            watch_reads()
        except (AttributeError, ImportError) as error:  # a version of JAX that is not known here
            headroom_known.tries.failed(error)
