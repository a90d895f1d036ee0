#!/usr/bin/env python3
"""Trains the same programs on this machine's GPU and on a virtual one, and compares every allocation.

bench/fidelity/on_gpu.py CARD DIR [--jobs N] [NAME...]

CARD is the virtual twin of the GPU, as in h100-80gb. A program that DIR has figures of is not run again, so --only
can fill DIR on two machines. Each line of DIR/results.csv is a program; bytes are the frameworks' own counters.
For PyTorch, `first_difference` is where the sequence of its requests first differs: its number in order of time,
and the bytes on the real and on the virtual GPU; below zero: given back, j: a segment. NAME... chooses programs
whose names contain a word. It prints a table as Markdown."""

import argparse
import csv
import json
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEADROOM = Path(os.environ.get("HEADROOM_BUILD", ROOT / "build")) / "headroom"
NETWORK, VISION, LANGUAGE, JAX = "network.py", "convolutional.py", "language_model.py", "jax_network.py"
LIBRARIES, JAX_LIBRARIES = "libraries.py", "jax_libraries.py"
AFTER = ["--zero-grad", "after_update"]
PROGRAMS = {
    "resnet50": [NETWORK, "resnet50", "--batch", "32"],
    "resnet50 batch 256": [NETWORK, "resnet50", "--batch", "256"],
    "resnet50 bf16 NHWC": [NETWORK, "resnet50", "--batch", "64", "--precision", "bf16", "--channels-last"],
    "resnet50 fp16": [NETWORK, "resnet50", "--batch", "64", "--precision", "fp16"],
    "resnet50 checkpointed": [NETWORK, "resnet50", "--batch", "32", "--checkpoint"],
    "resnet50 measured algorithms": [NETWORK, "resnet50", "--batch", "32", "--benchmark"],
    "dcgan": [NETWORK, "dcgan", "--batch", "128"],
    "mlp": [NETWORK, "mlp", "--batch", "64", "--width", "4096"],
    "bert": [NETWORK, "bert", "--batch", "32"],
    "bert bf16": [NETWORK, "bert", "--batch", "32", "--precision", "bf16"],
    "bert compiled": [NETWORK, "bert", "--batch", "32", "--precision", "bf16", "--compile"],
    "bert checkpointed": [NETWORK, "bert", "--batch", "32", "--checkpoint"],
    "gpt2": [NETWORK, "gpt2", "--batch", "4", "--sequence", "512", "--size", "small"],
    "gpt2 bf16": [NETWORK, "gpt2", "--batch", "4", "--sequence", "512", "--size", "small", "--precision", "bf16"],
    "gpt2 expandable": [NETWORK, "gpt2", "--batch", "4", "--sequence", "512", "--size", "small"],
    "gpt2 cudaMallocAsync": [NETWORK, "gpt2", "--batch", "4", "--sequence", "512", "--size", "small"],
    "transformer": [NETWORK, "transformer", "--batch", "16", "--sequence", "256", "--width", "512"],
    "transformer bf16": [NETWORK, "transformer", "--batch", "16", "--sequence", "256", "--width", "512",
                         "--precision", "bf16"],
    "lstm": [NETWORK, "lstm", "--batch", "64", "--width", "256"],
    "gru": [NETWORK, "gru", "--batch", "64", "--width", "256"],
    "vgg16": [VISION, "vgg16", "SGD", "32", "--image", "224", *AFTER],
    "mobilenet_v2": [VISION, "mobilenet_v2", "Adam", "64", "--image", "224", *AFTER],
    "efficientnet_b0": [VISION, "efficientnet_b0", "RMSprop", "64", "--image", "224", *AFTER],
    "densenet121": [VISION, "densenet121", "SGD", "32", "--image", "224", *AFTER],
    "convnext_tiny": [VISION, "convnext_tiny", "AdamW", "32", "--image", "224", *AFTER],
    "regnet_y_400mf": [VISION, "regnet_y_400mf", "SGD", "64", "--image", "224", *AFTER],
    "vit_b_16": [VISION, "vit_b_16", "AdamW", "32", "--image", "224", *AFTER],
    "distilgpt2": [LANGUAGE, "distilgpt2", "AdamW", "20", *AFTER],
    "gpt-neo-125M": [LANGUAGE, "gpt-neo-125M", "SGD", "20", *AFTER],
    "Cerebras-GPT-111M": [LANGUAGE, "Cerebras-GPT-111M", "Adafactor", "20", *AFTER],
    "jax resnet50": [JAX, "resnet50", "--batch", "32"],
    "jax bert": [JAX, "bert", "--batch", "32"],
    "jax bert bf16": [JAX, "bert", "--batch", "32", "--precision", "bf16"],
    "jax dcgan": [JAX, "dcgan", "--batch", "128"],
    "jax mlp": [JAX, "mlp", "--batch", "64", "--width", "4096"],
    "jax dcgan untuned": [JAX, "dcgan", "--batch", "128"],
    "jax mlp untuned": [JAX, "mlp", "--batch", "64", "--width", "4096"],
    "resnet50 compiled": [NETWORK, "resnet50", "--batch", "32", "--compile"],
    "gpt2 compiled": [NETWORK, "gpt2", "--batch", "4", "--sequence", "512", "--size", "small", "--compile"],
    "resnet18": [VISION, "resnet18", "SGD", "128", "--image", "224", *AFTER],
    "mnasnet1_0": [VISION, "mnasnet1_0", "Adam", "64", "--image", "224", *AFTER],
    "mobilenet_v3_large": [VISION, "mobilenet_v3_large", "Adam", "64", "--image", "224", *AFTER],
    "shufflenet_v2": [VISION, "shufflenet_v2_x1_0", "SGD", "64", "--image", "224", *AFTER],
    "squeezenet1_0": [VISION, "squeezenet1_0", "SGD", "64", "--image", "224", *AFTER],
    "swin_t": [VISION, "swin_t", "AdamW", "32", "--image", "224", *AFTER],
    **{name.replace("_", " "): [LIBRARIES, name] for name in (
        "llama", "mixtral", "t5", "generate", "lora", "trainer", "speech", "timm_vit", "timm_convnext",
        "segmentation", "detection", "volumes", "unet", "lightning", "graph", "ode", "gaussian_process",
        "decompositions", "spectral", "long_attention", "sparse_embedding", "graphed")},
    **{"jax " + name.replace("_", " "): [JAX_LIBRARIES, name] for name in (
        "flax_cnn", "scanned_transformer", "recurrent", "numpyro_svi", "linear_algebra", "spectral")},
}  # fmt: skip
UNTUNED = {"XLA_FLAGS": "--xla_gpu_autotune_level=0"}  # XLA tries no kernels, which would take memory
SETTINGS = {
    "jax dcgan untuned": UNTUNED,
    "jax mlp untuned": UNTUNED,
    "gpt2 expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "gpt2 cudaMallocAsync": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
}
COLUMNS = ["program", "framework", "measured_allocated", "virtual_allocated", "measured_reserved",
           "virtual_reserved", "requests", "first_difference"]  # fmt: skip


