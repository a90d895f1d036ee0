"""Hides a mode, which every call of PyTorch passes through, from code that would take another path because of it, and
keeps it on where PyTorch suspends it."""

import atexit
import contextlib
import functools
import inspect
import threading
import time
import weakref

ASKS_FOR_MODES = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
RUNS_ON_GPU = {"", "CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd"}  # keys of PyTorch's dispatcher


class Suspended(threading.local):
    """`calls`: how many calls of compiled functions the mode is suspended for."""

    calls = 0


suspended = Suspended()


def hide_from_fast_paths(torch, mode):
    """Hides the mode from layers of torch.nn, which leave their fast path if a mode could observe their inner
    calls, and from functions of libraries, which then run in the mode instead of being passed to it as a whole."""
    overrides = torch.overrides

    def hiding(asked):
        @functools.wraps(asked)
        def ask(*things):
            current = overrides._get_current_function_mode()
            if type(current) is not type(mode):
                return asked(*things)
            overrides._pop_mode()
            try:
                return asked(*things)
            finally:
                overrides._push_mode(current)

        return ask

    for name in ASKS_FOR_MODES:
        setattr(overrides, name, hiding(getattr(overrides, name)))


@contextlib.contextmanager
def taken_out(overrides, mode):
    """Takes the mode out of those that are on. The program's own may be above it. PyTorch's compiler looks up then which
    functions ask for modes, in order to recognise their calls."""
    hiding, above = {name: getattr(overrides, name) for name in ASKS_FOR_MODES}, []
    while type(overrides._get_current_function_mode()) is not type(mode):
        above.append(overrides._pop_mode())
    taken = overrides._pop_mode()
    for one in reversed(above):
        overrides._push_mode(one)
    for name, one in hiding.items():
        setattr(overrides, name, getattr(one, "__wrapped__", one))
    try:
        yield
    finally:
        for name, one in hiding.items():
            setattr(overrides, name, one)
        for _ in above:
            overrides._pop_mode()
        for one in (taken, *reversed(above)):
            overrides._push_mode(one)


def leave_out_compiled_code(torch, mode):
    """Suspends the mode inside compiled functions, because torch.compile would compile the mode's code, too."""
    overrides, compile_it = torch.overrides, torch.compile

    def without_mode(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if torch.compiler.is_compiling() or not is_on(torch, mode):
                return function(*args, **kwargs)
            suspended.calls += 1
            try:
                with taken_out(overrides, mode):
                    return function(*args, **kwargs)
            finally:
                suspended.calls -= 1

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


def in_mode(torch, mode, function):
    """Returns a function that runs in the mode, which PyTorch suspends in calls that pass through it, but not in compiled
    code."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if suspended.calls or is_on(torch, mode):
            return function(*args, **kwargs)
        with mode:
            return function(*args, **kwargs)

    return call


def is_on(torch, mode):
    return any(type(one) is type(mode) for one in torch.overrides._get_current_function_mode_stack())


def keep_inside_of_calls(torch, mode):
    """Keeps the mode on in Python code that PyTorch runs in a call: operators of jagged nested tensors, which read their
    lengths, and in the backward pass, where checkpointing repeats parts of the forward pass."""
    from torch.nested._internal.nested_tensor import NestedTensor

    dispatch = NestedTensor.__torch_dispatch__.__func__
    NestedTensor.__torch_dispatch__ = classmethod(in_mode(torch, mode, dispatch))
    torch.autograd._engine_run_backward = backward_in_mode(torch, mode, torch.autograd._engine_run_backward)


def backward_in_mode(torch, mode, run_backward):
    """Runs the backward pass in a mode of its own. A thread of PyTorch gives the mode back a moment after the pass has
    returned, for which it needs Python, so the program waits for that before it ends: in a Python that shuts down, the
    thread would end the process by a signal."""
    held = weakref.WeakSet()

    @functools.wraps(run_backward)
    def run(*args, **kwargs):
        if suspended.calls or is_on(torch, mode):
            return run_backward(*args, **kwargs)
        with type(mode)() as of_pass:
            held.add(of_pass)
            return run_backward(*args, **kwargs)

    @atexit.register
    def wait():
        given_up = time.monotonic() + 1  # a program may hold the error of a pass, and so the mode, until it ends
        while held and time.monotonic() < given_up:
            time.sleep(0.001)

    return run


def keep_in_operators(torch, mode):
    """Keeps the mode on in operators that libraries and programs write in Python."""
    register = torch.library.Library.impl

    @functools.wraps(register)
    def register_in_mode(library, name, function, dispatch_key="", **options):
        if dispatch_key in RUNS_ON_GPU and inspect.isfunction(function) and function.__module__ != "torch.library":
            function = in_mode(torch, mode, function)
        return register(library, name, function, dispatch_key, **options)

    torch.library.Library.impl = register_in_mode


def keep_in_threads(torch, mode):
    """Enters the mode in threads that the program starts, such as those of torch.nn.DataParallel."""
    start = threading.Thread.start

    @functools.wraps(start)
    def start_in_mode(thread):
        thread.run = in_mode(torch, mode, thread.run)
        start(thread)

    threading.Thread.start = start_in_mode


def keep_out_of_files(torch):
    """Leaves what is noted at a tensor, such as its value, out of what a program saves of it."""
    state_of = torch._utils._get_obj_state

    @functools.wraps(state_of)
    def state_without_notes(thing):
        state = state_of(thing)
        if not isinstance(state, dict):
            return state
        return {name: value for name, value in state.items() if not name.startswith("_headroom")}

    torch._utils._get_obj_state = state_without_notes
