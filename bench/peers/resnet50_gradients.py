#!/usr/bin/python3
"""How far Headroom's first gradients lie from PyTorch's in double precision.

Reads the folder that `headroom export-state` wrote. The momentum after the first step is the
gradient plus the decayed weight, for every weight of the network. Beside each tensor's relative
error stands that of PyTorch's own single precision: what rounding alone may cost. Prints one
JSON object {tensor: {"headroom": error, "float32": error}}; `scripts/peer` reads it.
"""

import argparse
import json
from pathlib import Path

import torch
from resnet50_pytorch import SUFFIXES, ResNet50, load_weights, read_array


def gradients(folder, manifest, dtype):
    """{parameter: gradient plus decayed weight} of the first exported batch, in double."""
    values = {value["name"]: value for value in manifest["values"]}
    model = ResNet50(classes=values["fc.weight"]["shape"][0])
    load_weights(model, folder, manifest["values"])
    model = model.to(dtype).train()
    images, labels = (read_array(folder, value) for value in manifest["steps"][0]["inputs"])
    torch.nn.functional.cross_entropy(model(images.to(dtype)), labels.long()).backward()
    decay = manifest["optimizer"]["weight_decay"]
    return {
        name: parameter.grad.double() + decay * parameter.detach().double()
        for name, parameter in model.named_parameters()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("state", type=Path, help="folder that headroom export-state wrote")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    manifest = json.loads((arguments.state / "manifest.json").read_text())

    exact = gradients(arguments.state, manifest, torch.float64)
    single = gradients(arguments.state, manifest, torch.float32)
    errors = {}
    for value in manifest["states_after_first_step"]:
        module, suffix = value["name"].removesuffix(".velocity").rsplit(".", 1)
        name = f"{module}.{SUFFIXES[suffix]}"
        ours = read_array(arguments.state, value).double()
        norm = exact[name].norm()
        errors[name] = {
            "headroom": float((ours - exact[name]).norm() / norm),
            "float32": float((single[name] - exact[name]).norm() / norm),
        }
    if errors.keys() != exact.keys():
        raise SystemExit(f"no gradient for {sorted(exact.keys() - errors.keys())}")
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
