"""Lets LBFGS of PyTorch take all of its iterations, as in training that goes well. It keeps a direction if its
curvature is greater than a constant, and ends a step early if gradients or changes are not greater than its
tolerances, which a virtual GPU does not compute."""

import functools

LEAST_CURVATURE = 1e-10
TOLERANCES = {"tolerance_grad": -1, "tolerance_change": -1}


def goes_well(name, args, caller):
    """Whether a call is a comparison in LBFGS that is true in a search that goes well."""
    if not caller.f_code.co_filename.endswith("/lbfgs.py"):
        return False
    if name in ("le", "__le__"):
        return caller.f_code.co_name == "_strong_wolfe"  # the slope is small enough after the first try
    return name in ("gt", "__gt__") and args[1] == LEAST_CURVATURE


def search_on(torch):
    """Lets LBFGS take all of its iterations."""
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
