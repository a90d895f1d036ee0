#!/usr/bin/env python3
"""Repeats PEFT's comparisons of its methods on a virtual L40S. The project ran them on a real one.

bench/fidelity/peft_methods.py CLONE DIR [WORD...] [--python PYTHON] [--jobs N]

CLONE is a clone of https://github.com/huggingface/peft. It holds the programs, the experiments and their results: peaks
of the bytes that PyTorch reserved while Llama 3.2 3B or FLUX.2 klein 4B was trained. PYTHON has PyTorch, transformers,
datasets, accelerate, scikit-learn, and bitsandbytes for Llama or diffusers and torchvision for FLUX. Each experiment is
run whose name contains a WORD (default: all), that was measured with PYTHON's PyTorch and that peft_methods.csv lacks,
with the commit of PEFT that was measured. Weights, texts and images are made here: the texts do not have the lengths of
the comparison's. DIR gets all that is written. Prints a table as Markdown."""

import argparse
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from repeats import HEADROOM, HERE, checkout, read_lines, write_lines

RESULTS = HERE / "peft_methods.csv"
LONGEST = 694  # tokens; with them the row FITTED is met
FITTED = "lora/llama-3.2-3B-rank32"
TEXTS = Path("method_comparison", "MetaMathQA")
COMPARISONS = {TEXTS: "peft_method.py", TEXTS.with_name("image-gen"): "peft_image_method.py"}
COLUMNS = ["experiment", "trainable", "measured_mib", "virtual_mib", "pytorch", "transformers", "peft"]
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "vocab_size": 128256,
    "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
    "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True, "bos_token_id": 128000, "eos_token_id": 128001,
    "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "high_freq_factor": 4.0,
                        "low_freq_factor": 1.0, "original_max_position_embeddings": 8192},
}  # fmt: skip


def write_model(folder):
    """Writes Llama 3.2 3B, whose 6.4 GB of weights are a hole in a file."""
    hidden, inner, keys = 3072, 8192, 8 * 128
    shapes = {"model.embed_tokens.weight": [128256, hidden], "model.norm.weight": [hidden]}
    for layer in range(28):
        name = f"model.layers.{layer}."
        for part, shape in [("q", [hidden, hidden]), ("k", [keys, hidden]), ("v", [keys, hidden]), ("o", [hidden] * 2)]:
            shapes[f"{name}self_attn.{part}_proj.weight"] = shape
        for part, shape in [("gate", [inner, hidden]), ("up", [inner, hidden]), ("down", [hidden, inner])]:
            shapes[f"{name}mlp.{part}_proj.weight"] = shape
        for part in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{name}{part}.weight"] = [hidden]
    header, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    (folder / "config.json").write_text(json.dumps(CONFIG))


def measured(clone):
    """Returns the results in CLONE, and the folder of their comparison, by the names of their experiments."""
    results = {}
    for folder in COMPARISONS:
        for file in sorted((clone / folder / "results").glob("*.json")):
            result = json.loads(file.read_text())
            if result["train_info"]["status"] == "success":
                results[result["run_info"]["experiment_name"]] = folder, result
    if not results:
        sys.exit(f"{clone / folder / 'results'} has no results; CLONE is a clone of huggingface/peft")
    return results


def pytorch_of(result):
    return result["meta_info"]["package_info"]["torch-version"]


def peft_of(result, options):
    """Returns a folder with PEFT as it was when it was measured."""
    commit = result["meta_info"]["package_info"]["peft-commit-hash"]
    return checkout(options.clone, commit, options.directory / f"peft-{commit[:8]}")


def repeat(name, folder, result, options):
    """Returns the line of an experiment, after it has run on the virtual GPU, or None and says why."""
    packages = result["meta_info"]["package_info"]
    peft = peft_of(result, options)
    experiment = peft / folder / "experiments" / name
    if not experiment.exists():  # was committed with its result
        shutil.copytree(options.clone / folder / "experiments" / name, experiment)
    out = options.directory / name.replace("/", "--")
    shutil.rmtree(out, ignore_errors=True)  # of a try that did not end
    program = [HERE / "programs" / COMPARISONS[folder], name]
    if folder == TEXTS:
        program += [options.directory / "model", str(LONGEST)]
    command = [HEADROOM, "gpu", "l40s", "--until-step", "all", "--out", out, "--", options.python, *program]
    ran = subprocess.run(command, cwd=peft / folder, env={**os.environ, "PYTHONPATH": str(peft / "src")},
                         capture_output=True, text=True)  # fmt: skip
    found = re.search(r"trainable: (\d+) peak reserved: (\d+) MiB", ran.stdout)
    if not found:
        print(f"{name} did not end:\n{ran.stderr[-2000:]}{ran.stdout[-2000:]}", file=sys.stderr)
        return None
    trainable, virtual = map(int, found.groups())
    if trainable != result["train_info"]["num_trainable_params"]:
        print(f"{name}: {trainable} weights are trained, not {result['train_info']['num_trainable_params']}",
              file=sys.stderr)  # fmt: skip
        return None
    peak = result["train_info"]["accelerator_memory_max"] // 2**20
    return dict(zip(COLUMNS, [name, trainable, peak, virtual, pytorch_of(result),
                              packages["transformers-version"], packages["peft-commit-hash"][:8]]))  # fmt: skip


def print_table(lines):
    errors = []
    print("| experiment | measured (MiB) | virtual | error |\n|---|---|---|---|")
    for row in lines:
        real, virtual = int(row["measured_mib"]), int(row["virtual_mib"])
        error = 100 * (virtual - real) / real
        if row["experiment"] != FITTED:
            errors.append(error)
        print(f"| {row['experiment']} | {real:,} | {virtual:,} | {error:+.2f} % |")
    if errors:
        print(f"\nmedian of {len(errors)} {statistics.median(map(abs, errors)):.2f} %, "
              f"{sum(error < 0 for error in errors)} too low, the lowest {min(errors):+.2f} %, "
              f"the highest {max(errors):+.2f} %\n")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_intermixed_args()
    options.clone, options.directory = options.clone.resolve(), options.directory.resolve()
    if not (options.directory / "model" / "config.json").exists():
        write_model(options.directory / "model")
    lines = read_lines(RESULTS)
    ask = [options.python, "-c", "import torch; print(torch.__version__)"]
    here = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
    if not here:
        sys.exit(f"{options.python} has no PyTorch; --python names an interpreter that has it")
    wanted = [(name, folder, result) for name, (folder, result) in measured(options.clone).items()
              if name not in lines and pytorch_of(result) == here
              and (not options.words or any(word in name for word in options.words))]  # fmt: skip
    for *_, result in wanted:  # before several need it
        peft_of(result, options)
    with ThreadPoolExecutor(options.jobs) as pool:
        for line in pool.map(lambda each: repeat(*each, options), wanted):
            if line:
                lines[line["experiment"]] = line
                write_lines(RESULTS, COLUMNS, [lines[name] for name in sorted(lines)])
    for network in ("llama", "flux"):
        print_table([lines[name] for name in sorted(lines) if f"/{network}" in name])


if __name__ == "__main__":
    main()
