#!/usr/bin/python3
"""One sample of the peer: training steps in PyTorch from a state Headroom exported.

Reads the folder that `headroom export-state` wrote (initial weights, the batch of each step, the
loss of each step), trains on the same batches and prints one JSON object: seconds and loss of
every step and, on a GPU, what PyTorch's allocator says of its memory. `scripts/peer` runs it in
fresh processes, interleaved with Headroom's own. With --memory it times nothing and prints the
peak of live bytes instead.
"""

import argparse
import itertools
import json
import sys
import time

import torch
from peer_model import Exported


def on_device(array, memory_format, device):
    """Copies an array of host memory to the device; on a GPU the array is page-locked."""
    if device == "cuda":
        copy = array.to(device, non_blocking=True)
        return copy.contiguous(memory_format=memory_format) if array.dim() == 4 else copy
    return array.clone(memory_format=memory_format) if array.dim() == 4 else array.clone()


def train(turns, batches, steps, memory_format, device):
    """Seconds and the first turn's loss of each step; step i takes batch i modulo their number. As
    in Headroom, a step begins with a batch in host memory and ends when the weights are updated and
    the host has read the loss."""
    seconds, losses = [], []
    if device == "cuda":
        batches = [{name: array.pin_memory() for name, array in batch.items()} for batch in batches]
    for step in range(steps):
        start = time.perf_counter()
        batch = {
            name: on_device(array, memory_format, device)
            for name, array in batches[step % len(batches)].items()
        }
        of_turns = []
        for turn in turns:
            of_turns.append(turn.backward(batch).item())
            turn.optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()  # the update is still queued
        losses.append(of_turns[0])
        seconds.append(time.perf_counter() - start)
    return seconds, losses


def in_bfloat16(loss, device):
    """The loss whose products and convolutions are computed in bfloat16, as autocast chooses them."""

    def mixed(model, batch):
        with torch.autocast(device, dtype=torch.bfloat16):
            return loss(model, batch)

    return mixed


def peak_live_bytes(model, train_steps):
    """The most bytes of tensors alive at once while `train_steps()` runs: what the model holds
    before, and every tensor that PyTorch's profiler saw. Scratch memory that libraries allocate by
    themselves is not included."""
    weights = itertools.chain(model.parameters(), model.buffers())  # tied ones once
    held = sum(each.numel() * each.element_size() for each in weights)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        train_steps()
    sizes = []  # (time, bytes), negative where a tensor is freed

    def collect(events):
        for event in events:
            if hasattr(event.extra_fields, "alloc_size"):
                sizes.append((event.start_time_ns, event.extra_fields.alloc_size))
            collect(event.children)

    collect(profile.profiler.kineto_results.experimental_event_tree())
    changes = [size for _, size in sorted(sizes, key=lambda each: each[0])]
    return held + max(itertools.accumulate(changes, initial=0))


def gpu_memory():
    """What PyTorch's allocator has taken, and which one it really was. {} on the CPU."""
    if not torch.cuda.is_initialized():
        return {}
    statistics = torch.cuda.memory_stats()
    expandable = any(each.get("is_expandable", False) for each in torch.cuda.memory_snapshot())
    return {
        "gpu": torch.cuda.get_device_name(),
        "backend": torch.cuda.get_allocator_backend() + (" expandable" if expandable else ""),
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "retries": statistics.get("num_alloc_retries", 0),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="module of this folder")
    parser.add_argument("state", help="folder that headroom export-state wrote")
    parser.add_argument("--steps", type=int, help="steps to train (default: those exported)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--channels-last", action="store_true", help="NHWC activations and weights")
    parser.add_argument("--compile", action="store_true", help="torch.compile of the loss")
    parser.add_argument("--autocast", action="store_true", help="products in bfloat16")
    parser.add_argument("--fused-attention", action="store_true", help="scaled_dot_product_attention")
    parser.add_argument("--memory", action="store_true", help="peak of live bytes, no times")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit(
            f"PyTorch {torch.__version__} of {sys.executable} sees no GPU; install a PyTorch built"
            " for CUDA there, or name a Python that has one with --python"
        )
    torch.set_num_threads(arguments.threads)
    # As Headroom computes: float32 with all its bits.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    memory_format = torch.channels_last if arguments.channels_last else torch.contiguous_format

    exported = Exported(arguments.state, arguments.model)
    model = exported.model().to(memory_format=memory_format).to(arguments.device)
    turns = exported.training(model)
    for module in model.modules():
        if hasattr(module, "fused_attention"):
            module.fused_attention = arguments.fused_attention
    if arguments.autocast:
        for turn in turns:
            turn.loss = in_bfloat16(turn.loss, arguments.device)
    if arguments.compile:
        for turn in turns:
            turn.loss = torch.compile(turn.loss)
    batches = [exported.batch(step) for step in range(len(exported.manifest["steps"]))]
    steps = arguments.steps or len(batches)
    if arguments.memory:
        peak = peak_live_bytes(model, lambda: train(turns, batches, steps, memory_format, arguments.device))
        print(json.dumps({"torch": torch.__version__, "peak_live_bytes": peak}))
        return
    seconds, losses = train(turns, batches, steps, memory_format, arguments.device)
    result = {"torch": torch.__version__, "step_seconds": seconds, "loss": losses}
    print(json.dumps({**result, **gpu_memory()}))


if __name__ == "__main__":
    main()
