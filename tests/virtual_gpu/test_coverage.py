"""The functions of NVIDIA's libraries that PyTorch's wheel imports, and what the stand-ins do with them."""

import collections
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAND_INS = Path(os.environ["HEADROOM"]).parent / "harness" / "virtual_gpu" / "stand_ins"
OF_NVIDIA = re.compile(
    r"(cu(da|blas|blasLt|dnn|fft|rand|solver|sparse|sparseLt|pti)?[A-Z]|cufile|nccl[A-Z]|nvrtc[A-Z]|nvml[A-Z]|"
    r"nvJitLink|nvtx|__cuda)\w*")
OUTCOMES = {"size": "size counted as 0", "sizes": "size counted as 0", "int": "size counted as 0",
            "stops": "stops the program"}


def outcomes():
    """Returns {function: what its generated stand-in does}."""
    result, kind = {}, ""
    for line in (ROOT / "harness/virtual_gpu/stand_ins/symbols.txt").read_text().splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            continue
        if ":" in line:
            kind, _, line = line.partition(":")
        result.update(dict.fromkeys(line.split(), OUTCOMES.get(kind.split(" ")[0], "answered")))
    return result


def symbols(library, which):
    text = subprocess.run(["nm", "-D", which, str(library)], capture_output=True, text=True).stdout
    return {line.split()[-1].partition("@")[0] for line in text.splitlines() if line.strip()}


@pytest.fixture(scope="module")
def imported():
    from conftest import python_of

    packages = next(python_of("pytorch").parents[1].glob("lib/python3*/site-packages"))
    libraries = [library for library in (packages / "torch").rglob("*.so*") if not library.is_symlink()]
    needed = set().union(*(symbols(library, "--undefined-only") for library in libraries))
    defined = set().union(*(symbols(library, "--defined-only") for library in libraries))
    return {name for name in needed - defined if OF_NVIDIA.fullmatch(name)}


def test_every_function_that_pytorch_imports_is_there(imported):
    names = ("libheadroom_gpu.so", "libcudart.so.12", "libcudart.so.13")
    there = set().union(*(symbols(STAND_INS / name, "--defined-only") for name in names))
    assert imported
    assert sorted(imported - there) == []


def test_the_documentation_counts_what_happens_to_them(imported):
    known = outcomes()
    counts = collections.Counter(known.get(name, "answered") for name in imported)
    page = (ROOT / "docs/how-to/run-your-script-on-a-virtual-gpu.md").read_text()
    for outcome, count in counts.items():
        assert f"| {outcome} | {count} |" in page, counts
