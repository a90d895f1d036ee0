#!/usr/bin/python3
"""Headroom beside PyTorch on the same training steps; `scripts/peer` calls it.

Both start from the same weights and see the same batches. Headroom's first gradients must be
close to those in double precision, and the first losses must agree.
Every sample is a new process; a block runs every variant once, in random order, so that drift of
the machine affects all alike. The figure of a sample is its mean step time after warm-up.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, median

from models import MODELS
from ways import HEADROOM, set_up_python, variants, without_gpu

COMPARED_LOSSES = 5
LOSS_TOLERANCE = {"fp32": 1e-3, "bf16": 2e-2}  # bf16 keeps 8 bits of a product's operands


def run(command, environment=None):
    """What `command` prints; exits with its stderr when it fails."""
    result = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stderr}")
    return result.stdout


def disagreement(losses, expected):
    """Largest difference of a loss from the expected one, relative where that is above 1."""
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(losses, expected, strict=True))


def headroom_json(cell, seed):
    """The sample of one fresh Headroom process."""
    request = {"cell": cell, "seed": seed, "trace_path": ""}
    sample = json.loads(run([HEADROOM, "sample", json.dumps(request)]))
    if sample["status"] != "ok":
        sys.exit(f"headroom: {sample['status']}: {sample['reason']}")
    return sample


def headroom_sample(cell, seed):
    """Seconds and loss of each step of one fresh Headroom process, and its peaks in bytes. Reading
    the batch is left out: the peer finds it in memory."""
    sample = headroom_json(cell, seed)
    times = zip(sample["step_time_ns"], sample["stall_time_ns"], strict=True)
    return {
        "step_seconds": [(step - stall) / 1e9 for step, stall in times],
        "loss": sample["loss"],
        "peak_allocated_bytes": sample["memory"]["allocated_bytes"]["overall_peak"],
        "peak_reserved_bytes": sample["memory"]["reserved_bytes"]["overall_peak"],
    }


@dataclass(frozen=True)
class PyTorch:
    """The peer: a Python that has PyTorch, and what its processes are told."""

    python: Path
    environment: dict[str, str]
    threads: int

    def run(self, script, model, state, *flags, environment=None):
        """The JSON object that a script of this folder prints in a fresh process."""
        command = [self.python, Path(__file__).parent / script, model.module, state]
        options = ["--threads", self.threads, *flags]
        return json.loads(run([*command, *options], {**self.environment, **(environment or {})}))


def check_gradients(peer, model, state):
    """Exits unless every gradient is close to that in double precision; prints the largest errors to stderr."""
    errors = peer.run("gradients.py", model, state)
    worst = {arm: max(error[arm] for error in errors.values()) for arm in ("headroom", "float32")}
    print(
        f"gradients of {len(errors)} weights against double: Headroom at most "
        f"{worst['headroom']:.1e} off, PyTorch in float32 {worst['float32']:.1e}",
        file=sys.stderr,
    )
    wrong = [
        f"{name} {error['headroom']:.1e} ({error['float32']:.1e})"
        for name, error in errors.items()
        if error["headroom"] > model.gradient_tolerance
    ]
    if wrong:
        sys.exit(f"Gradients differ (Headroom's error, PyTorch's own): {', '.join(wrong)}: not the same training.")


def report_memory(peer, model, cell, seed, state):
    """Prints the peak of live bytes of both over three steps: an exact count, not a time."""
    ours = headroom_json({**cell, "warmup_steps": 1, "measured_steps": 2}, seed)
    ours = ours["memory"]["requested_bytes"]["overall_peak"]
    flags = ["--autocast"] if cell["precision"] == "bf16" else []
    theirs = peer.run("pytorch_steps.py", model, state, "--steps", 3, "--memory", *flags)["peak_live_bytes"]
    print(
        f"Peak of live bytes: Headroom {ours / 2**20:.1f} MiB, PyTorch {theirs / 2**20:.1f} MiB "
        f"({ours / theirs:.3f} of PyTorch's)."
    )


def centre(ratios):
    """Hodges–Lehmann estimate on the log scale: the median of all pairwise geometric means."""
    return median(sqrt(a * b) for i, a in enumerate(ratios) for b in ratios[i:])


def measure(arms, blocks, warmup, generator):
    """{variant: [samples]}, with one sample of each variant in a block."""
    samples = {name: [] for name in arms}
    for block in range(blocks):
        order = generator.sample(list(arms), k=len(arms))
        for name in order:
            samples[name].append(arms[name]())
            seconds = mean(samples[name][-1]["step_seconds"][warmup:])
            print(f"block {block + 1}/{blocks}  {name}: {seconds:.4f} s a step", file=sys.stderr)
    return samples


def report(samples, warmup, batch, expected, tolerance):
    """Prints the table. Returns False if a variant's first losses disagree with Headroom's in fp32."""
    figures = {
        name: [mean(sample["step_seconds"][warmup:]) for sample in of_arm]
        for name, of_arm in samples.items()
    }
    agree = True
    print(f"{'program':<52} {'s/step':>7} {'samples/s':>9}  {'time of Headroom / its time (range)':<36} loss")
    for name, seconds in figures.items():
        ratios = [ours / theirs for ours, theirs in zip(figures["headroom"], seconds)]
        off = max(disagreement(s["loss"][: len(expected)], expected) for s in samples[name])
        agree = agree and off <= tolerance
        print(
            f"{name:<52} {median(seconds):7.3f} {batch / median(seconds):9.2f}  "
            f"{centre(ratios):6.3f} ({min(ratios):.3f} to {max(ratios):.3f}, "
            f"{len(ratios)} blocks)   off by {off:.1e}"
        )
    peers = {name: median(seconds) for name, seconds in figures.items() if name != "headroom"}
    for kind, mixed in (("fp32", False), ("bf16", True)):
        of_kind = [name for name in peers if ("autocast" in name) == mixed]
        if of_kind:
            best = min(of_kind, key=peers.get)
            ratio = centre([a / b for a, b in zip(figures["headroom"], figures[best])])
            print(f"Best peer in {kind}: {best}. Headroom takes {ratio:.3f} times as long a step.")
    return agree


def main():
    parser = argparse.ArgumentParser(prog="scripts/peer", description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--blocks", type=int, default=5, help="samples of each variant (default 5); 0: no times")
    parser.add_argument("--batch", type=int, help="default: the model's")
    parser.add_argument(
        "--precision", choices=LOSS_TOLERANCE, default="fp32",
        help="bf16: Headroom's precision=bf16 beside PyTorch with autocast and without (default fp32)",
    )
    parser.add_argument("--image", type=int, help="pixels of a ResNet (default: the model's)")
    parser.add_argument("--warmup", type=int, default=2, help="steps that do not count (default 2)")
    parser.add_argument("--steps", type=int, default=6, help="steps that count (default 6)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--python", type=Path, help="has PyTorch (default: what `scripts/setup --with pytorch` made, else Debian's)"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    options = parser.parse_args()
    model = MODELS[options.model]
    batch = options.batch or model.batch
    python = options.python or set_up_python()
    peer = PyTorch(python, without_gpu(python), options.threads)
    print(f"seed {options.seed}", file=sys.stderr)

    cell = {
        "workload": model.workload.format(batch=batch, image=options.image or model.image),
        "device": "host",
        "rules": "onednn",
        "allocator": "bfc(growth=on)",
        "execution": "graph",
        "pipeline": "direct",
        "optimizer": f"sgd(learning_rate={model.learning_rate})",
        "precision": options.precision,
        "warmup_steps": options.warmup,
        "measured_steps": options.steps,
    }
    steps = options.warmup + options.steps
    with tempfile.TemporaryDirectory(prefix="headroom-peer-") as state:
        export = [HEADROOM, "export-state", cell["workload"], "--optimizer", cell["optimizer"]]
        run([*export, "--seed", options.seed, "--steps", steps, "--out", state])
        manifest = json.loads((Path(state) / "manifest.json").read_text())
        check_gradients(peer, model, state)
        report_memory(peer, model, cell, options.seed, state)
        arms = {
            "headroom": lambda: headroom_sample(cell, options.seed),
            **{
                f"PyTorch, {name}": lambda flags=flags, environment=environment: peer.run(
                    "pytorch_steps.py", model, state, "--steps", steps, *flags, environment=environment
                )
                for name, (environment, flags) in variants(model, options.threads, options.precision).items()
            },
        }
        if options.blocks == 0:
            return
        samples = measure(arms, options.blocks, options.warmup, random.Random(options.seed))
    expected = [step["loss"] for step in manifest["steps"]][:COMPARED_LOSSES]
    tolerance = LOSS_TOLERANCE[options.precision]
    if not report(samples, options.warmup, batch, expected, tolerance):
        sys.exit(f"The losses differ by more than {tolerance}: not the same training.")


if __name__ == "__main__":
    main()
