"""Weights without values: filling them takes a processor's time and changes no byte of memory."""

import torch.nn.init


def leave(tensor, *_, **__):
    return tensor


def install():
    """To be called before the library that makes the model is imported."""
    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(torch.nn.init, name, leave)
