"""Lets the solvers of torchdiffeq choose their steps. They judge a step by an error that a virtual GPU does not compute
where a network is a part of the equation; the step then shrinks to nothing."""

import functools

import headroom_known
import torch

WITHIN_TOLERANCE = 0.99  # an error, relative to the tolerance, with which a step is accepted and keeps its length


def is_known(tensor):
    try:
        return headroom_known.value_of(tensor) is not None
    except headroom_known.Unknown:
        return False


def take_as(value, result):
    """Records the value of a result, unless it is known."""
    if not is_known(result):
        headroom_known.steps.note()
        headroom_known.remember(result, torch.tensor(value, dtype=result.dtype, device="cpu"))
    return result


def take_even_steps(solver):
    """Called after torchdiffeq._impl.rk_common has been imported. The first step is the one that the solver chooses for
    an equation whose solution and derivatives are about 1; each following one is as long."""
    if not headroom_known.FOLLOW:
        return
    choose, judge = solver._select_initial_step, solver._compute_error_ratio

    @functools.wraps(choose)
    def first_step(function, time, start, order, rtol, atol, *more, **named):
        chosen = choose(function, time, start, order, rtol, atol, *more, **named)
        tolerance = float(torch.as_tensor(rtol).min() + torch.as_tensor(atol).min())
        return take_as((0.01 * tolerance) ** (1 / (order + 1)), chosen)

    @functools.wraps(judge)
    def error(*arguments, **named):
        return take_as(WITHIN_TOLERANCE, judge(*arguments, **named))

    solver._select_initial_step, solver._compute_error_ratio = first_step, error
