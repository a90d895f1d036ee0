"""Makes calls that check values, or decide by them, inside of PyTorch's own code. Values that a virtual GPU does not
compute are taken to be valid, as in training that goes well. Distributions therefore check their parameters and
samples as on a real card, which takes memory."""

import ctypes
import functools

import headroom_known
import torch
from headroom_indices import to_gpu

# Calls that first read from the GPU, as one byte each, whether values are valid.
CHECKED = {"normal", "linalg_eig", "linalg_eigvals", "cov", "segment_reduce"}


class Checks:
    """`running`: whether a distribution is checking values."""

    running = False


def take_unknown_values_as_valid():
    distribution = torch.distributions.Distribution
    distribution.__init__ = with_checks(distribution.__init__)
    distribution._validate_sample = with_checks(distribution._validate_sample)


def with_checks(method):
    @functools.wraps(method)
    def checked(self, *args, **kwargs):
        if torch.compiler.is_compiling():  # values are not followed in compiled code, so it checks none
            return None if method.__name__ != "__init__" else method(self, *args, **{**kwargs, "validate_args": False})
        before, Checks.running = Checks.running, True
        try:
            return method(self, *args, **kwargs)
        finally:
            Checks.running = before

    return checked


def checks_of(name, args, kwargs):
    """Returns how many such bytes a call reads."""
    if name == "normal":  # PyTorch before 2.15 checks the standard deviations, and does so twice
        return 2
    if name == "cov":
        weights = sum(kwargs.get(which) is not None for which in ("fweights", "aweights"))
        return weights + (weights > 0)  # none is negative, and their sum is not zero
    return int(name in ("linalg_eig", "segment_reduce") or args[0].requires_grad and torch.is_grad_enabled())


def call_checked(name, function, args, kwargs):
    read_unknown_ones = ctypes.CDLL(None).headroom_gpu_read_unknown_ones
    read_unknown_ones(checks_of(name, args, kwargs))
    try:
        return function(*args, **kwargs)
    finally:
        read_unknown_ones(0)


def combinations(function, args, kwargs):
    """PyTorch before 2.15 selects the combinations by a mask that a GPU would compute."""
    tensor, *more = args
    places = function(torch.arange(len(tensor), device="cpu"), *more, **kwargs)
    return tensor[to_gpu(places, tensor.device)]


def is_in(function, args, kwargs):
    """torch.isin looks for equal values where there are many, and a virtual GPU finds not even a single one."""
    try:
        return function(*args, **kwargs)
    except IndexError:
        return function(*args, **{**kwargs, "assume_unique": True})


def matrix_exponential(function, args, kwargs):
    """The exponential of several matrices groups them by their norms, and on a virtual GPU every group is empty."""
    try:
        return function(*args, **kwargs)
    except (RuntimeError, ValueError) as error:
        if "non-empty list" not in str(error):
            raise
        matrices = args[0].flatten(end_dim=-3)
        return torch.stack([function(matrix) for matrix in matrices]).view_as(args[0])


def mode(function, args, kwargs):
    """Of more than 2,048 elements, the most frequent one is found by steps that read from the GPU. The maximum is a
    result of the same shape."""
    given = dict(zip(("input", "dim", "keepdim"), args), **kwargs)
    tensor, dim = given["input"], given.get("dim", -1)
    if tensor.dim() == 0 or tensor.shape[dim] <= 2048:
        return function(*args, **kwargs)
    return torch.return_types.mode(torch.max(tensor, dim, given.get("keepdim", False)))


def choose(function, args, kwargs):
    """Probabilities that the program copied to the processor are all 0 if they were not known, and are then taken to be
    equal."""
    try:
        return function(*args, **kwargs)
    except RuntimeError as error:
        if "sum of probabilities" not in str(error):
            raise
        headroom_known.draws.note()
        return function(torch.ones_like(args[0]), *args[1:], **kwargs)


IN_ANOTHER_WAY = {"combinations": combinations, "isin": is_in, "linalg_matrix_exp": matrix_exponential,
                  "matrix_exp": matrix_exponential, "mode": mode}


def call(name, function, args, kwargs):
    """Returns what a call returns, made in another way if it is one of those above."""
    if name in CHECKED:
        return call_checked(name, function, args, kwargs)
    if name == "multinomial" and args and not args[0].is_cuda:
        return choose(function, args, kwargs)
    if name in IN_ANOTHER_WAY and args and getattr(args[0], "is_cuda", False):
        return IN_ANOTHER_WAY[name](function, args, kwargs)
    return function(*args, **kwargs)
