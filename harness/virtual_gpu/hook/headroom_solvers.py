"""Iterative methods that decide by values which a virtual GPU does not compute: LBFGS of PyTorch, and the solvers of
torchdiffeq. They judge a step by its error; where a network is a part of the equation, the step would shrink to
nothing."""

import functools

import headroom_known
import torch

WITHIN_TOLERANCE = 0.99  # an error, relative to the tolerance, with which a step is accepted and keeps its length
LEAST_CURVATURE = 1e-10  # with which LBFGS keeps a direction
TOLERANCES = {"tolerance_grad": -1, "tolerance_change": -1}  # of LBFGS, which no error is below


def take_as(value, result):
    """Records the value of a result, unless it is known."""
    if not headroom_known.is_known(result):
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


def goes_well(name, args, caller):
    """Whether a call is a comparison in LBFGS that is true in a search that goes well."""
    if not caller.f_code.co_filename.endswith("/lbfgs.py"):
        return False
    if name in ("le", "__le__"):
        return caller.f_code.co_name == "_strong_wolfe"  # the slope is small enough after the first try
    return name in ("gt", "__gt__") and args[1] == LEAST_CURVATURE


def search_on():
    """Lets LBFGS take all of its iterations, as in training that goes well. It keeps a direction if its curvature is
    greater than a constant, and ends a step early if gradients or changes are not greater than its tolerances."""
    step = torch.optim.LBFGS.step

    @functools.wraps(step)
    def step_on(self, closure):
        group = self.param_groups[0]
        tolerances = {name: group[name] for name in TOLERANCES}
        group.update(TOLERANCES)
        try:
            return step(self, closure)
        finally:
            group.update(tolerances)

    torch.optim.LBFGS.step = step_on
