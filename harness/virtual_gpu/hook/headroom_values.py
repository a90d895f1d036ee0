"""Follows values that can be known without a GPU. Kernels of a virtual GPU compute nothing, but the values
that a program copies to it (masks, labels, lengths), and values computed from these alone, can be computed on
the processor by the same calls. So code that asks "is any token masked?" takes the path that it takes on a
real card.

Integers, booleans and small constants are followed outside of torch.compile. Each followed tensor keeps its value on
the host; a change that is not followed makes it unknown."""

import re
import sys

import headroom_comparisons
import headroom_copies
import headroom_draws
import headroom_inside
import headroom_mode
import headroom_solvers
import torch
import torch.fx
import torch.utils.checkpoint
from headroom_comparisons import keep_alike, scalar_of
from headroom_indices import (
    CHOOSES,
    READ_INSIDE,
    all_different,
    as_places,
    coalesce,
    elements_by_mask,
    fills_by_mask,
    least_count,
    note_outside,
    repeated_length,
    selected_by_mask,
    to_gpu,
    with_bounds_on_host,
    with_values_on_host,
)
from headroom_known import (
    MOST_ELEMENTS,
    Unknown,
    Used,
    decisions,
    draws,
    duplicates,
    first_tensor,
    held_elements,
    is_known,
    is_sparse,
    masks,
    number_read,
    on_host,
    reads,
    remember,
    value_of,
)

MOST_CONSTANTS = 1 << 22  # elements of a constant that is not an integer, such as a mask that is added
# Elements of a floating-point tensor filled with one value, as by zeros_like; of a larger one, one element is kept.
MOST_FILLED = 1 << 16
MOST_COPIED = 1 << 14  # elements of a copy from the host that does not hold integers
MOST_SPARSE = 1 << 20  # elements of a sparse tensor that are not zero

CONSTANTS = {"arange", "as_tensor", "asarray", "empty_like", "eye", "full", "linspace", "ones",
             "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros"}
READS = {"item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__", "__format__",
         "__contains__", "is_nonzero"}
NAMED_READS = {"item", "tolist", "__int__", "__float__"}
# Calls whose results have shapes that depend on values.
FINDS_NONZERO = {"nonzero", "argwhere", "to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"}
SHAPED_BY_VALUES = {"masked_select", "unique", "unique_consecutive", "bincount", "repeat_interleave", "one_hot", "nms",
                    "__getitem__", *FINDS_NONZERO}
SELECTS = {"where", *FINDS_NONZERO}
SHAPED_BY_PLACES = {"_sparse_sum", "sum", "index_select", "select", "__getitem__"}  # of sparse tensors
DECIDES = {"__bool__", "__index__", "bincount", "masked_select", *SELECTS, *SHAPED_BY_PLACES}
FINDS_EQUAL = {"unique", "unique_consecutive"}
# Calls that give one value to every element: a number, or the argument with this name or at this position.
FILLED = {"zero_": 0, "zeros_like": 0, "ones_like": 1, "new_zeros": 0, "new_ones": 1,
          "empty": 0, "empty_like": 0, "new_empty": 0,
          "fill_": ("value", 1), "full_like": ("fill_value", 1), "new_full": ("fill_value", 2)}
# Calls that would set this argument. It keeps its known value, because gradients are assumed to be finite.
LEFT = {"_amp_foreach_non_finite_check_and_unscale_": 1}
# Calls that change arguments, and how many of the first ones.
CHANGED = {"_amp_update_scale_": 2, "__setitem__": 1}
CHANGE_LIST = {"_foreach_add_"}  # calls that change the tensors of their first argument
# Calls of which one operand with this value determines the result, whatever the other operand is.
ABSORBING = {
    **dict.fromkeys(("__and__", "__rand__", "__iand__", "logical_and", "bitwise_and"), False),
    **dict.fromkeys(("__or__", "__ror__", "__ior__", "logical_or", "bitwise_or"), True),
}
# Calls of which the argument at this position matters for its type, device and shape, but not for its values.
LIKE = {"type_as": 1, "to": 1, "expand_as": 1, "view_as": 1, "reshape_as": 1, "new_tensor": 0}
# Calls that may copy from the GPU to the processor, and the position of what they copy.
SOURCE = {"to": 0, "copy_": 1}
NOT_FOLLOWED = re.compile("rand|drop|bernoulli|multinomial|normal|uniform|exponential|gumbel|geometric|"
                          "cauchy|poisson|empty|resize|set_|share|pin_memory|record_stream|backward|hook")


