#!/usr/bin/env python3
"""Repeats published runs of torchtitan, torchao, LitGPT and torchtune by their own programs on virtual GPUs.

bench/fidelity/projects.py DIR [WORD...] --clones FOLDER [--python PYTHON]

FOLDER has a clone of each project that is run, by the names torchtitan, ao, litgpt and torchtune. Each row whose name
contains a WORD (default: all) is run and its line in projects.csv replaced. DIR gets all that is written. PYTHON has:

torchtitan, torchao  PyTorch 2.6.0, torchvision, torchao 0.8.0, timm, bitsandbytes, datasets, torchdata, tiktoken,
                     tensorboard, tyro
LitGPT               PyTorch 2.6.0, lightning 2.4.0, bitsandbytes 0.42.0 (and BNB_CUDA_VERSION=123), litdata 0.2.17,
                     jsonargparse[signatures] 4.32.1
torchtune            PyTorch 2.5.1, torchvision, torchao 0.6.1, bitsandbytes 0.44.1, datasets, omegaconf, kagglehub,
                     sentencepiece, tiktoken, blobfile

Prints a table as Markdown."""

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
PROJECTS = {  # the clone, the commit and the folder in which the program starts
    "torchtitan": ("torchtitan", "9dec370ad26b5f8e9a7333a0e36165018262644b", "."),
    "torchao": ("ao", "v0.8.0", "benchmarks"),
    "LitGPT": ("litgpt", "00af8b0d9b43eaa3f8c812e3e8bd53ef38cbb49d", "."),
    "torchtune": ("torchtune", "1814feb17a9038e1a8053ce93111bd26774a8db6", "."),
}
NO_ROOM = "out of memory"
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
            f" --cosine_lr_scheduler --n_workers 2 --optim {optimizer}",
            r".*Max memory used: ([\d.]+) GB", "GB")  # fmt: skip


def litgpt(model, method):
    """A finetuning of LitGPT on an A10G."""
    return ("a10g", "litgpt_finetune.py",
            f"finetune_{method.removeprefix('q')} --config config_hub/finetune/{model}/{method}.yaml"
            " --train.max_steps 2 --eval.final_validation false", r"Memory used: ([\d.]+) GB", "GB")  # fmt: skip


def torchtune(recipe, model, options):
    """A recipe of torchtune on an A100 with texts packed to 4,096 tokens, in batches of 2."""
    return ("a100-80gb", "torchtune_recipe.py",
            f"run {recipe}_finetune_single_device --config llama3_2/{model}_single_device dataset.packed=True"
            " tokenizer.max_seq_len=4096 batch_size=2 gradient_accumulation_steps=1 epochs=1 max_steps_per_epoch=3"
            " metric_logger._component_=torchtune.training.metric_logging.StdoutLogger ~metric_logger.log_dir"
            f" {options}", r"peak_memory_active:([\d.]+)", "GiB")  # fmt: skip


def context_parallel(degree):
    return titan("8b", 8, f"--training.batch_size 1 {FULL} --training.seq_len {32768 * degree}"
                 f" --experimental.context_parallel_degree {degree}")  # fmt: skip


