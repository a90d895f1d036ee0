"""Sizes, positions and masks of calls on a virtual GPU, with their known values on the processor in place of tensors
on the GPU, so that results have the shapes that they have on a real one."""

import headroom_draws
import torch
from headroom_known import Unknown, Used, decisions, duplicates, masks, on_host, outside, remember, value_of

# Calls that read the values of these arguments in C++, by position or name. Most of them are sizes.
READ_INSIDE = {
    "ctc_loss": slice(2, 4),
    **dict.fromkeys(("arange", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm",
                     "tril_indices", "triu_indices", "zeros"), slice(0, None)),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
                     "adaptive_max_pool2d", "adaptive_max_pool3d", "as_strided", "avg_pool1d", "avg_pool2d",
                     "broadcast_to", "chunk", "expand", "fold", "interpolate", "max_pool1d", "max_pool2d", "multinomial",
                     "narrow", "new_empty", "new_full", "new_ones", "new_zeros", "pad", "repeat", "reshape", "roll",
                     "split", "split_with_sizes", "tensor_split", "tile", "topk", "tril", "triu", "unflatten", "unfold",
                     "view"), slice(1, None)),
}
READ_INSIDE_BY_NAME = {"chunks", "diagonal", "dims", "end", "high", "input_lengths", "k", "kernel_size", "length",
                       "low", "n", "num_samples", "output_size", "repeats", "sections", "shape", "shifts", "size", "sizes",
                       "split_size", "split_size_or_sections", "split_sizes", "start", "step", "stride",
                       "target_lengths"}

# Calls that choose by an index or by labels, and their first parameters.
CHOOSES = {"embedding": ("input", "weight"), **dict.fromkeys(("gather", "index_select"), ("input", "dim", "index")),
           **dict.fromkeys(("cross_entropy", "nll_loss"), ("input", "target", "weight", "size_average", "ignore_index"))}


def note_outside(name, args, kwargs):
    """Notes the line if known indices or labels lie outside of what they choose from, as a card would find out."""
    given = {**dict(zip(CHOOSES[name], args)), **kwargs}
    try:
        if name == "embedding":
            index, size = value_of(given["input"]), given["weight"].shape[0]
        elif "target" in given:
            index, scores = value_of(given["target"]), given["input"].shape
            index, size = index[index != given.get("ignore_index", -100)], scores[min(len(scores) - 1, 1)]
        else:
            index, size = value_of(given["index"]), given["input"].shape[given["dim"]]
    except (Unknown, IndexError, KeyError, TypeError):
        return
    if index.numel() and not index.is_floating_point() and not Used.drawn:
        least, most = index.aminmax()
        if least < 0 or most >= size:
            outside.note()


def is_mask(index):
    return type(index) is torch.Tensor and index.dtype == torch.bool and index.is_cuda


def value_of_mask(mask):
    """Returns which elements a mask selects, drawn if that is not known but their share is. Raises Unknown."""
    headroom_draws.draw_mask(mask)
    return value_of(mask)


def numbers_on_host(thing):
    """Returns sizes, positions or the like with known tensors of the GPU replaced by tensors on the processor."""
    if isinstance(thing, torch.Tensor) and thing.is_cuda:
        try:
            return value_of(thing)
        except Unknown:
            decisions.note()
            return thing
    if type(thing) in (list, tuple):
        return type(thing)(map(numbers_on_host, thing))
    if type(thing) is slice:
        return slice(*map(numbers_on_host, (thing.start, thing.stop, thing.step)))
    return thing


def with_bounds_on_host(index):
    """Returns an index whose slices begin and end at numbers on the processor."""
    if type(index) is slice:
        return numbers_on_host(index)
    if type(index) is tuple:
        return tuple(numbers_on_host(item) if type(item) is slice else item for item in index)
    return index


def with_values_on_host(name, args, kwargs):
    """Returns the arguments of a call of READ_INSIDE with known values replaced by tensors on the processor."""
    args, which = list(args), READ_INSIDE[name]
    args[which] = [numbers_on_host(thing) for thing in args[which]]
    return tuple(args), {
        name: numbers_on_host(thing) if name in READ_INSIDE_BY_NAME else thing for name, thing in kwargs.items()}