def alike_on_host(thing):
    """Returns a tensor on the processor with the type and the shape of one on the GPU, or else the argument itself."""
    if not isinstance(thing, torch.Tensor):
        return on_host(thing, torch)
    return torch.zeros((), dtype=thing.dtype, device="cpu").expand(thing.shape)


def is_refused(name, others, options):
    """Whether PyTorch refuses this call of a tensor on a GPU: NumPy reads none, others may not be on the host, and while a
    CUDA graph is captured, nothing is read."""
    return torch.cuda.is_current_stream_capturing() or name == "numpy" and not options.get("force") or any(
        isinstance(each, torch.Tensor) and not each.is_cuda and each.dim() for each in (*others, *options.values()))


def is_without_values():
    """Whether calls of PyTorch are made under a FakeTensorMode, which refuses tensors that have values."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


class FollowValues(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # torch.fx records the call, or the compiler looks for shapes only: there is no value yet.
        if any(issubclass(kind, torch.fx.Proxy) for kind in types) or is_without_values():
            return function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        Used.drawn = False
        if name in headroom_comparisons.COMPARES:
            return headroom_comparisons.compare(name, function, args, kwargs)
        if (name == "__repr__" or name == "__format__" and args[0].dim()) and args[0].is_cuda and is_known(args[0]):
            with self:
                return torch._tensor_str._str(args[0], **kwargs)
        if name == "coalesce" and args[0].is_cuda and not args[0].is_coalesced():
            return coalesce(args[0])
        if name in ("__getitem__", "__setitem__"):
            args = (args[0], with_bounds_on_host(args[1]), *args[2:])
        if name in READS or name in SHAPED_BY_VALUES or name == "where" and len(args) == 1 or (
                name in SHAPED_BY_PLACES and args and is_sparse(args[0])):
            done, result = self.by_value(name, function, args, kwargs)
            if done:
                if Used.drawn and name not in READS - DECIDES:
                    draws.note()
                return result
        elif name == "__setitem__":
            if not fills_by_mask(*args[1:]):
                args = (args[0], as_places(args[1]), args[2])
        elif name in READ_INSIDE:
            args, kwargs = with_values_on_host(name, args, kwargs)
        elif name in CHOOSES:
            note_outside(name, args, kwargs)
        host = self.host_call(name, args, kwargs)
        left = self.value_left(name, args)
        result = headroom_inside.call(name, function, args, kwargs)
        headroom_copies.follow(name, function, args, kwargs, result)
        if name in SOURCE and len(args) > SOURCE[name]:
            self.keep_on_processor(result, args[SOURCE[name]])
        if left is not None:
            remember(args[LEFT[name]], left)
        elif host is not None:
            self.keep(name, function, args, host, result)
        elif headroom_comparisons.assume(name, args, result):
            pass
        elif name in FILLED:
            self.keep_filling(result, FILLED[name], args, kwargs)
        elif name == "copy_":
            self.keep_copy(result, args[1])
        elif name == "stack" and result.dim() == 1:
            self.keep_scalars(result, (*args, kwargs.get("tensors"))[0])
        elif name in ABSORBING and self.is_absorbed(ABSORBING[name], args, result):
            keep_alike(ABSORBING[name], result)
        elif name in headroom_draws.GENERATED and headroom_draws.is_generated(result):
            headroom_draws.generate(name, function, args, kwargs, result)
        elif name in headroom_draws.DRAWN:
            headroom_draws.draw(name, function, args, kwargs, result)
        return result

    def host_call(self, name, args, kwargs):
        """Returns the arguments of the same call on the processor, or None if the call is not
        followed."""
        tensor = first_tensor(args, torch)
        if tensor is None:
            tensor = first_tensor(kwargs.values(), torch)
        if tensor is None and name not in CONSTANTS or NOT_FOLLOWED.search(name):
            return None
        try:
            host = ([self.argument_on_host(name, at, argument) for at, argument in enumerate(args)],
                    {key: on_host(a, torch) for key, a in kwargs.items()})
        except Unknown:
            return None
        host[1].pop("pin_memory", None)
        if tensor is None or "device" in host[1]:
            host[1]["device"] = "cpu"
        if name == "to" and [type(a) for a in args[1:2]] == [int]:  # the number of a card
            host[0][1] = "cpu"
        if name in ("cuda", "to", "copy_", "contiguous", "clone") and not tensor.is_cuda:
            host[0][0] = host[0][0].clone()  # the program may change its own copy later
        if name == "cuda":
            host = (host[0][:1], {})
        return host

    def argument_on_host(self, name, at, argument):
        if LIKE.get(name) == at:
            return alike_on_host(argument)
        if name in headroom_copies.QUESTIONS and (copy := headroom_copies.copy_of(argument)) is not None:
            return copy.to(argument.dtype)
        return on_host(argument, torch)

    def keep(self, name, function, args, host, result):
        """Records the value of what a call on the GPU returned or changed."""
        results = result if isinstance(result, (list, tuple)) else [result]
        changed = list(args[0] if name in CHANGE_LIST else args[: CHANGED.get(name, 0)])
        if not any(self.is_followed(r, args) for r in [*results, *changed]):
            return
        try:
            with torch.no_grad():
                values = host[0][0] if name == "cuda" else function(*host[0], **host[1])
        except Exception:  # calls that the processor cannot execute are not followed
            return
        if changed:
            results, values = changed, host[0][0] if name in CHANGE_LIST else host[0][: len(changed)]
        values = values if isinstance(values, (list, tuple)) else [values]
        for tensor, value in zip(results, values):
            if isinstance(value, torch.Tensor) and self.is_followed(tensor, args):
                remember(tensor, value, first_tensor(args, torch))

    def value_left(self, name, args):
        """Returns the known value of the argument that a call leaves unchanged, or None."""
        try:
            return value_of(args[LEFT[name]]) if name in LEFT else None
        except Unknown:
            return None

    def is_followed(self, tensor, args):
        if type(tensor) is not torch.Tensor or not tensor.is_cuda:
            return False
        source = first_tensor(args, torch)
        most = MOST_ELEMENTS
        if tensor.is_floating_point() or tensor.is_complex():
            most = MOST_CONSTANTS if source is None else most if source.is_cuda else MOST_COPIED
        if is_sparse(tensor):
            most = MOST_SPARSE
        return held_elements(tensor) <= most

    def is_absorbed(self, absorbing, operands, result):
        """Whether one of two operands is a known boolean that determines the result."""
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

    def keep_filling(self, result, value, args, kwargs):
        if type(value) is tuple:
            name, at = value
            value = scalar_of(kwargs[name] if name in kwargs else args[at])
        most = MOST_CONSTANTS if result.is_floating_point() else MOST_ELEMENTS
        if not isinstance(value, (bool, int, float)) or not result.is_cuda or result.numel() > most:
            return
        one_for_all = result.is_floating_point() and result.numel() > MOST_FILLED
        filled = torch.full(() if one_for_all else result.shape, value, dtype=result.dtype, device="cpu")
        remember(result, filled.expand(result.shape))

    def keep_copy(self, result, source):
        """Records the value of a tensor all of whose elements a copy has replaced."""
        if not isinstance(source, torch.Tensor) or not self.is_followed(result, [source]):
            return
        try:
            remember(result, value_of(source).to(result.dtype).expand(result.shape).clone())
        except Unknown:
            pass

    def keep_scalars(self, result, scalars):
        """Records a row of scalars of which some are known, such as a sum of losses and their number. Others are 0."""
        known = {}
        for position, scalar in enumerate(scalars):
            try:
                known[position] = value_of(scalar)
            except Unknown:
                pass
        if known and result.is_cuda and type(result) is torch.Tensor:
            values = torch.zeros(len(result), dtype=result.dtype, device="cpu")
            for position, value in known.items():
                values[position] = value
            remember(result, values)
            reads.note()

    def keep_on_processor(self, result, source):
        """Gives what was copied from the GPU to the processor its known value."""
        if not isinstance(source, torch.Tensor) or not source.is_cuda or result.device.type != "cpu":
            return
        try:
            # PyTorch does not count a change of `data`. Selective checkpointing refuses tensors that have changed.
            result.data.copy_(value_of(source))
        except Unknown:
            return
        if Used.drawn:
            draws.note()

    def by_value(self, name, function, args, kwargs):
        """Returns (True, result) for a call that needs values and has them."""
        tensor = args[0] if args else None
        if name == "__getitem__" and not is_sparse(tensor):
            return elements_by_mask(args)
        if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda or is_refused(name, args[1:], kwargs):
            return False, None
        if name == "masked_select" and len(args) == 2:
            done, result = selected_by_mask(*args)
            if done:
                return done, result
        if name in SELECTS:
            headroom_draws.draw_mask(tensor)
        try:
            values = ([on_host(a, torch) for a in args],
                      {key: on_host(a, torch) for key, a in kwargs.items()})
        except Unknown:
            if name == "repeat_interleave" and (total := repeated_length(args, kwargs)) is not None:
                return True, function(*args, **{**kwargs, "output_size": total})
            if name == "bincount" and (least := least_count(args, kwargs)) is not None:
                return True, function(*args[:2], **{**kwargs, "minlength": least})
            if name in FINDS_EQUAL:
                duplicates.note()
                return True, all_different(function, args, kwargs)
            if name == "__bool__" and headroom_inside.Checks.running:
                return True, True
            if name == "masked_select" or name in SELECTS and tensor.dtype == torch.bool:
                masks.note()
            elif name in DECIDES or name == "one_hot" and len(args) + len(kwargs) == 1:
                decisions.note()
            # Zero is used instead of what an earlier tensor left in the same memory.
            if name in ("item", "__int__", "__float__") and tensor.numel() == 1:
                zero = function(tensor.new_zeros(tensor.shape, device="cpu"))
                return True, number_read(zero, sys._getframe(2))
            if name in NAMED_READS:
                reads.note()
            return (name in ("__bool__", "__index__") and tensor.numel() == 1), {"__bool__": False}.get(name, 0)
        if tensor.requires_grad and name not in READS:  # a result of the processor would have no gradient
            if name == "repeat_interleave" and (total := repeated_length(args, kwargs)) is not None:
                return True, function(*args, **{**kwargs, "output_size": total})
            if name in FINDS_NONZERO or is_sparse(tensor):
                decisions.note()
            return False, None
        result = function(*values[0], **values[1])
        if name == "cpu":
            return True, result.clone()
        return True, result if name in READS else to_gpu(result, tensor.device)


def follow():
    """Enters the mode that follows values for the rest of the program."""
    mode = FollowValues()
    mode.__enter__()
    headroom_mode.leave_out_compiled_code(torch, mode)
    headroom_mode.hide_from_fast_paths(torch, mode)
    headroom_mode.keep_inside_of_calls(torch, mode)
    headroom_mode.keep_in_operators(torch, mode)
    headroom_mode.keep_in_threads(torch, mode)
    headroom_mode.keep_out_of_files(torch)
    headroom_draws.repeat_with_random_numbers(torch)
    headroom_draws.repeat_in_checkpoints(torch.utils.checkpoint)
    headroom_copies.know_what_is_loaded()
    headroom_solvers.search_on()
    headroom_inside.take_unknown_values_as_valid()
