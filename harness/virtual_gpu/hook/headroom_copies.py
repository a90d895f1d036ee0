"""Large tensors of floating-point numbers that a program copies to the GPU, such as images. What is calculated from
them is not followed, but what they are compared with is: a mask of the depths that a sensor measured selects as many
elements as on a real card."""

import collections
import functools
import weakref

import torch
from headroom_known import MOST_ELEMENTS, remember, version_of

COPY = "_headroom_copy"  # attribute of a tensor on the GPU: what it was copied from, and the versions of both then
LOADED = "_headroom_loaded"  # attribute of a storage on the GPU: the one on the host that it was copied from
MOST_LOADED = 1 << 16  # bytes of such a storage
LATEST = collections.deque(maxlen=16)  # only these sources are kept, or a large model would stay on the host, too
VIEWS = {"detach", "squeeze", "unsqueeze", "view", "reshape", "flatten", "permute", "transpose", "select", "narrow",
         "__getitem__", "float"}
# Calls whose results are known if such a tensor is among their arguments.
QUESTIONS = {*(f"{before}{name}{after}" for name in ("lt", "le", "gt", "ge", "eq", "ne")
               for before, after in (("", ""), ("__", "__"))), "isnan", "isfinite", "isinf", "bool"}


def copy_of(tensor):
    """Returns the tensor on the processor that a tensor was copied from, or None if either was changed since."""
    source, *versions = getattr(tensor, "__dict__", {}).get(COPY, (lambda: None,))
    source = source()
    return source if source is not None and versions == [version_of(source), version_of(tensor)] else None


def is_slice(index):
    """Whether an index takes a view, unlike one that has positions or masks."""
    items = index if isinstance(index, tuple) else (index,)
    return all(item is None or item is Ellipsis or type(item) in (int, slice) for item in items)


def follow(name, function, args, kwargs, result):
    """Notes what a result was copied from, or is a view of."""
    if type(result) is not torch.Tensor or not result.is_cuda or not result.is_floating_point() or not args:
        return
    source = args[1 if name == "copy_" and len(args) > 1 else 0]
    if name in VIEWS:
        source = copy_of(source)
        if source is None or name == "__getitem__" and not is_slice(args[1]):
            return
        source = function(source, *args[1:], **kwargs)
    elif name not in ("to", "cuda", "copy_") or type(source) is not torch.Tensor or source.device.type != "cpu":
        return
    if source.shape == result.shape and result.numel() <= MOST_ELEMENTS:
        source = source.detach()
        LATEST.append(source)
        setattr(result, COPY, (weakref.ref(source), version_of(source), version_of(result)))


def know_what_is_loaded():
    """Lets a program know small tensors that torch.load puts on the GPU, such as how many steps an optimizer has taken,
    by which Adam divides."""
    to, rebuild = torch.UntypedStorage.to, torch._utils._rebuild_tensor

    @functools.wraps(to)
    def to_and_note(storage, **options):
        result = to(storage, **options)
        if result.device.type == "cuda" and storage.device.type == "cpu" and storage.nbytes() <= MOST_LOADED:
            setattr(result, LOADED, storage)
        return result

    @functools.wraps(rebuild)
    def rebuild_known(storage, *layout):
        tensor = rebuild(storage, *layout)
        loaded = getattr(storage._untyped_storage, LOADED, None)
        if loaded is not None:
            remember(tensor, torch.empty(0, dtype=storage.dtype, device="cpu").set_(loaded, *layout).clone())
        return tensor

    torch.UntypedStorage.to, torch._utils._rebuild_tensor = to_and_note, rebuild_known
