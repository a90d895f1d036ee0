"""The ways in which PyTorch is tried on a CPU: its interpreter, its environment and its flags."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HEADROOM = Path(__file__).resolve().parents[2] / "build" / "headroom"

# glibc keeps freed pages instead of returning them after every tensor.
RETAIN_PAGES = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "67108864",
}


def set_up_python():
    """The Python of the PyTorch wheel that `scripts/setup --with pytorch` installed, else Debian's."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    wheel = Path(cache) / "headroom" / "environments" / "pytorch" / "bin" / "python"
    return wheel if wheel.exists() else Path("/usr/bin/python3")


def without_gpu(python):
    """Environment variables with which the PyTorch of `python` computes on the CPU. The wheel that
    scripts/setup installs is built for CUDA but lacks its libraries: those of the virtual GPU stand in."""
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
        return {}
    names = "LD_LIBRARY_PATH", "HEADROOM_GPU_CARD"
    show = f"import json, os; print(json.dumps({{name: os.environ[name] for name in {names}}}))"
    with tempfile.TemporaryDirectory(prefix="headroom-peer-") as folder:
        command = [HEADROOM, "gpu", "rtx4090", "--out", f"{folder}/records", "--", sys.executable, "-c", show]
        shown = subprocess.run(command, capture_output=True, text=True)
    if not shown.stdout.startswith("{"):
        sys.exit(f"{python} cannot import torch, not even with the virtual GPU's libraries:\n{shown.stderr}")
    return {**json.loads(shown.stdout.splitlines()[0]), "CUDA_VISIBLE_DEVICES": ""}


def tuned_environment(threads):
    """Settings that help PyTorch on a CPU: bound threads, OpenBLAS with AVX-512, pages that are kept."""
    environment = {"OMP_NUM_THREADS": str(threads), **RETAIN_PAGES}
    if "avx512f" in Path("/proc/cpuinfo").read_text():
        environment["OPENBLAS_CORETYPE"] = "SkylakeX"
    return environment


def other_malloc():
    """The library that helps PyTorch further if it is loaded before glibc; none if it is missing."""
    found = sorted(Path("/usr/lib").glob("*/libtcmalloc_minimal.so.*"))
    return found[0] if found else None


def variants(model, threads, precision):
    """{name: (environment, flags of pytorch_steps.py)} of the ways in which PyTorch is tried. For bf16
    these are the tuned ones, each with autocast and without."""
    tuned = tuned_environment(threads)
    environments = {"default": {}, "tuned": tuned}
    if library := other_malloc():
        environments["tuned, tcmalloc"] = {**tuned, "LD_PRELOAD": str(library)}
    last = list(environments)[-1]
    if precision == "bf16":
        environments = {last: environments[last]}
    result = {}
    for name, environment in environments.items():
        flags = [()]
        if name != "default" and model.has_images:
            flags.append(("--channels-last",))
        if name == last:
            flags += [(*each, "--compile") for each in flags]
        if precision == "bf16":
            flags += [(*each, "--autocast") for each in flags]
        for each in flags:
            words = [name, *(flag[2:].replace("-", "_") for flag in each)]
            result[", ".join(words)] = environment, each
    return result
