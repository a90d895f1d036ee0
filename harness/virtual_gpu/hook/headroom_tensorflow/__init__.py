"""Records, inside the user's program, what TensorFlow's allocator reports, and counts the training steps of
Keras, whatever its backend."""

import functools
import inspect
import os
import sys
import weakref

import headroom_notes
import headroom_xla


# TensorFlow's highest peak in bytes before the program reset it, by device.
earlier_peaks = {}


def peaks():
    """Returns the peaks of the whole program on each device, once TensorFlow has started to use devices."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    if context._context is None or not context._context._initialized:
        return []  # asking would start the device
    result = []
    for index in range(len(tf.config.list_logical_devices("GPU"))):
        peak = tf.config.experimental.get_memory_info(f"GPU:{index}")["peak"]
        result.append({"device": index, "peak_allocated": max(peak, earlier_peaks.get(index, 0))})
    return result


def keep_peaks():
    """Keeps the peaks that TensorFlow forgets when the program resets them."""
    from tensorflow.python.eager import context

    reset = context.Context.reset_memory_stats

    @functools.wraps(reset)
    def keep_and_reset(self, device):
        earlier_peaks.update((use["device"], use["peak_allocated"]) for use in peaks())
        return reset(self, device)

    context.Context.reset_memory_stats = keep_and_reset


def kinds_of_keras(backend):
    """Returns the classes of Keras 2 and 3 whose variables have a role, if Keras is used with this backend."""
    kinds = {"optimizer state": (), "weights": ()}
    for name in ("keras", "tf_keras"):
        keras = sys.modules.get(name)
        if keras is not None and keras.backend.backend() == backend:
            legacy = [keras.optimizers.legacy.Optimizer] if name == "tf_keras" else []
            kinds["optimizer state"] += (keras.optimizers.Optimizer, *legacy)
            kinds["weights"] += (keras.layers.Layer,)
    return kinds


def owners():
    """Returns (object, role of its variables) of the optimizers and layers of Keras 2 and 3, of TensorFlow's own
    optimizers, and of variables. Models know the variables of their optimizers, too, so these come first."""
    import tensorflow as tf

    kinds = {**kinds_of_keras("tensorflow"), "other variables": (tf.Variable,)}
    kinds["optimizer state"] += (tf.compat.v1.train.Optimizer,)
    return [(thing, role) for role, classes in kinds.items() for thing in headroom_notes.live_objects(*classes)]


def variables_of(owner):
    """Returns TensorFlow's variables of one of the owners, on each device on which they are."""
    import tensorflow as tf

    if isinstance(owner, tf.Variable):
        variables = [owner]
    else:
        variables = owner.variables() if inspect.ismethod(owner.variables) else owner.variables
    for variable in variables:
        value = variable if isinstance(variable, tf.Variable) else variable.value  # Keras 3 wraps them
        yield from getattr(value, "values", [value])  # a distribution strategy has one for each device


def arrays(device):
    """Returns the bytes of variables on a device by their role. One that no layer and no optimizer has is a weight if
    it can be trained."""
    result, seen = {}, set()
    for owner, role in owners():
        for value in variables_of(owner):
            if id(value) in seen or not value.device.endswith(f"GPU:{device}"):
                continue
            seen.add(id(value))
            if role == "other variables" and value.trainable:
                role = "weights"
            result[role] = result.get(role, 0) + (value.shape.num_elements() or 0) * value.dtype.size
    return result


def install(tensorflow):
    """Called after TensorFlow has been imported."""
    headroom_xla.set_flags()
    differences = [
        "TensorFlow tries no algorithms of cuDNN: TF_CUDNN_USE_AUTOTUNE=0",
        "XLA tries no kernels, which takes memory on a card while it compiles, and uses no CUDA graphs",
    ]
    if os.environ.get("TF_GPU_ALLOCATOR") == "cuda_malloc_async":
        differences.append("the driver's pool follows rules that were found on an H200")
    import headroom_data
    from headroom_tensorflow import host, large

    def finish():
        differences.extend(host.held.words())

    headroom_notes.add(f"TensorFlow {tensorflow.__version__}", peaks, differences, arrays, finish)
    keep_peaks()
    if not headroom_notes.CAPTURE:  # a real GPU computes what they ask about
        host.hold(tensorflow)
        host.work_there(tensorflow)
        large.keep_constants()
        headroom_data.read_arrays()
    count_calls()


