"""Hides a mode, which every call of PyTorch passes through, from code that would take another path because of it."""

import functools
import threading

left_out = 0  # how many calls of compiled functions the mode is suspended for


def hide_from_fast_paths(torch, mode):
    """Hides the mode from layers of torch.nn, which leave their fast path if a mode could observe their inner
    calls."""
    asked = torch.overrides.has_torch_function

    def has_torch_function(things):
        if torch.overrides._get_current_function_mode() is not mode:
            return asked(things)
        overrides._pop_mode()
        try:
            return asked(things)
        finally:
            overrides._push_mode(mode)

    overrides = torch.overrides
    overrides.has_torch_function = has_torch_function


def leave_out_compiled_code(torch, mode):
    """Suspends the mode inside compiled functions, because torch.compile would compile the mode's code, too."""
    overrides, compile_it = torch.overrides, torch.compile

    def without_mode(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if torch.compiler.is_compiling() or overrides._get_current_function_mode() is not mode:
                return function(*args, **kwargs)
            global left_out
            overrides._pop_mode()
            left_out += 1
            try:
                return function(*args, **kwargs)
            finally:
                left_out -= 1
                overrides._push_mode(mode)

        call.headroom = True
        return call

    @functools.wraps(compile_it)
    def compile_without_mode(*args, **kwargs):
        result = compile_it(*args, **kwargs)
        if not isinstance(result, torch.nn.Module):
            return without_mode(result)
        kind = type(result)
        if kind.__name__ == "OptimizedModule" and not hasattr(kind.__call__, "headroom"):
            kind.__call__ = without_mode(kind.__call__)
        return result

    torch.compile = compile_without_mode


def keep_in_nested_tensors(torch, mode):
    """Keeps the mode on in operators of jagged nested tensors, which read their lengths. PyTorch suspends it in the
    calls that lead to them."""
    from torch.nested._internal.nested_tensor import NestedTensor

    dispatch = NestedTensor.__torch_dispatch__.__func__

    @functools.wraps(dispatch)
    def dispatch_in_mode(cls, *args, **kwargs):
        if left_out or mode in torch.overrides._get_current_function_mode_stack():
            return dispatch(cls, *args, **kwargs)
        with mode:
            return dispatch(cls, *args, **kwargs)

    NestedTensor.__torch_dispatch__ = classmethod(dispatch_in_mode)


def keep_in_backward(torch, mode):
    """Keeps the mode on in the backward pass, where checkpointing repeats parts of the forward pass. PyTorch suspends
    it in the calls that start the pass. Other threads have the mode only if PyTorch hands it on to them."""
    run = torch.autograd._engine_run_backward

    @functools.wraps(run)
    def run_in_mode(*args, **kwargs):
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or left_out or mode in torch.overrides._get_current_function_mode_stack():
            return run(*args, **kwargs)
        with mode:
            return run(*args, **kwargs)

    torch.autograd._engine_run_backward = run_in_mode
