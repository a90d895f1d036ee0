"""Runs programs on a virtual GPU as a user would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEADROOM = os.environ["HEADROOM"]
MIB = 2**20

# The first lines of a program that takes memory of the card without a framework.
RUNTIME = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
def allocate(size):
    address = ctypes.c_void_p()
    return cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)), address
"""


class Answer:
    """The result of `headroom gpu`: exit status, output, and the figures of its gpu.json."""

    def __init__(self, process, directory):
        self.status, self.output, self.errors = process.returncode, process.stdout, process.stderr
        figures = directory / "gpu.json"
        self.figures = json.loads(figures.read_text()) if figures.exists() else None

    @property
    def first_line(self):
        return next(line for line in self.output.splitlines() if line.strip())


@pytest.fixture
def gpu(tmp_path):
    """gpu(card, *options, program=SOURCE, python=…): runs SOURCE as a script on the card."""

    def run(card, *options, program, python=sys.executable, arguments=(), environment=None):
        script = tmp_path / "program.py"
        script.write_text(program)
        directory = tmp_path / f"out-{len(list(tmp_path.glob('out-*')))}"
        process = subprocess.run(
            [HEADROOM, "gpu", *([card] if card else []), *options, "--out", str(directory), "--",
             str(python), str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            env={**os.environ, **(environment or {})},
        )
        return Answer(process, directory)

    return run


def environment_python(name):
    """The interpreter of the environment that `scripts/setup --with NAME` makes; it need not exist."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "headroom" / "environments" / name / "bin" / "python"


def python_of(environment):
    python = environment_python(environment)
    if not python.exists():
        pytest.skip(f"{environment} is not set up: scripts/setup --with {environment}")
    return python


@pytest.fixture
def pytorch():
    return python_of("pytorch")


@pytest.fixture
def tensorflow():
    python = python_of("tensorflow")
    if not list(python.parents[1].glob("lib/*/site-packages/nvidia/cudnn")):
        pytest.skip("tensorflow was set up without cuDNN: remove it, then scripts/setup --with tensorflow")
    return python


@pytest.fixture
def jax():
    return python_of("jax")
