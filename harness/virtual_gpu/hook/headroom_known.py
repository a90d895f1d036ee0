"""Known values of tensors on a virtual GPU, kept on the host, and the lines at which a program branched on
an unknown value."""

import functools
import os
import sys
import threading
import weakref

import headroom_divisors
import headroom_lines

# A real GPU, under `headroom capture`, computes its values.
FOLLOW = os.environ.get("HEADROOM_GPU_VALUES", "on") != "off" and "HEADROOM_GPU_CAPTURE" not in os.environ
MOST_ELEMENTS = 1 << 24  # elements of a followed tensor
MOST_BYTES = 1 << 30  # bytes of all values of at least LEAST_BYTES that are kept at once
LEAST_BYTES = 1 << 20
# Attribute of a tensor: ([version at its last known change, whether its value was drawn], value on the host).
# A view shares the list with the tensor that it is a view of.
VALUE = "_headroom_value"


class Unknown(Exception):
    """Raised for a value that only the GPU would have computed."""


class Lines:
    """The lines of the program at which something happened to values. `what` says what happened."""

    def __init__(self, what):
        self.what, self.lines = what, {}

    def note(self, places=None):
        """Notes the most telling of these places (file, line), the innermost first, or of those of the callers."""
        if places is None:
            places, frame = [], sys._getframe(2)
            while frame is not None:
                places.append((frame.f_code.co_filename, frame.f_lineno))
                frame = frame.f_back
        files = [filename for filename, _ in places]
        at = headroom_lines.most_telling(files) or 0
        line = os.path.basename(headroom_lines.place_of(*places[at]))
        inside = headroom_lines.innermost_of_library(files[:at])
        if inside is not None:
            line += f" (in {headroom_lines.place_of(*places[inside])})"
        self.lines[line] = self.lines.get(line, 0) + 1

    def words(self):
        if not self.lines:
            return []
        shown = sorted(self.lines, key=self.lines.get, reverse=True)[:5]
        more = len(self.lines) - len(shown)
        text = ", ".join(shown) + (f" and {more} more" if more else "")
        return [f"{self.what}: {text}"]


class Tries:
    """Whether the host could calculate results of any function that a framework compiled, and the first error."""

    succeeded = False
    error = None

    def failed(self, error):
        self.error = self.error or f"{type(error).__name__}: {error}".partition("\n")[0]

    def words(self):
        """Returns what to tell the user, such as of a version of JAX that is not known here."""
        if self.succeeded or not self.error:
            return []
        return [f"no result of a compiled function is known, because the host could not calculate any ({self.error})"]


decisions = Lines("decided by values that a virtual GPU does not compute, taken as 0")
comparisons = Lines("compared values that a virtual GPU does not compute, taken as equal")
masks = Lines("selected nothing by masks that a virtual GPU does not compute (--mask-share 0.5 selects half)")
draws = Lines("decided by values drawn at random here")
steps = Lines("solved an equation in steps of one length, since a virtual GPU does not compute their errors")
duplicates = Lines("looked for equal values among those that a virtual GPU does not compute, taken as all different")
outside = Lines("indices outside of what they choose from, at which a real card stops the program")
divisors = Lines("values read as 1, since a virtual GPU does not compute them and the program divides by them or takes "
                 "their logarithm")
reads = Lines("values read as 0, since a virtual GPU does not compute them")
tries = Tries()


def number_read(zero, caller):
    """Returns the number that is read in the frame `caller` in place of one that a virtual GPU does not compute: `zero`,
    or 1 of the same type where the program divides by it or takes its logarithm."""
    place = caller.f_code, caller.f_lasti, caller.f_lineno
    if type(zero) is bool or not headroom_divisors.is_divisor(*place, is_whole=type(zero) is int):
        reads.note()
        return zero
    divisors.note()
    return type(zero)(1)


def choose_by_unknown(random):
    """Lets numpy.random.choice take probabilities that a virtual GPU did not compute, which are all 0, as equal."""
    choice = random.choice

    @functools.wraps(choice)
    def choose(a, size=None, replace=True, p=None):
        if p is not None and not sys.modules["numpy"].asarray(p).any():
            draws.note()
            p = None
        return choice(a, size, replace, p)

    random.choice = choose


class OfThread(threading.local):
    """`drawn`: whether a value that was drawn at random has been read since this was set to False."""

    drawn = False


Used = OfThread()


def value_of(tensor):
    """Returns the value of a tensor on the host. Raises Unknown."""
    tensor = awaited(tensor)
    if type(tensor).__name__ not in ("Tensor", "Parameter"):  # other kinds may not even tell their device
        raise Unknown
    if not tensor.is_cuda:
        if tensor.device.type != "cpu":
            raise Unknown
        if held_elements(tensor) > MOST_ELEMENTS:
            raise Unknown
        return tensor.detach()
    held = held_by(tensor)
    if held is None or held[0][0] != version_of(tensor):
        raise Unknown
    Used.drawn |= held[0][1]
    return held[1]


