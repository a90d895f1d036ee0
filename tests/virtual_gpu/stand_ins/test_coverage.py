"""The functions of NVIDIA's libraries that wheels import or look up by name, and what the stand-ins do with
them."""

import collections
import mmap
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import python_of

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/virtual-gpu.md"
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
    packages = next(python_of("pytorch").parents[1].glob("lib/python3*/site-packages"))
    libraries = [library for library in (packages / "torch").rglob("*.so*") if not library.is_symlink()]
    needed = set().union(*(symbols(library, "--undefined-only") for library in libraries))
    defined = set().union(*(symbols(library, "--defined-only") for library in libraries))
    return {name for name in needed - defined if OF_NVIDIA.fullmatch(name)}


def there():
    """The functions that the stand-ins have."""
    names = ("libheadroom_gpu.so", "libcudart.so.12", "libcudart.so.13")
    return set().union(*(symbols(STAND_INS / name, "--defined-only") for name in names))


def named_in(library):
    """Returns the functions whose names a library contains as separate texts, in order to look them up."""
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        words = {word for begin in (b"cu", b"nccl", b"nvml", b"nvrtc", b"nvJitLink")
                 for word in re.findall(rb"\0(" + begin + rb"[A-Z]?\w{2,80})(?=\0)", text)}
    return {word.decode() for word in words if OF_NVIDIA.fullmatch(word.decode())}


def test_every_function_that_pytorch_imports_is_there(imported):
    assert imported
    assert sorted(imported - there()) == []


def row_of_the_documentation(title, names):
    """Returns the row that the table of the documentation must have for these functions."""
    known, exported = outcomes(), there()
    counts = collections.Counter(
        known.get(name, "answered") if name in exported else "not there" for name in names)
    columns = ("answered", "size counted as 0", "stops the program", "not there")
    return f"| {title} | " + " | ".join(f"{counts[column]:,}" for column in columns) + " |"


def check_version(python, title):
    """Skips the test if the environment has another version than a row of the documentation is about."""
    name, version = title.partition(",")[0].lower().replace("pytorch", "torch").split()
    if not list(python.parents[1].glob(f"lib/python3*/site-packages/{name}-{version}.*.dist-info")):
        pytest.skip(f"the row is about {name} {version}")


def test_the_documentation_counts_what_pytorch_imports(imported):
    check_version(python_of("pytorch"), "PyTorch 2.15")
    assert row_of_the_documentation("PyTorch 2.15, imports", imported) in PAGE.read_text()


@pytest.mark.parametrize("environment, title, libraries", [
    ("tensorflow", "TensorFlow 2.21, looks up", "tensorflow/*.so*"),
    ("jax", "JAX 0.10, looks up", "jax*_*cuda12*/**/*.so"),
])
def test_the_documentation_counts_what_is_looked_up_by_name(environment, title, libraries):
    check_version(python_of(environment), title)
    packages = next(python_of(environment).parents[1].glob("lib/python3*/site-packages"))
    found = [*packages.glob(libraries), *packages.glob("jax_plugins/*/*.so")]
    names = set().union(*(named_in(library) for library in found if not library.is_symlink()))
    assert row_of_the_documentation(title, names) in PAGE.read_text()
