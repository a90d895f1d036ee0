"""Lets values that a virtual GPU does not compute pass the checks of PyTorch, as in training that goes well: those of
the parameters and samples of distributions, which take memory, and those inside of calls."""

import ctypes
import functools

import torch

# Calls that first read from the GPU, as one byte each, whether values are valid.
CHECKED_INSIDE = {"normal", "linalg_eig", "linalg_eigvals", "cov"}


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
    return int(name == "linalg_eig" or args[0].requires_grad and torch.is_grad_enabled())


def call_checked(name, function, args, kwargs):
    read_unknown_ones = ctypes.CDLL(None).headroom_gpu_read_unknown_ones
    read_unknown_ones(checks_of(name, args, kwargs))
    try:
        return function(*args, **kwargs)
    finally:
        read_unknown_ones(0)
