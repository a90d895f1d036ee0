#!/usr/bin/env python3
"""Repeats published runs of torchtitan and torchao by their own programs on virtual GPUs.

bench/fidelity/projects.py DIR [WORD...] --torchtitan CLONE --torchao CLONE [--python PYTHON]

The clones are those of https://github.com/pytorch/torchtitan and https://github.com/pytorch/ao. PYTHON has PyTorch 2.6.0,
torchvision, torchao 0.8.0, timm, bitsandbytes, datasets, torchdata, tiktoken, tensorboard and tyro. Each row whose name
contains a WORD (default: all) is run and its line in projects.csv replaced. DIR gets all that is written. Prints a table
as Markdown."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from repeats import HEADROOM, HERE, checkout, read_lines, write_lines

RESULTS = HERE / "projects.csv"
COLUMNS = ["row", "measured", "virtual", "unit", "here"]
COMMITS = {"torchtitan": ("9dec370ad26b5f8e9a7333a0e36165018262644b", "."), "torchao": ("v0.8.0", "benchmarks")}
FLOAT8 = ("--float8.enable_float8_linear --float8.enable_fsdp_float8_all_gather"
          " --float8.precompute_float8_dynamic_scale_for_fsdp")  # fmt: skip
FULL = f"--training.compile {FLOAT8} --activation_checkpoint.mode full"


def titan(size, ranks, options):
    """A rank of torchtitan on an H100 with 96 GB."""
    return (f"h100-80gb --memory 95GiB --world {ranks}", "torchtitan_rank.py",
            f"--job.config_file train_configs/llama3_{size}.toml --metrics.log_freq 1 --training.steps 3"
            f" --metrics.disable_color_printing {options}", r".*memory: *([\d.]+)GiB", "GiB")  # fmt: skip


def low_bit(optimizer):
    """ViT-H with an optimizer on an RTX 4070 Ti SUPER."""
    return ("rtx4070tisuper", "low_bit_optimizer.py",
            "--model timm/vit_huge_patch14_224.orig_in21k --amp bf16 --compile --batch_size 8 --n_epochs 1"
            f" --cosine_lr_scheduler --n_workers 2 --optim {optimizer}", r".*Max memory used: ([\d.]+) GB", "GB")  # fmt: skip


def context_parallel(degree):
    return titan("8b", 8, f"--training.batch_size 1 {FULL} --training.seq_len {32768 * degree}"
                 f" --experimental.context_parallel_degree {degree}")  # fmt: skip


ROWS = {  # name: (what was measured, how it is repeated)
    "torchtitan: 8B, FSDP 8": (82.4, titan("8b", 8, "--training.batch_size 2")),
    "torchtitan: 8B, FSDP 8, compiled": (77.0, titan("8b", 8, "--training.batch_size 2 --training.compile")),
    "torchtitan: 8B, FSDP 8, compiled, FP8": (
        76.8, titan("8b", 8, f"--training.batch_size 2 --training.compile {FLOAT8}")),
    "torchtitan: 8B, FSDP 128": (67.0, titan("8b", 128, "--training.batch_size 2")),
    "torchtitan: 8B, FSDP 128, compiled": (62.0, titan("8b", 128, "--training.batch_size 2 --training.compile")),
    "torchtitan: 8B, FSDP 128, compiled, FP8": (
        61.8, titan("8b", 128, f"--training.batch_size 2 --training.compile {FLOAT8}")),
    "torchtitan: 8B, 32,768 tokens, FSDP 8": (83.9, context_parallel(1)),
    "torchtitan: 8B, 65,536 tokens, FSDP 4, context 2": (84.2, context_parallel(2)),
    "torchtitan: 8B, 131,072 tokens, FSDP 2, context 4": (84.0, context_parallel(4)),
    "torchtitan: 8B, 262,144 tokens, context 8": (84.5, context_parallel(8)),
    "torchtitan: 70B, FSDP 32, tensors 8, compiled, FP8": (
        71.9, titan("70b", 256, f"--training.batch_size 16 {FULL}")),
    "torchao: AdamW (fused)": (12.23, low_bit("AdamW")),
    "torchao: 8-bit of bitsandbytes": (8.32, low_bit("AdamW8bitBnb")),
    "torchao: 8-bit": (8.33, low_bit("AdamW8bitAo")),
    "torchao: FP8": (8.33, low_bit("AdamWFp8Ao")),
    "torchao: 4-bit": (7.72, low_bit("AdamW4bitAo")),
}  # fmt: skip


def repeat(name, options):
    """Returns the line of a row, after it has run on the virtual GPU."""
    measured, (card, program, arguments, pattern, unit) = ROWS[name]
    project = name.split(":")[0]
    commit, folder = COMMITS[project]
    place = checkout(getattr(options, project), commit, options.directory / project) / folder
    out = options.directory / re.sub(r"\W+", "-", name)
    shutil.rmtree(out, ignore_errors=True)  # of a try that did not end
    command = [HEADROOM, "gpu", *card.split(), "--until-step", "all", "--out", out, "--", options.python,
               HERE / "programs" / program, *arguments.split()]  # fmt: skip
    # Memory that the compiler allocates while it compiles stays reserved, as it did there, so its cache is off.
    ran = subprocess.run(command, cwd=place, env={**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
                         capture_output=True, text=True)  # fmt: skip
    found = re.findall(pattern, ran.stdout + ran.stderr)
    if ran.returncode or not found:
        sys.exit(f"{name} did not end:\n{ran.stderr[-2000:]}{ran.stdout[-2000:]}")
    here = re.search(r"of PyTorch (\d[^\s);]*)", ran.stdout)[1]
    return dict(zip(COLUMNS, [name, str(measured), found[-1], unit, here]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--torchtitan", type=Path, required=True)
    parser.add_argument("--torchao", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_intermixed_args()
    options.directory = options.directory.resolve()
    lines = read_lines(RESULTS)
    for name in ROWS:
        if options.words and not any(word in name for word in options.words):
            continue
        lines[name] = repeat(name, options)
        write_lines(RESULTS, COLUMNS, [lines[key] for key in ROWS if key in lines])
    print("| run | measured | virtual | error |\n|---|---|---|---|")
    for name in filter(lines.__contains__, ROWS):
        measured, virtual, unit = (lines[name][column] for column in ("measured", "virtual", "unit"))
        digits = len(measured.partition(".")[2])
        error = 100 * (float(virtual) / float(measured) - 1)
        same = round(float(virtual), digits) == float(measured)
        print(f"| {name} | {measured} {unit} | {virtual} | " + ("the same |" if same else f"{error:+.2f} % |"))


if __name__ == "__main__":
    main()
