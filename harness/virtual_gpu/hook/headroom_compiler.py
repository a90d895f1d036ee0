"""Spares programs time of PyTorch's compiler. Its import takes about as long as that of the rest of PyTorch, which
imports it for every optimizer, and at the latest for its snapshot of the memory; a program that compiles nothing does
without. One that compiles need not compile all kernels that it, or a kernel of Triton, chooses from."""

import functools
import math
import os
import sys
import types
import weakref

excluded = weakref.WeakSet()  # functions to exclude from compiled code, once there may be any
is_loaded = False


def exclude_later(compile):
    """Called after torch._compile has been imported."""
    exclude = compile._disable_dynamo

    @functools.wraps(exclude)
    def without_compiler(function=None, *arguments, **named):
        if function is not None and not is_loaded:
            # PyTorch keeps the function that excludes itself here, and looks for it in every call.
            function.__dynamo_disable = function
            excluded.add(function)
        return exclude(function, *arguments, **named)

    compile._disable_dynamo = without_compiler


def step_without_compiler(optimizers):
    """Called after torch.optim.optimizer has been imported."""
    import torch

    with_compiler = optimizers._use_grad_for_differentiable

    @functools.wraps(with_compiler)
    def chosen_in_each_step(step):
        divided = with_compiler(step)  # compiled code is interrupted before and after it

        @functools.wraps(step)
        def run(optimizer, *arguments, **named):
            if is_loaded:
                return divided(optimizer, *arguments, **named)
            with torch.set_grad_enabled(optimizer.defaults["differentiable"]):
                return step(optimizer, *arguments, **named)

        return run

    optimizers._use_grad_for_differentiable = chosen_in_each_step


def use(_):
    """Called after the compiler has been imported."""
    global is_loaded
    is_loaded = True
    for function in excluded:
        del function.__dynamo_disable
    leave_out_own_functions()


def leave_out_own_functions():
    """Keeps the compiler from compiling the functions of Headroom that run between compiled ones. Those that compiled
    code calls are still compiled with it, so that it is not interrupted."""
    from torch._dynamo import trace_rules

    here, is_left_out = os.path.dirname(__file__) + os.sep, trace_rules.check

    @functools.wraps(is_left_out)
    def check(found, *arguments, **named):
        if isinstance(found, types.CodeType) and found.co_filename.startswith(here):
            return True
        return is_left_out(found, *arguments, **named)

    trace_rules.check = check


def try_without_compiling(autotune):
    """Called after torch._inductor.autotune_process has been imported. Kernels that are candidates for a product of
    matrices would take the same time here, so they are measured without being compiled. What a trial allocates, it
    allocates."""
    candidate = autotune.TritonBenchmarkRequest
    candidate.make_run_fn = lambda self, *tensors, **named: lambda: None
    candidate.precompile = lambda self: None


def vary_nothing(tuner):
    """Called after torch._inductor.runtime.coordinate_descent_tuner has been imported. It would compile neighbours of
    the variant that it starts with until none is faster, and none is faster here."""
    tuner.CoordescTuner.tunable_fields = ()


def leave_out_trials(benchmarking):
    """Called after torch._inductor.runtime.benchmarking has been imported. Values are not followed in a trial, which
    clears a buffer as large as the cache of the GPU again and again."""
    import torch

    def without_modes(measure):
        @functools.wraps(measure)
        def call(*arguments, **named):
            with torch._C.DisableTorchFunction():
                return measure(*arguments, **named)

        return call

    for kind in vars(benchmarking).values():
        if isinstance(kind, type) and "benchmark_gpu" in vars(kind):
            kind.benchmark_gpu = without_modes(kind.benchmark_gpu)


def snapshot(torch):
    """Returns PyTorch's snapshot without importing the compiler, which PyTorch would ask for its code."""
    if "torch._inductor.codecache" in sys.modules:
        maps = sys.modules["torch._inductor.codecache"].PyCodeCache.linemaps
        for path in [path for path, lines in maps.items() if not lines]:
            del maps[path]  # PyTorch 2.6 takes none of them to be empty
    is_absent = "_inductor" not in vars(torch)
    if is_absent:
        torch._inductor = None
    try:
        return torch.cuda.memory._snapshot()
    finally:
        if is_absent:
            del torch._inductor


def take_first_variant(autotuner):
    """Called after triton.runtime.autotuner has been imported. All variants of a kernel take the same time here, so the
    first one that runs would be taken. It is tried as on a real card, because that takes memory."""
    kind = autotuner.Autotuner
    run, measure = kind.run, kind._bench

    @functools.wraps(run)
    def run_and_try(kernel, *arguments, **named):
        kernel.headroom_found = False
        return run(kernel, *arguments, **named)

    @functools.wraps(measure)
    def measure_first(kernel, *arguments, **named):
        if kernel.headroom_found:
            return [math.inf] * 3
        times = measure(kernel, *arguments, **named)
        kernel.headroom_found = math.isfinite(times[0])
        return times

    kind.run, kind._bench = run_and_try, measure_first