PLAIN = "optimizer_in_bwd=False enable_activation_checkpointing=False"
ADAMW = "optimizer._component_=torch.optim.AdamW optimizer.fused=True"
ADAMW8 = "torchao.prototype.low_bit_optim.AdamW8bit"
WHOLE_LOSS = "loss._component_=torch.nn.CrossEntropyLoss"
OFFLOADED = "enable_activation_offloading=True"
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
    "torchtitan: 70B, the same with tensors sent asynchronously": (
        67.6, titan("70b", 256, f"--training.batch_size 16 {FULL} --experimental.enable_async_tensor_parallel")),
    "torchao: AdamW (fused)": (12.23, low_bit("AdamW")),
    "torchao: 8-bit of bitsandbytes": (8.32, low_bit("AdamW8bitBnb")),
    "torchao: 8-bit": (8.33, low_bit("AdamW8bitAo")),
    "torchao: FP8": (8.33, low_bit("AdamWFp8Ao")),
    "torchao: 4-bit": (7.72, low_bit("AdamW4bitAo")),
} | {
    f"LitGPT: {model}, {method}": (measured, litgpt(model, method))
    for model, lora, qlora in (
        ("falcon-7b", 16.69, 9.44), ("gemma-2b", 12.62, 11.58), ("gemma-7b", NO_ROOM, 17.18),
        ("gemma2-2b", 14.31, 13.52), ("gemma2-9b", NO_ROOM, 20.92), ("llama-2-7b", 19.77, 13.68),
        ("llama-3-8b", 19.73, 17.41), ("llama-3.1-8b", 19.73, 17.41), ("llama-3.2-1B", 4.49, 5.53),
        ("llama-3.2-3B", 9.67, 10.30), ("mistral-7b-v0.2", 20.66, 14.29), ("mistral-7b", 20.66, 14.29),
        ("phi-2", 13.98, 14.27), ("phi-3", 19.75, 19.13), ("stablelm-base-alpha-3b", 8.58, 5.24),
        ("tiny-llama", 13.50, 16.24))
    for method, measured in (("lora", lora), ("qlora", qlora))
} | {
    "LitGPT: tiny-llama, full": (14.10, litgpt("tiny-llama", "full")),
    "torchtune: packed texts": (60.0, torchtune("full", "3B_full", f"{PLAIN} {ADAMW} {WHOLE_LOSS}")),
    "torchtune: and compiled": (51.0, torchtune("full", "3B_full", f"{PLAIN} {ADAMW} {WHOLE_LOSS} compile=True")),
    "torchtune: and the loss in chunks": (42.9, torchtune("full", "3B_full", f"{PLAIN} {ADAMW} compile=True")),
    "torchtune: and checkpointed": (
        24.9, torchtune("full", "3B_full", f"optimizer_in_bwd=False {ADAMW} compile=True")),
    "torchtune: and steps in the backward pass": (23.1, torchtune("full", "3B_full", f"{ADAMW} compile=True")),
    "torchtune: and activations offloaded": (21.8, torchtune("full", "3B_full", f"{ADAMW} compile=True {OFFLOADED}")),
    "torchtune: and AdamW of 8 bits": (
        17.6, torchtune("full", "3B_full", f"optimizer._component_={ADAMW8} compile=True {OFFLOADED}")),
    "torchtune: LoRA": (8.5, torchtune("lora", "3B_lora", f"compile=True {OFFLOADED}")),
    "torchtune: QLoRA": (4.6, torchtune("lora", "3B_qlora", f"compile=True {OFFLOADED}")),
}  # fmt: skip


def repeat(name, options):
    """Returns the line of a row, after it has run on the virtual GPU."""
    measured, (card, program, arguments, pattern, unit) = ROWS[name]
    clone, commit, folder = PROJECTS[name.split(":")[0]]
    place = checkout(options.clones / clone, commit, options.directory / clone) / folder
    out = options.directory / re.sub(r"\W+", "-", name)
    shutil.rmtree(out, ignore_errors=True)  # of a try that did not end
    command = [HEADROOM, "gpu", *card.split(), "--until-step", "all", "--out", out, "--", options.python,
               HERE / "programs" / program, *arguments.split()]  # fmt: skip
    # Memory that the compiler allocates while it compiles stays reserved, as it did there, so its cache is off.
    ran = subprocess.run(command, cwd=place, env={**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
                         capture_output=True, text=True)  # fmt: skip
    found = [NO_ROOM] if ran.returncode == 3 else re.findall(pattern, ran.stdout + ran.stderr)
    if ran.returncode not in (0, 3) or not found:
        sys.exit(f"{name} did not end:\n{ran.stderr[-2000:]}{ran.stdout[-2000:]}")
    here = re.search(r"of PyTorch (\d[^\s);]*)", ran.stdout)[1]
    return dict(zip(COLUMNS, [name, str(measured), shortened(found[-1]), unit, here]))


def shortened(figure):
    """Leaves two decimals of what a program says with all of them."""
    return figure if figure == NO_ROOM else f"{float(figure):.2f}"


def line_of(name, measured, virtual, unit):
    """Returns the line of the table."""
    if NO_ROOM in (measured, virtual):
        return f"| {name} | {measured} | {virtual} | " + ("the same |" if measured == virtual else "another answer |")
    same = round(float(virtual), len(measured.partition(".")[2])) == float(measured)
    error = 100 * (float(virtual) / float(measured) - 1)
    return f"| {name} | {measured} {unit} | {virtual} | " + ("the same |" if same else f"{error:+.2f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--clones", type=Path, required=True)
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
        print(line_of(name, *(lines[name][column] for column in ("measured", "virtual", "unit"))))


if __name__ == "__main__":
    main()
