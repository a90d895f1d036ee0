"""What comparisons of values that a virtual GPU does not compute are taken to say: that these values are finite, as in
training that goes well, and close to what they are compared with."""

import math
import operator
import sys

import headroom_draws
import headroom_inside
import headroom_solvers
import torch
from headroom_known import Unknown, comparisons, first_tensor, on_host, remember, value_of

MOST_FINITE = 1 << 26  # elements of a result of isfinite and the like, all of which are equal
FINITE = {"isfinite": True, "isnan": False, "isinf": False, "isposinf": False, "isneginf": False, "isclose": True}
COMPARED = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
NOT_STRICT = {"ge", "le", "__ge__", "__le__"}  # comparisons that hold for two equal values
NOT_STRICTLY = "_headroom_not_strictly"  # attribute of the result of such a comparison that holds for zeros
COMPARES = {"allclose", "equal"}  # calls that tell whether two tensors are equal as a whole


def assume(name, args, result):
    """Records what is assumed of the result of a comparison or of a check. Returns whether the call is one."""
    if name in FINITE:
        keep_alike(FINITE[name], result)
        if name == "isclose" and result.is_cuda and not headroom_inside.Checks.running:
            comparisons.note()
    elif name == "all" and hasattr(first_tensor(args, torch), NOT_STRICTLY):  # a check, as of the corners of boxes
        keep_alike(True, result)
        if not headroom_inside.Checks.running:
            comparisons.note()
    elif name.strip("_") in COMPARED and len(args) > 1:
        assume_of_elements(name, args, result)
    else:
        return False
    return True


def assume_of_elements(name, args, result):
    """Records what is assumed of each element of the result of a comparison."""
    answer = answer_for_finite(name, args)
    if answer is not None:
        keep_alike(answer, result)
    elif headroom_solvers.goes_well(name, args, sys._getframe(3)):
        keep_alike(True, result)
    elif name in NOT_STRICT and holds_for_zeros(name, args):
        setattr(result, NOT_STRICTLY, True)
    else:
        headroom_draws.draw_mask(result)


def answer_for_finite(name, args):
    """Returns what a comparison answers for every finite value: one with infinity, such as that of a loss with the best
    one before the first, or of a tensor with itself, which is a check for NaN. None for another call."""
    left, right = map(infinity_or_zero, args[:2])
    return COMPARED[name.strip("_")](left, right) if left != right or args[0] is args[1] else None


def holds_for_zeros(name, args):
    """Whether a comparison with a tensor or a number holds where unknown values are 0."""
    other = args[1]
    return isinstance(other, torch.Tensor) or isinstance(other, (int, float)) and COMPARED[name.strip("_")](0, other)


def scalar_of(thing):
    """Returns the known value of a tensor with one element as a number, and anything else as it is."""
    try:
        return value_of(thing).item() if isinstance(thing, torch.Tensor) and thing.numel() == 1 else thing
    except Unknown:
        return thing


def infinity_or_zero(operand):
    """Returns an infinite operand as a number, and 0 for another one."""
    operand = scalar_of(operand)
    return operand if isinstance(operand, float) and math.isinf(operand) else 0


def keep_alike(answer, result):
    """Records that all elements of a result have one value."""
    if type(result) is torch.Tensor and result.is_cuda and result.numel() <= MOST_FINITE:
        remember(result, torch.tensor(answer, dtype=result.dtype, device="cpu").expand(result.shape))


def compare(name, function, args, kwargs):
    """Returns whether two tensors are equal. Those with unknown values are, if their shapes are."""
    result = function(*args, **kwargs)
    compared = [thing for thing in (*args, *kwargs.values()) if isinstance(thing, torch.Tensor)]
    if not any(tensor.is_cuda for tensor in compared):
        return result
    try:
        return function(*[on_host(a, torch) for a in args], **{key: on_host(a, torch) for key, a in kwargs.items()})
    except Unknown:
        if name == "equal" and compared[0].shape != compared[1].shape:
            return False
        comparisons.note()
        return True
