"""Calls that decide inside of PyTorch's own library by values that a virtual GPU does not compute, and would fail or
return too few elements. Each function here makes such a call in another way."""

import torch
from headroom_indices import to_gpu


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
    """The exponential of several matrices sorts them by their norms."""
    try:
        return function(*args, **kwargs)
    except (RuntimeError, ValueError) as error:
        if "non-empty list" not in str(error):
            raise
        matrices = args[0].flatten(end_dim=-3)
        return torch.stack([function(matrix) for matrix in matrices]).view_as(args[0])


def mode(function, args, kwargs):
    """Of more than 2,048 elements, the most frequent one is looked for by steps that read from the GPU. The maximum has a
    result of the same shape."""
    given = dict(zip(("input", "dim", "keepdim"), args), **kwargs)
    tensor, dim = given["input"], given.get("dim", -1)
    if tensor.dim() == 0 or tensor.shape[dim] <= 2048:
        return function(*args, **kwargs)
    return torch.return_types.mode(torch.max(tensor, dim, given.get("keepdim", False)))


IN_ANOTHER_WAY = {"combinations": combinations, "isin": is_in, "linalg_matrix_exp": matrix_exponential,
                  "matrix_exp": matrix_exponential, "mode": mode}
