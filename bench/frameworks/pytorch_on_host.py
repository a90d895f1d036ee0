"""Trains a network with PyTorch on the machine's own processor and says what each step took.

network, batch, sequence, width, depth, image, classes, size, vocabulary: as for pytorch_training.py.
optimizer: usual, sgd or adam. The first `warmup` steps come before the `steps` that count, in `turns` with other
programs if that is a descriptor (TurnTaker of harness/base/subprocess.h). Images are noise from `seed`.
"""

import ctypes
import socket
import time

import card

given = card.options(network="resnet50", batch=2, sequence=128, width=64, depth=50, image=224, classes=1000,
                     size="base", vocabulary=0, optimizer="usual", warmup=2, steps=5, seed=0,
                     turns=-1)
card.forget_settings("PYTORCH_", "TORCH_")

import torch  # noqa: E402

import pytorch_networks  # noqa: E402

pytorch_networks.DEVICE = "cpu"


def device_allocations():
    """How often the served allocator asked for memory so far; None where PyTorch's own serves."""
    ask = getattr(ctypes.CDLL(None), "headroom_device_allocations", None)
    if ask is None:
        return None
    ask.restype = ctypes.c_uint64
    return ask(-1)


class Turns:
    """Sleeps while it is not this program's turn."""

    def __init__(self, descriptor):
        self.socket = None if descriptor < 0 else socket.socket(fileno=descriptor)
        self.steps_left = 0

    def before_step(self, word):
        """Passes the turn on, with a word of 64 bits, when its steps are used up."""
        if self.socket is None:
            return
        if self.steps_left == 0:
            self.socket.send(word.to_bytes(8, "little"))
            self.steps_left = int.from_bytes(self.socket.recv(8), "little")
            if self.steps_left == 0:
                raise RuntimeError("the process that gives turns has gone")
        self.steps_left -= 1


def noise_for(part):
    return torch.randn_like(part) if part.is_floating_point() else part


def train(figures):
    torch.manual_seed(given["seed"])
    model, loss_of, batch, optimizer = pytorch_networks.make(given)
    batch = [noise_for(part) for part in batch]
    turns, asked = Turns(given["turns"]), None
    for step in range(given["warmup"] + given["steps"]):
        if step == given["warmup"]:
            asked = device_allocations()
        if step >= given["warmup"]:
            turns.before_step(step_time_ns[-1])
        began = time.perf_counter_ns()
        loss_of(*batch).backward()
        optimizer.step()
        optimizer.zero_grad()
        step_time_ns.append(time.perf_counter_ns() - began)
    if asked is not None:
        figures["steady_device_allocations_per_step"] = (device_allocations() - asked) / given["steps"]


def why_out_of_memory(error):
    text = str(error)
    return text.splitlines()[0] if "DefaultCPUAllocator: " in text else ""


step_time_ns = []
figures, note = card.trained(train, dict, why_out_of_memory)
card.report(f"PyTorch {torch.__version__}", figures, note, step_time_ns=step_time_ns if figures["trained"] else [])
