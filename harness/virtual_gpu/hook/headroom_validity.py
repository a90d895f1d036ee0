"""Lets values that a virtual GPU does not compute pass the checks of PyTorch, as in training that goes well: those of
the parameters and samples of distributions, which take memory, and those inside of calls."""

import ctypes
import functools

import torch

# Calls that first read from the GPU, as one byte, whether values are valid, and how often they do so. PyTorch before
# 2.15 checks the standard deviations of a normal distribution.
CHECKED_INSIDE = {"normal": 2, "linalg_eig": 1, "linalg_eigvals": 1}


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


def call_checked(name, function, args, kwargs):
    read_unknown_ones = ctypes.CDLL(None).headroom_gpu_read_unknown_ones
    read_unknown_ones(CHECKED_INSIDE[name])
    try:
        return function(*args, **kwargs)
    finally:
        read_unknown_ones(0)
