"""Spares programs that compile nothing the import of PyTorch's compiler, which takes about as long as that of the
rest of PyTorch. PyTorch imports it for every optimizer, and at the latest for its snapshot of the memory."""

import functools
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


def snapshot(torch):
    """Returns PyTorch's snapshot without importing the compiler, which PyTorch would ask for its code."""
    is_absent = "_inductor" not in vars(torch)
    if is_absent:
        torch._inductor = None
    try:
        return torch.cuda.memory._snapshot()
    finally:
        if is_absent:
            del torch._inductor
