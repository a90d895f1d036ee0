"""Runs at the start of every Python below `headroom gpu`: waits until a framework is imported and then
records its memory. The user's own sitecustomize runs as well."""

import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMEWORKS = {"torch", "tensorflow", "jax"}


def import_without_searches(loader, module):
    """Imports the first framework of a process without looking for garbage among the hundreds of thousands of objects
    that it makes and keeps. Later searches leave them out as well. All this took about a quarter of the time of a short
    program. None of them holds memory of a GPU, since no other framework is there yet."""
    collects = gc.isenabled()
    gc.disable()
    try:
        loader.exec_module(module)
        gc.freeze.__wrapped__()
    finally:
        if collects:
            gc.enable()


def note_freezing():
    """Notes in `gc.freeze.called` whether the program itself hides objects from the garbage collector."""
    freeze = gc.freeze

    @functools.wraps(freeze)
    def noted():
        noted.called = True
        freeze()

    noted.called = False
    gc.freeze = noted


class AfterImport(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Calls `then` with the module `name` after it has been imported normally. Libraries may look for the module
    before, to see whether it is installed."""

    def __init__(self, name, then):
        self.name, self.then, self.loader = name, then, None
        self.is_searching = False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.is_searching:
            return None
        self.is_searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.is_searching = False
        if spec is None or spec.loader is None:
            return spec
        self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        sys.meta_path.remove(self)
        module.__spec__.loader = module.__loader__ = self.loader
        if self.name in FRAMEWORKS and not (FRAMEWORKS - {self.name}) & sys.modules.keys():
            import_without_searches(self.loader, module)
        else:
            self.loader.exec_module(module)
        self.then(module)


def calling(module, function):
    """Returns a call of `function` in the hook `module`, which is imported only when needed."""
    return lambda imported: getattr(importlib.import_module(module), function)(imported)


HOOKS = {
    "numpy.random": calling("headroom_known", "choose_by_unknown"),
    "torch": calling("headroom_torch", "install"),
    "torch._compile": calling("headroom_compiler", "exclude_later"),
    "torch._dynamo": calling("headroom_compiler", "use"),
    "torch.distributed._functional_collectives": calling("headroom_ranks.numbers", "follow_functions"),
    "torch._inductor.autotune_process": calling("headroom_compiler", "try_without_compiling"),
    "torch._inductor.runtime.benchmarking": calling("headroom_compiler", "leave_out_trials"),
    "torch._inductor.runtime.coordinate_descent_tuner": calling("headroom_compiler", "vary_nothing"),
    "torch.optim.optimizer": calling("headroom_compiler", "step_without_compiler"),
    "torchvision.models.detection.rpn": calling("headroom_draws", "draw_proposals"),
    "triton.runtime.autotuner": calling("headroom_compiler", "take_first_variant"),
    "torchdiffeq._impl.rk_common": calling("headroom_solvers", "take_even_steps"),
    "fastai.optimizer": calling("headroom_steps", "count_steps_of_fastai"),
    "deepspeed.runtime.zero.stage3": calling("headroom_steps", "count_steps_of_deepspeed"),
    "deepspeed.runtime.zero.stage_1_and_2": calling("headroom_steps", "count_steps_of_deepspeed"),
    "deepspeed.runtime.zero.utils": calling("headroom_ranks", "trust_the_first_rank"),
    "tensorflow": calling("headroom_tensorflow", "install"),
    "keras.src.callbacks.callback_list": calling("headroom_tensorflow", "count_batches"),
    "tf_keras.src.callbacks": calling("headroom_tensorflow", "count_batches"),
    "keras.src.optimizers.base_optimizer": calling("headroom_tensorflow", "count_updates"),
    "tensorflow.python.training.optimizer": calling("headroom_tensorflow", "count_applied_gradients"),
    "tf_keras.src.optimizers.legacy.optimizer_v2": calling("headroom_tensorflow", "count_applied_gradients"),
    "tf_keras.src.optimizers.optimizer": calling("headroom_tensorflow", "count_applied_gradients"),
    "keras.src.backend.tensorflow.core": calling("headroom_tensorflow", "keep_names"),
    "keras.src.backend.tensorflow.rnn": calling("headroom_tensorflow", "trust_masks"),
    "keras.src.backend.jax.trainer": calling("headroom_jax", "name_states"),
    "jax._src.hardware_utils": calling("headroom_jax", "show_gpu"),
    "jax": calling("headroom_jax", "install"),
    "numpyro.distributions.distribution": calling("headroom_jax", "trust_parameters"),
}


def run_users_own():
    """Runs the sitecustomize that this file hides, which may import a framework."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    hidden = importlib.machinery.PathFinder.find_spec("sitecustomize")
    sys.path.append(HERE)  # last, so that it hides none of the user's modules
    if hidden is not None:
        sys.modules["sitecustomize"] = module = importlib.util.module_from_spec(hidden)
        hidden.loader.exec_module(module)


if "HEADROOM_GPU_CAPTURE" in os.environ:
    for name in ("deepspeed.runtime.zero.utils", "jax._src.hardware_utils", "keras.src.backend.tensorflow.rnn",
                 "numpy.random", "numpyro.distributions.distribution", "torch._inductor.autotune_process",
                 "torch._inductor.runtime.benchmarking", "torch._inductor.runtime.coordinate_descent_tuner",
                 "triton.runtime.autotuner"):
        del HOOKS[name]

if "HEADROOM_GPU_RECORDS" in os.environ:
    sys.meta_path[:0] = [AfterImport(name, then) for name, then in HOOKS.items()]
    note_freezing()
    importlib.import_module("headroom_xla").set_flags()
    run_users_own()