def elements_by_mask(args):
    """Returns (True, the elements of a tensor that an index with known masks selects), or (False, None) for another
    index."""
    tensor, index = args
    items = index if type(index) is tuple else (index,)
    if not any(map(is_mask, items)) or type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not tensor.is_cuda:
        return False, None
    if not fit(items, tensor.shape):
        return False, None
    places = as_places(index)
    if places is index:
        masks.note()
        return False, None
    result = tensor[places]
    try:
        remember(result, value_of(tensor)[on_host(index, torch)])
    except Unknown:
        pass
    return True, result


def selected_by_mask(tensor, mask):
    """Returns (True, what masked_select returns) for a known mask, which is as large as the tensor after both have been
    expanded, or (False, None)."""
    shape = torch.broadcast_shapes(tensor.shape, mask.shape, (1,))
    try:
        known = value_of_mask(mask).expand(shape)
    except Unknown:
        return False, None
    mask = mask.expand(shape)
    remember(mask, known)
    return elements_by_mask((tensor.expand(shape), mask))


def fit(items, shape):
    """Whether each mask in an index has the shape of the dimensions that it stands for."""
    spans = [item.dim() if is_mask(item) else int(item is not None and item is not Ellipsis) for item in items]
    left = len(shape) - sum(spans)  # dimensions that an ellipsis stands for
    first = 0
    for item, span in zip(items, spans):
        if is_mask(item) and item.shape != shape[first : first + span]:
            return False
        first += left if item is Ellipsis else span
    return True


def as_places(index):
    """Returns the index with each known mask replaced by the positions that it selects."""
    places = []
    for item in index if type(index) is tuple else (index,):
        try:
            places += to_gpu(value_of_mask(item).nonzero(as_tuple=True), item.device) \
                if is_mask(item) else [item]
        except Unknown:
            return index
    return index if type(index) is not tuple and places[0] is index else tuple(places)


def fills_by_mask(index, value):
    """Whether x[index] = value fills what a mask selects with a number that lies on the processor. For that PyTorch needs
    no positions, which would take memory and cannot be copied while a CUDA graph is captured."""
    items = index if type(index) is tuple else (index,)
    is_on_host = not isinstance(value, torch.Tensor) or not value.is_cuda and value.numel() == 1
    return is_on_host and sum(isinstance(item, (torch.Tensor, list)) for item in items) == 1


def repeated_length(args, kwargs):
    """Returns the length of what repeat_interleave makes of an unknown tensor, or None if it is unknown, too."""
    repeats = kwargs["repeats"] if "repeats" in kwargs else args[1] if len(args) > 1 else None
    if not isinstance(repeats, torch.Tensor):
        return None
    try:
        counts = value_of(repeats)
    except Unknown:
        return None
    dim = kwargs["dim"] if "dim" in kwargs else (*args, None, None)[2]
    length = args[0].numel() if dim is None else args[0].shape[dim]
    return int(counts.sum()) * (length if counts.numel() == 1 else 1)


def least_count(args, kwargs):
    """Returns the number of counts that bincount makes of known numbers with unknown weights, or None."""
    least = kwargs["minlength"] if "minlength" in kwargs else (*args, 0, 0)[2]
    try:
        numbers = value_of(args[0])
    except Unknown:
        return None
    return max(least, int(numbers.max()) + 1) if numbers.numel() else least


def coalesce(tensor):
    """Returns a sparse tensor with one element for each of its places. Unknown places are taken to be different."""
    indices, values = tensor._indices(), tensor._values()
    for find in (lambda: torch.unique(value_of(indices), dim=1), lambda: value_of(tensor).coalesce().indices()):
        try:
            places = find()
            break
        except Unknown:
            pass
    else:
        duplicates.note()
        places = indices
    sums = values.new_empty((places.shape[1], *values.shape[1:]))
    return torch.sparse_coo_tensor(to_gpu(places, tensor.device), sums, tensor.shape, is_coalesced=True,
                                   check_invariants=False)


def all_different(function, args, kwargs):
    """Returns what a call that looks for equal values returns if there are none. The values are not known."""
    tensor = args[0]
    different = torch.arange(tensor.numel(), device="cpu").view(tensor.shape).to(tensor.dtype)
    results = function(different, *args[1:], **kwargs)
    if isinstance(results, tuple):
        return tuple(result.to(tensor.device) for result in results)
    return results.to(tensor.device)


def to_gpu(value, device):
    if isinstance(value, (list, tuple)):
        return type(value)(to_gpu(item, device) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    result = value.to(device)
    remember(result, value)
    return result