def awaited(tensor):
    """Returns the tensor for which PyTorch waits when a result of another rank is used, or else the tensor itself."""
    return tensor.elem if type(tensor).__name__ == "AsyncCollectiveTensor" else tensor


def is_known(tensor):
    try:
        return value_of(tensor) is not None
    except Unknown:
        return False


def held_elements(tensor):
    """The number of elements that a tensor holds, which a sparse one does not hold for zeros."""
    return tensor._nnz() if is_sparse(tensor) else tensor.numel()


def version_of(tensor):
    return 0 if tensor.is_inference() else tensor._version


def held_by(tensor):
    held = getattr(tensor, "__dict__", {}).get(VALUE)
    return find_expected(tensor, held[0], held[1]) if held and isinstance(held[1], Expected) else held


def remember(tensor, value, source=None):
    """Records the value of a tensor. If the value was changed in place, or the tensor is a view of `source`, the
    change is known for all tensors that share the memory."""
    if value is None or value.is_cuda or value.shape != tensor.shape or value.dtype != tensor.dtype:
        return
    if is_transformed(tensor) or is_transformed(value):
        return
    held, known = held_by(tensor), [0, False]
    if held is not None and held[1] is value:
        known = held[0]
    elif source is not None and is_view_alike(tensor, value, source):
        known = held_by(source)[0]
    known[:] = version_of(tensor), known[1] or Used.drawn
    setattr(tensor, VALUE, (known, value))
    size = value.element_size() * held_elements(value)
    if size >= LEAST_BYTES:
        large.add(tensor, size)


class Large:
    """Tensors whose known values are large, in the order in which the values were recorded. The oldest values are
    forgotten when all together would take more than MOST_BYTES of the machine's memory."""

    def __init__(self):
        self.tensors, self.bytes = {}, 0  # by the tensor's id: (weak reference, bytes)

    def add(self, tensor, size):
        key = id(tensor)
        self.leave_out(key)
        self.tensors[key] = weakref.ref(tensor, lambda _: self.leave_out(key)), size
        self.bytes += size
        while self.bytes > MOST_BYTES:
            first = next(iter(self.tensors))
            forgotten = self.tensors[first][0]()
            self.leave_out(first)
            if forgotten is not None:
                vars(forgotten).pop(VALUE, None)

    def leave_out(self, key):
        self.bytes -= self.tensors.pop(key, (None, 0))[1]


large = Large()


class Expected:
    """A value that another rank may not have sent yet. `find` waits for it, and raises Unknown if the rank does not know
    it."""

    def __init__(self, find):
        self.find = find


def expect(tensor, find):
    """Records that `find` will find the value of a tensor."""
    setattr(tensor, VALUE, ([version_of(tensor), False], Expected(find)))


def find_expected(tensor, state, expected):
    """Replaces what is expected of a tensor by its value, and returns what the tensor then holds."""
    before, Used.drawn = Used.drawn, False
    try:
        value = expected.find()
        if value.numel() == tensor.numel():
            state[1] = Used.drawn
            held = state, value.view(tensor.shape)
            setattr(tensor, VALUE, held)
            return held
    except Unknown:
        pass
    finally:
        Used.drawn = before
    delattr(tensor, VALUE)
    return None


def is_transformed(tensor):
    """Whether a tensor is one inside a function that torch.func transforms, which has no memory of its own."""
    import torch

    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def is_view_alike(tensor, value, source):
    """Whether a tensor is a view of the memory of `source`, and its value a view of the value of `source`."""
    held = held_by(source)
    if held is None or tensor.is_inference() or not tensor._is_view() or is_sparse(value) or is_sparse(held[1]):
        return False
    base = source._base if source._is_view() else source
    return tensor._base is base and value.untyped_storage().data_ptr() == held[1].untyped_storage().data_ptr()


def is_sparse(tensor):
    return str(tensor.layout).startswith("torch.sparse")


def on_host(thing, torch):
    """Converts an argument for the same call on the processor. Raises Unknown."""
    if isinstance(thing, torch.Tensor):
        return value_of(thing)
    if isinstance(thing, (list, tuple)) and type(thing) in (list, tuple):
        return type(thing)(on_host(item, torch) for item in thing)
    if isinstance(thing, torch.device) or isinstance(thing, str) and thing.startswith("cuda"):
        return torch.device("cpu")
    if isinstance(thing, str) and thing.startswith("torch.cuda."):  # a type of tensor, such as torch.cuda.LongTensor
        return thing.replace("cuda.", "")
    if isinstance(thing, type) and thing.__module__ == "torch.cuda":
        return getattr(torch, thing.__name__)
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