def command_of(where, name, options, records):
    script, *arguments = PROGRAMS[name]
    start = [HEADROOM, "capture"] if where == "real" else [HEADROOM, "gpu", options.card, "--beside-real-gpu"]
    start += ["--until-step", "all", "--json", "--out", records, "--"]
    return [*start, options.python, HERE / "programs" / script, *arguments]


def run(where, name, options):
    """Runs a program on the real or the virtual GPU, unless it has been; its output goes beside its records."""
    found, _, records = figures(where, name, options)
    if found:
        return
    shutil.rmtree(records, ignore_errors=True)  # of a try without figures
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "OMP_NUM_THREADS": "2",
                   **SETTINGS.get(name, {})}  # fmt: skip
    records.parent.mkdir(parents=True, exist_ok=True)
    with open(records.with_suffix(".txt"), "w") as output:
        subprocess.run(command_of(where, name, options, records), stdout=subprocess.DEVNULL, stderr=output,
                       env=environment, timeout=options.timeout)  # fmt: skip


def tried(where, name, options):
    try:
        run(where, name, options)
    except subprocess.TimeoutExpired:
        print(f"{name} ({where}): not done in {options.timeout} s", file=sys.stderr)


def figures(where, name, options):
    """The framework's own figures of device 0, the framework's name, and the directory of the records."""
    records = options.directory / where / name.replace(" ", "-")
    try:
        framework = json.loads((records / "gpu.json").read_text())["frameworks"][0]
        return framework["devices"][0], framework["name"], records
    except (OSError, LookupError):
        return {}, "", records


def requests(records):
    """The bytes of each request to PyTorch's allocator (negative: given back) and of each segment (imaginary)."""
    for snapshot in sorted(records.glob("*.pickle")):
        with open(snapshot, "rb") as lines:
            events = pickle.load(lines)["device_traces"][0]
        signs = {"alloc": 1, "free_requested": -1, "segment_alloc": 1j, "segment_map": 1j}
        return [signs[event["action"]] * event["size"] for event in events if event["action"] in signs]
    return []


def row_of(name, options):
    real, framework, real_records = figures("real", name, options)
    virtual, _, virtual_records = figures("virtual", name, options)
    row = {"program": name, "framework": framework}
    for kind, device in (("measured", real), ("virtual", virtual)):
        row[f"{kind}_allocated"] = device.get("peak_allocated_bytes", "")
        row[f"{kind}_reserved"] = device.get("peak_reserved_bytes", "")
    sequences = requests(real_records), requests(virtual_records)
    row["requests"] = len(sequences[0])
    if all(sequences):
        pairs = enumerate(zip_longest(*sequences, fillvalue=0))
        row["first_difference"] = next((f"{place}: {a} {b}" for place, (a, b) in pairs if a != b), "none")
    return row


def print_table(rows):
    print("| program | allocated at the peak | virtual | reserved at the peak | virtual |\n|---|---|---|---|---|")
    for row in rows:
        cells = [row["program"]]
        for counter in ("allocated", "reserved"):
            measured, virtual = row[f"measured_{counter}"], row[f"virtual_{counter}"]
            cells.append(f"{measured / 2**20:,.1f} MiB" if measured else "not measured")
            cells.append(f"{100 * (virtual / measured - 1):+.2f} %" if measured and virtual else "")
            if measured and measured == virtual:
                cells[-1] = "the same"
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("card")
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, help="number of programs that run at the same time")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one of them")
    parser.add_argument("--only", choices=("real", "virtual"), help="run on this one alone")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_intermixed_args()
    chosen = [n for n in PROGRAMS if not options.names or any(word in n for word in options.names)]
    with ThreadPoolExecutor(options.jobs) as pool:
        for name in chosen:
            for where in (options.only,) if options.only else ("real", "virtual"):
                pool.submit(tried, where, name, options)
    rows = [row_of(name, options) for name in chosen]
    with open(options.directory / "results.csv", "w", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print_table(rows)


if __name__ == "__main__":
    main()