def trust_masks(rnn):
    """LSTM and GRU use kernels to check a mask and to compute the length of each sequence from it. Here every
    sequence has its full length, which changes no shape."""
    import tensorflow as tf

    def whole(mask, time_major):
        steps, sequences = tf.unstack(tf.shape(mask)) if time_major else tf.unstack(tf.shape(mask))[::-1]
        return tf.fill([sequences], steps)

    rnn._assert_valid_mask = lambda mask: None
    rnn._compute_sequence_length_from_mask = whole


def keep_names(core):
    """TensorFlow appends a number to the name of a layer whose scope Keras opens again, as it does in each call. What
    the layer `dense` allocates would then be told as that of `dense_1`, which may be another layer."""
    import tensorflow as tf

    enter = core.name_scope.__enter__

    @functools.wraps(enter)
    def enter_by_own_name(self):
        if not tf.executing_eagerly():
            outer = tf.get_current_name_scope()
            self._tf_name_scope = tf.name_scope(f"{outer}/{self.name}/" if outer else f"{self.name}/")
        return enter(self)

    core.name_scope.__enter__ = enter_by_own_name


class InFit:
    """`active`: whether Keras's own training loop, whose batches are counted, is running."""

    active = False


class Calls:
    """Calls of each tf.function from Python. They are not kept by thread, because a distribution strategy traces what
    its replicas do in threads of its own."""

    active = []  # the functions that are being called, the outermost first
    updating = weakref.WeakSet()  # those that update weights, which tracing them shows


def note_update():
    """Called after an update of weights, or after the call of a tf.function that makes one."""
    import tensorflow as tf

    if Calls.active:
        Calls.updating.add(Calls.active[-1])
    elif tf.executing_eagerly() and not InFit.active:  # else the graph of a session of TensorFlow 1 is being built
        headroom_notes.count_steps(1)


def count_calls():
    """Counts each call of a tf.function that updates weights as a step."""
    from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

    call = Function.__call__

    @functools.wraps(call)
    def counted(self, *arguments, **options):
        Calls.active.append(self)
        try:
            result = call(self, *arguments, **options)
        finally:
            Calls.active.remove(self)
        if self in Calls.updating:
            note_update()
        return result

    Function.__call__ = counted


def count_batches(module):
    """Adds a counting callback to every list of callbacks that Keras makes."""
    callback = module.Callback

    class Counter(callback):
        def __init__(self):
            super().__init__()
            self.first = 0

        def on_train_begin(self, logs=None):
            InFit.active = True
            headroom_notes.note_phase("before training")

        def on_train_batch_begin(self, batch, logs=None):
            self.first = batch

        def on_train_batch_end(self, batch, logs=None):
            headroom_notes.count_steps(batch - self.first + 1)

        def on_train_end(self, logs=None):
            InFit.active = False

    make = module.CallbackList.__init__

    @functools.wraps(make)
    def make_with_counter(self, callbacks=None, *arguments, **options):
        given = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        given = [one for one in given if one is not None]
        return make(self, [*given, Counter()], *arguments, **options)

    module.CallbackList.__init__ = make_with_counter


def count_updates(module):
    """Counts the updates of a training loop that the program contains itself. With the PyTorch backend, PyTorch's hook
    counts the update of any loop as a step."""
    apply = module.BaseOptimizer.apply

    @functools.wraps(apply)
    def counted(self, *arguments, **options):
        from keras.src import backend

        if backend.backend() == "torch":
            import headroom_steps

            given = inspect.signature(apply).bind(self, *arguments, **options).arguments
            variables = given.get("trainable_variables") or self._trainable_variables
            return headroom_steps.update_of_keras(self, variables, lambda: apply(self, *arguments, **options))
        result = apply(self, *arguments, **options)
        if backend.backend() == "tensorflow":
            note_update()
        return result

    module.BaseOptimizer.apply = counted


def count_applied_gradients(module):
    """Counts the updates of the optimizers of Keras 2 and of tf.compat.v1.train like those of Keras 3."""
    bases = ("_BaseOptimizer", "OptimizerV2", "Optimizer")  # a module has one that the others in it inherit from
    base = next(getattr(module, name) for name in bases if hasattr(module, name))
    apply = base.apply_gradients

    @functools.wraps(apply)
    def counted(*arguments, **options):
        result = apply(*arguments, **options)
        note_update()
        return result

    base.apply_gradients = counted
