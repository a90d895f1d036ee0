"""Follows the values that need no GPU. Kernels of a virtual GPU compute nothing, but what a program copies to
it (masks, labels, lengths) and what it makes of that alone is known: the same call on the processor says
it. So code that asks "is any token masked?" takes the path that it takes on a real card.

Followed are integers, booleans and small constants in the main thread, outside of torch.compile. Each
followed tensor keeps its value on the host; a change that is not followed makes it unknown."""

import functools
import os
import re
import sys

import headroom_memory

FOLLOW = os.environ.get("HEADROOM_GPU_VALUES", "on") != "off"
MOST_ELEMENTS = 1 << 20  # of a followed tensor
MOST_FINITE = 1 << 26  # of the answer of isfinite and the like, whose elements are all alike
MOST_CONSTANTS = 64  # elements of a constant that is no integer
MOST_COPIED = 1 << 14  # elements of a copy from the host that holds no integers
VALUE = "_headroom_value"  # attribute of a tensor: (its version, its value on the host)

CONSTANTS = {"arange", "as_tensor", "asarray", "empty_like", "eye", "full", "linspace", "ones",
             "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros"}
READS = {"item", "tolist", "cpu", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__"}
# The shape of what they return depends on values.
SHAPED_BY_VALUES = {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount",
                    "repeat_interleave", "one_hot", "__getitem__"}
DECIDES = {"__bool__", "__index__", "nonzero", "argwhere", "masked_select"}
# Of values that are not known, these are taken to be finite, as they are in training that goes well.
FINITE = {"isfinite": True, "isnan": False, "isinf": False, "isposinf": False, "isneginf": False}
# What decides the result of two operands whatever the other one is: the result is known from one.
ABSORBING = {
    **dict.fromkeys(("__and__", "__rand__", "__iand__", "logical_and", "bitwise_and"), False),
    **dict.fromkeys(("__or__", "__ror__", "__ior__", "logical_or", "bitwise_or"), True),
}
NOT_FOLLOWED = re.compile("rand|drop|bernoulli|multinomial|normal|uniform|exponential|gumbel|geometric|"
                          "cauchy|poisson|empty|resize|set_|share|pin_memory|record_stream|backward|hook")


class Unknown(Exception):
    """A value that the GPU would have computed."""


class Decisions:
    """Lines at which a value that is not known was taken as 0."""

    def __init__(self):
        self.lines = {}

    def note(self):
        frame = sys._getframe(2)
        first = frame
        while frame is not None and not headroom_memory.is_users(frame.f_code.co_filename):
            frame = frame.f_back
        frame = first if frame is None else frame
        line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        self.lines[line] = self.lines.get(line, 0) + 1

    def words(self):
        if not self.lines:
            return []
        shown = sorted(self.lines, key=self.lines.get, reverse=True)[:5]
        more = len(self.lines) - len(shown)
        text = ", ".join(shown) + (f" and {more} more" if more else "")
        return [f"decided by values that a virtual GPU does not compute, taken as 0: {text}"]


decisions = Decisions()


def value_of(tensor):
    """The value of a tensor on the host. Raises Unknown."""
    if not tensor.is_cuda:
        if type(tensor).__name__ not in ("Tensor", "Parameter") or tensor.device.type != "cpu":
            raise Unknown
        if tensor.numel() > MOST_ELEMENTS:
            raise Unknown
        return tensor.detach()
    held = getattr(tensor, "__dict__", {}).get(VALUE)
    if held is None or held[0] != version_of(tensor):
        raise Unknown
    return held[1]


def version_of(tensor):
    return 0 if tensor.is_inference() else tensor._version


def remember(tensor, value):
    if value is None or value.is_cuda or value.shape != tensor.shape or value.dtype != tensor.dtype:
        return
    setattr(tensor, VALUE, (version_of(tensor), value))


def on_host(thing, torch):
    """An argument of the same call on the processor. Raises Unknown."""
    if isinstance(thing, torch.Tensor):
        return value_of(thing)
    if isinstance(thing, (list, tuple)) and type(thing) in (list, tuple):
        return type(thing)(on_host(item, torch) for item in thing)
    if isinstance(thing, torch.device) or isinstance(thing, str) and thing.startswith("cuda"):
        return torch.device("cpu")
    return thing


def first_tensor(things, torch):
    for thing in things:
        if isinstance(thing, torch.Tensor):
            return thing
        if isinstance(thing, (list, tuple)):
            found = first_tensor(thing, torch)
            if found is not None:
                return found
    return None


def follow(torch):
    """The mode that follows values; it is entered for the rest of the program."""

    class FollowValues(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            name = getattr(function, "__name__", "")
            if name in READS or name in SHAPED_BY_VALUES:
                done, result = self.by_value(name, function, args, kwargs)
                if done:
                    return result
            host = self.host_call(name, args, kwargs)
            result = function(*args, **kwargs)
            if host is not None:
                self.keep(name, function, args, host, result)
            elif name in FINITE:
                self.keep_alike(FINITE[name], result)
            elif name in ABSORBING and self.is_absorbed(ABSORBING[name], args, result):
                self.keep_alike(ABSORBING[name], result)
            return result

        def host_call(self, name, args, kwargs):
            """Arguments of the same call on the processor; None = it is not followed."""
            tensor = first_tensor(args, torch)
            if tensor is None:
                tensor = first_tensor(kwargs.values(), torch)
            if tensor is None and name not in CONSTANTS or NOT_FOLLOWED.search(name):
                return None
            try:
                host = ([on_host(a, torch) for a in args],
                        {key: on_host(a, torch) for key, a in kwargs.items()})
            except Unknown:
                return None
            host[1].pop("pin_memory", None)
            if tensor is None:
                host[1]["device"] = "cpu"
            if name in ("cuda", "to", "copy_", "contiguous", "clone") and not tensor.is_cuda:
                host[0][0] = host[0][0].clone()  # the program may change its own copy afterwards
            if name == "cuda":
                host = (host[0][:1], {})
            return host

        def keep(self, name, function, args, host, result):
            """Notes the value of what a call on the GPU returned or changed."""
            results = result if isinstance(result, (list, tuple)) else [result]
            changed = [args[0]] if name == "__setitem__" else []
            if not any(self.is_followed(r, args) for r in [*results, *changed]):
                return
            try:
                with torch.no_grad():
                    values = host[0][0] if name == "cuda" else function(*host[0], **host[1])
            except Exception:  # what the processor cannot do is not followed
                return
            if changed:
                results, values = changed, [host[0][0]]
            values = values if isinstance(values, (list, tuple)) else [values]
            for tensor, value in zip(results, values):
                if isinstance(value, torch.Tensor) and self.is_followed(tensor, args):
                    remember(tensor, value)

        def is_followed(self, tensor, args):
            if type(tensor) is not torch.Tensor or not tensor.is_cuda:
                return False
            source = first_tensor(args, torch)
            most = MOST_ELEMENTS
            if tensor.is_floating_point() or tensor.is_complex():
                most = MOST_CONSTANTS if source is None else most if source.is_cuda else MOST_COPIED
            return tensor.numel() <= most

        def is_absorbed(self, absorbing, operands, result):
            """Whether one of two operands is known, is of booleans, and settles the result."""
            if absorbing and result.dtype != torch.bool:
                return False
            for operand in operands[:2]:
                if not isinstance(operand, torch.Tensor) or operand.dtype != torch.bool:
                    continue
                try:
                    if bool((value_of(operand) == absorbing).all()):
                        return True
                except Unknown:
                    pass
            return False

        def keep_alike(self, answer, result):
            if type(result) is torch.Tensor and result.is_cuda and result.numel() <= MOST_FINITE:
                remember(result, torch.tensor(answer, dtype=result.dtype).expand(result.shape))

        def by_value(self, name, function, args, kwargs):
            """(True, result) of a call that needs the values and has them."""
            tensor = args[0] if args else None
            if name == "__getitem__":
                return self.by_mask(args)
            if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
                return False, None
            if name == "masked_select" and len(args) == 2:
                done, result = self.by_mask(args)
                if done:
                    return done, result
            try:
                values = ([on_host(a, torch) for a in args],
                          {key: on_host(a, torch) for key, a in kwargs.items()})
            except Unknown:
                if name in DECIDES:
                    decisions.note()
                # Not what an earlier tensor left in the same memory.
                zero = {"item": 0 * torch.ones((), dtype=tensor.dtype).item(), "__bool__": False,
                        "__int__": 0, "__index__": 0, "__float__": 0.0}
                return (name in zero and tensor.numel() == 1), zero.get(name)
            result = function(*values[0], **values[1])
            if name == "cpu":
                return True, result.clone()
            return True, result if name in READS else self.to_gpu(result, tensor.device)

        def by_mask(self, args):
            """Elements of an unknown tensor that a known mask selects."""
            tensor, index = args
            if type(tensor) is not torch.Tensor or not tensor.is_cuda:
                return False, None
            if type(index) is not torch.Tensor or index.dtype != torch.bool or not index.is_cuda:
                return False, None
            try:
                mask = value_of(index)
            except Unknown:
                decisions.note()
                return False, None
            if mask.dim() > tensor.dim() or mask.shape != tensor.shape[: mask.dim()]:
                return False, None
            places = self.to_gpu(mask.nonzero(as_tuple=True), tensor.device)
            result = tensor[places]
            try:
                remember(result, value_of(tensor)[mask])
            except Unknown:
                pass
            return True, result

        def to_gpu(self, value, device):
            if isinstance(value, (list, tuple)):
                return type(value)(self.to_gpu(item, device) for item in value)
            if not isinstance(value, torch.Tensor):
                return value
            result = value.to(device)
            remember(result, value)
            return result

    mode = FollowValues()
    mode.__enter__()
    leave_out_compiled_code(torch, mode)
    # A distribution checks its parameters' values, which are not known.
    torch.distributions.Distribution.set_default_validate_args(False)


def leave_out_compiled_code(torch, mode):
    """torch.compile reads the program's code, and would read this mode's as a part of it."""
    overrides, compile_it = torch.overrides, torch.compile

    def without_mode(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if torch.compiler.is_compiling() or overrides._get_current_function_mode() is not mode:
                return function(*args, **kwargs)
            overrides._pop_mode()
            try:
                return function(*args, **kwargs)
            finally:
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
