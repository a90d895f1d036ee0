#!/usr/bin/python3
"""How far Headroom's first gradients lie from PyTorch's in double precision.

Reads the folder that `headroom export-state` wrote. The momentum after the first step is the
gradient plus the decayed weight, for every weight of the network. The error of PyTorch's own single
precision is given for each tensor as well: it shows what rounding alone may cost. Prints one
JSON object {tensor: {"headroom": error, "float32": error}}; `scripts/peer` reads it.
"""

import argparse
import json

import torch
from peer_model import Exported, parameter_name, read_array

# Some gradients are zero except for rounding, such as that of an attention key's bias, which shifts all
# scores of a query alike. Errors are relative to at least this share of all gradients together.
SMALLEST_SHARE = 1e-4


def gradients(exported, dtype):
    """{parameter: gradient plus decayed weight} of the first exported batch, in double."""
    decay = exported.manifest["optimizer"]["weight_decay"]
    decayed = {}
    for turn in exported.training(exported.model().to(dtype)):
        turn.backward(exported.batch(0))
        for name, parameter in turn.learning.items():
            decayed[name] = parameter.grad.double() + decay * parameter.detach().double()
        turn.optimizer.step()
    return decayed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="module of this folder")
    parser.add_argument("state", help="folder that headroom export-state wrote")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    exported = Exported(arguments.state, arguments.model)

    exact = gradients(exported, torch.float64)
    single = gradients(exported, torch.float32)
    floor = SMALLEST_SHARE * torch.stack([each.norm() for each in exact.values()]).norm()
    errors = {}
    for value in exported.manifest["states_after_first_step"]:
        name = parameter_name(value["name"].removesuffix(".velocity"))
        ours = read_array(exported.folder, value).double()
        norm = max(exact[name].norm(), floor)
        errors[name] = {
            "headroom": float((ours - exact[name]).norm() / norm),
            "float32": float((single[name] - exact[name]).norm() / norm),
        }
    if errors.keys() != exact.keys():
        raise SystemExit(f"no gradient for {sorted(exact.keys() - errors.keys())}")
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
