#!/usr/bin/python3
"""One sample of the peer: ResNet-50 training steps in PyTorch from a state Headroom exported.

Reads the folder that `headroom export-state` wrote (initial weights, the batch of each step, the
loss of each step), trains on the same batches and prints one JSON object: seconds and loss of
every step. `scripts/peer` runs it in fresh processes, interleaved with Headroom's own.
"""

import argparse
import json
import time
from pathlib import Path

import numpy
import torch
from torch import nn

# Headroom's suffix of a value's name → PyTorch's.
SUFFIXES = {
    "scale": "weight",
    "shift": "bias",
    "running_mean": "running_mean",
    "running_variance": "running_var",
    "weight": "weight",
    "bias": "bias",
}


class Bottleneck(nn.Module):
    """1×1, 3×3 (which carries the stride), 1×1 to four times the width, plus the input."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet50(nn.Module):
    """He et al., "Deep Residual Learning for Image Recognition" (2016), with the stride on the
    3×3 convolution, as torchvision builds it."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, (blocks, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512)), start=1):
            layer = nn.Sequential()
            for block in range(blocks):
                stride = 2 if stage > 1 and block == 0 else 1
                layer.append(Bottleneck(channels, width, stride))
                channels = 4 * width
            setattr(self, f"layer{stage}", layer)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def read_array(folder, value):
    """The tensor a manifest entry names: plain row-major, little-endian."""
    dtype = {"f32": "<f4", "s32": "<i4"}[value["dtype"]]
    array = numpy.fromfile(folder / value["file"], dtype).reshape(value["shape"])
    return torch.from_numpy(array)


def load_weights(model, folder, values):
    """Fills every parameter and statistic of `model`; raises KeyError when one is missing."""
    state = {}
    for value in values:
        if value["role"] in ("weight", "statistic"):
            module, suffix = value["name"].rsplit(".", 1)
            state[f"{module}.{SUFFIXES[suffix]}"] = read_array(folder, value)
    batches_seen = {k: v for k, v in model.state_dict().items() if k.endswith("num_batches_tracked")}
    model.load_state_dict({**batches_seen, **state}, strict=True)


def train(model, batches, optimizer, steps, memory_format):
    """Seconds and loss of each step; step i takes batch i modulo their number. As in Headroom,
    a step lasts from a batch in host memory to updated weights and a loss the host has read."""
    criterion = nn.CrossEntropyLoss()
    seconds, losses = [], []
    for step in range(steps):
        images, labels = batches[step % len(batches)]
        start = time.perf_counter()
        images = images.clone(memory_format=memory_format)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(images), labels.long())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return seconds, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("state", type=Path, help="folder that headroom export-state wrote")
    parser.add_argument("--steps", type=int, help="steps to train (default: those exported)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--channels-last", action="store_true", help="NHWC activations and weights")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    memory_format = torch.channels_last if arguments.channels_last else torch.contiguous_format

    manifest = json.loads((arguments.state / "manifest.json").read_text())
    values = {value["name"]: value for value in manifest["values"]}
    model = ResNet50(classes=values["fc.weight"]["shape"][0])
    load_weights(model, arguments.state, manifest["values"])
    model = model.to(memory_format=memory_format).train()
    rule = manifest["optimizer"]
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=rule["learning_rate"],
        momentum=rule["momentum"],
        weight_decay=rule["weight_decay"],
    )
    batches = [
        tuple(read_array(arguments.state, value) for value in step["inputs"])
        for step in manifest["steps"]
    ]
    steps = arguments.steps or len(batches)
    seconds, losses = train(model, batches, optimizer, steps, memory_format)
    print(json.dumps({"torch": torch.__version__, "step_seconds": seconds, "loss": losses}))


if __name__ == "__main__":
    main()
