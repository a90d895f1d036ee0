"""Shared by the models of this folder: finds one by name and reads what Headroom exported.

A model is a module with two functions. `build(values)` returns the network whose values (name →
manifest entry) were exported, with the same names of parameters. `loss(model, batch)` returns the
loss of a batch (input's name → tensor). Where networks take turns within a step, the module has
`TURNS` in place of `loss`: (prefix of the parameters that learn, their loss), in order.
"""

import importlib
import json
from pathlib import Path

import numpy
import torch

# Headroom's suffix of a value's name → PyTorch's, where they differ.
SUFFIXES = {"scale": "weight", "shift": "bias", "running_variance": "running_var"}


def parameter_name(value_name):
    """PyTorch's name of a value."""
    module, suffix = value_name.rsplit(".", 1)
    return f"{module}.{SUFFIXES.get(suffix, suffix)}"


def read_array(folder, value):
    """The tensor a manifest entry names: plain row-major, little-endian."""
    dtype = {"f32": "<f4", "s32": "<i4"}[value["dtype"]]
    array = numpy.fromfile(folder / value["file"], dtype).reshape(value["shape"])
    return torch.from_numpy(array)


class Exported:
    """The folder that `headroom export-state` wrote, and the model it belongs to."""

    def __init__(self, folder, model):
        self.folder = Path(folder)
        self.manifest = json.loads((self.folder / "manifest.json").read_text())
        self.module = importlib.import_module(model)

    def model(self):
        """The network with the exported weights and statistics; raises when one is missing."""
        values = self.manifest["values"]
        model = self.module.build({value["name"]: value for value in values})
        state = {
            parameter_name(value["name"]): read_array(self.folder, value)
            for value in values
            if value["role"] in ("weight", "statistic")
        }
        seen = {k: v for k, v in model.state_dict().items() if k.endswith("num_batches_tracked")}
        model.load_state_dict({**seen, **state}, strict=True)
        return model.train()

    def batch(self, step):
        """{name: tensor} of the inputs of a step, counted from 0."""
        inputs = self.manifest["steps"][step]["inputs"]
        return {value["name"]: read_array(self.folder, value) for value in inputs}

    def training(self, model):
        """The turns of a training step, each with the exported optimizer."""
        turns = getattr(self.module, "TURNS", None) or (("", self.module.loss),)
        return [Turn(model, prefix, loss, self.manifest["optimizer"]) for prefix, loss in turns]


class Turn:
    """Part of a training step: some parameters learn, the others are frozen meanwhile."""

    def __init__(self, model, prefix, loss, rule):
        self.model = model
        self.learning = {
            name: each for name, each in model.named_parameters() if name.startswith(prefix)
        }
        self.frozen = [
            each for name, each in model.named_parameters() if not name.startswith(prefix)
        ]
        self.loss = loss
        self.optimizer = torch.optim.SGD(
            self.learning.values(),
            lr=rule["learning_rate"],
            momentum=rule["momentum"],
            weight_decay=rule["weight_decay"],
        )

    def backward(self, batch):
        """The loss, its gradients left in the learning parameters."""
        for each in self.frozen:
            each.requires_grad_(False)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model, batch)
        loss.backward()
        for each in self.frozen:
            each.requires_grad_(True)
        return loss
