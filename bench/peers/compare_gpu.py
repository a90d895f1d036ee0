#!/usr/bin/python3
"""Headroom beside PyTorch and JAX on a GPU; `scripts/peer --device cuda MODEL` calls it.

PyTorch trains the same network from the same weights on the same batches, in each way that makes it
faster or, with --allocators, under each of its allocators; the table compares step times and peak
bytes. A step begins with its batch in page-locked host memory on both sides, and ends when the weights
are updated and the host has read the loss. For JAX it shows what the start takes under each setting.
Every sample is a new process; the variants of a block have a random order. Frameworks are used if they
are installed for CUDA, and otherwise left out with a message.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, median

from compare import LOSS_TOLERANCE, centre, disagreement, headroom_sample, measure, run
from models import MODELS
from ways import HEADROOM

FOLDER = Path(__file__).resolve().parent
GPU_MODELS = ("resnet50", "bert-base", "dcgan")
BATCHES = {"resnet50": 32, "bert-base": 32, "dcgan": 128}  # as in the suite gpu
COMPARED_LOSSES = 2  # Headroom computes them on the CPU
# A captured step has one place for its batch, so that nothing is copied there ahead.
OURS = {"op by op": {}, "captured": {"execution": "captured", "pipeline": "direct"}}
OUR_ALLOCATORS = ("bfc(growth=off)", "bfc(growth=on)", "caching", "expandable", "async(release_threshold=1TiB)")
# Value of PYTORCH_ALLOC_CONF → what pytorch_steps.py must then report.
PYTORCH_ALLOCATORS = {
    "backend:native": "native",
    "expandable_segments:True": "native expandable",
    "backend:cudaMallocAsync": "cudaMallocAsync",
}
JAX = {
    "preallocation": {},
    "growth": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "platform": {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
}


def why_without(python, what):
    """Why `what` ("torch", "jax") of `python` cannot use a GPU; "" when it can."""
    probe = {
        "torch": "import torch; print(torch.cuda.is_available())",
        "jax": "import jax; print(any(d.platform == 'gpu' for d in jax.devices()))",
    }[what]
    result = subprocess.run([python, "-c", probe], capture_output=True, text=True)
    if result.returncode != 0:
        return f"{python} has no {what} ({(result.stderr.strip().splitlines() or ['?'])[-1]})"
    return "" if result.stdout.strip().endswith("True") else f"{what} of {python} sees no GPU"


def pytorch_sample(command, setting="backend:native"):
    """One fresh PyTorch process; exits when it ran under another allocator than asked for."""
    expected = PYTORCH_ALLOCATORS[setting]
    # Versions before 2.9 know only the second name.
    environment = {"PYTORCH_ALLOC_CONF": setting, "PYTORCH_CUDA_ALLOC_CONF": setting}
    sample = json.loads(run(command, environment))
    if sample["backend"] != expected:
        sys.exit(
            f"PyTorch {sample['torch']} was asked for {setting} and used {sample['backend']};"
            " this version or GPU does not have it"
        )
    return sample


def jax_sample(python, environment):
    return json.loads(run([python, FOLDER / "jax_start.py"], environment))


def gigabytes(count):
    return "-" if count is None else f"{count / 1e9:.3f}"


def pytorch_ways(model):
    """{name: flags of pytorch_steps.py} of the ways that may make a step faster."""
    ways = {"eager": []}
    if model.has_images:
        ways["channels last"] = ["--channels-last"]
    if model.has_attention:
        ways["scaled_dot_product_attention"] = ["--fused-attention"]
    name, flags = list(ways.items())[-1]
    ways["compile" if name == "eager" else f"compile, {name}"] = ["--compile", *flags]
    return ways


def report_training(samples, warmup, batch, expected, tolerance):
    """Prints the table. Returns False if a variant's first losses are not Headroom's on the CPU."""
    agree = True
    figures = {
        name: [mean(sample["step_seconds"][warmup:]) for sample in of_arm] for name, of_arm in samples.items()
    }
    print(f"{'program':<44} {'ms/step':>8} {'samples/s':>10} {'allocated GB':>13} {'reserved GB':>12}  loss")
    for name, of_arm in samples.items():
        seconds = median(figures[name])
        off = max(disagreement(s["loss"][: len(expected)], expected) for s in of_arm)
        agree = agree and off <= tolerance
        peaks = [max(s[f"peak_{kind}_bytes"] for s in of_arm) for kind in ("allocated", "reserved")]
        print(
            f"{name:<44} {1e3 * seconds:8.2f} {batch / seconds:10.1f} {gigabytes(peaks[0]):>13} "
            f"{gigabytes(peaks[1]):>12}  off by {off:.1e}"
        )
    ours = min((name for name in figures if name.startswith("Headroom")), key=lambda name: median(figures[name]))
    for compiled in (False, True):
        of_kind = [name for name in figures if name.startswith("PyTorch") and ("compile" in name) == compiled]
        if of_kind:
            theirs = min(of_kind, key=lambda name: median(figures[name]))
            ratio = centre([a / b for a, b in zip(figures[ours], figures[theirs])])
            print(f"{ours} takes {ratio:.3f} of the time of {theirs}.")
    return agree


def compare_training(options, model, batch):
    workload = model.workload.format(batch=batch, image=model.image)
    optimizer = f"sgd(learning_rate={model.learning_rate})"
    steps = options.warmup + options.steps
    cell = {
        "workload": workload,
        "device": "cuda",
        "rules": "cudnn",
        "allocator": "bfc(growth=on)",
        "execution": "last_use",
        "pipeline": "staging(2)|direct",  # batches in page-locked memory, as PyTorch's here
        "optimizer": optimizer,
        "precision": options.precision,
        "warmup_steps": options.warmup,
        "measured_steps": options.steps,
    }
    ours = {each: {"allocator": each} for each in OUR_ALLOCATORS} if options.allocators else OURS
    arms = {
        f"Headroom, {name}": lambda change=change: headroom_sample({**cell, **change}, options.seed)
        for name, change in ours.items()
    }
    with tempfile.TemporaryDirectory(prefix="headroom-peer-") as state:
        # The state and the expected losses come from the host; both sides are compared with them.
        export = [HEADROOM, "export-state", workload, "--optimizer", optimizer]
        run([*export, "--seed", options.seed, "--steps", COMPARED_LOSSES, "--out", state])
        manifest = json.loads((Path(state) / "manifest.json").read_text())
        script = [options.python, FOLDER / "pytorch_steps.py", model.module, state]
        script += ["--steps", steps, "--device", "cuda"] + ["--autocast"] * (options.precision == "bf16")
        if options.allocators:
            for setting in PYTORCH_ALLOCATORS:
                arms[f"PyTorch, {setting}"] = lambda setting=setting: pytorch_sample(script, setting)
        else:
            for name, flags in pytorch_ways(model).items():
                arms[f"PyTorch, {name}"] = lambda flags=flags: pytorch_sample([*script, *flags])
        samples = measure(arms, options.blocks, options.warmup, random.Random(options.seed))
    expected = [step["loss"] for step in manifest["steps"]]
    tolerance = LOSS_TOLERANCE[options.precision]
    if not report_training(samples, options.warmup, batch, expected, tolerance):
        sys.exit(f"The losses differ by more than {tolerance}: not the same training.")


def compare_start(options):
    print(f"{'JAX':<16} {'seconds to the first array':>27} {'GB gone from the device':>25}")
    for name, environment in JAX.items():
        samples = [jax_sample(options.python, environment) for _ in range(options.blocks)]
        gone = [s["device_bytes"] for s in samples if s["device_bytes"] is not None]
        print(
            f"{name:<16} {median(s['start_seconds'] for s in samples):27.2f} "
            f"{gigabytes(median(gone) if gone else None):>25}"
        )


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/peer --device cuda", description=__doc__.splitlines()[0]
    )
    parser.add_argument("model", choices=GPU_MODELS)
    parser.add_argument("--python", default=sys.executable, help="one that has torch or jax for CUDA")
    parser.add_argument("--blocks", type=int, default=5, help="samples of each variant (default 5)")
    parser.add_argument("--batch", type=int, help="default: that of the suite gpu")
    parser.add_argument(
        "--precision", choices=LOSS_TOLERANCE, default="bf16", help="of products and convolutions (default bf16)"
    )
    parser.add_argument("--allocators", action="store_true", help="compare allocators instead of ways to compute")
    parser.add_argument("--warmup", type=int, default=5, help="steps that do not count (default 5)")
    parser.add_argument("--steps", type=int, default=20, help="steps that count (default 20)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    options = parser.parse_args()
    print(f"seed {options.seed}", file=sys.stderr)
    missing = {what: why_without(options.python, what) for what in ("torch", "jax")}
    for why in filter(None, missing.values()):
        print(f"Left out: {why}. Name a Python that has it with --python.", file=sys.stderr)
    if all(missing.values()):
        sys.exit("There is no framework here to compare with.")
    if not missing["torch"]:
        model = MODELS[options.model]
        compare_training(options, model, options.batch or BATCHES[options.model])
    if not missing["jax"]:
        compare_start(options)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
