"""Runs programs on a virtual GPU as a user would."""

import functools
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

# Does what torchrun does, without importing PyTorch for it.
TWO_RANKS = """
import os, socket, subprocess, sys
with socket.create_server(("127.0.0.1", 0)) as free:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]],
                          env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
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


def runs_in(place):
    """Returns gpu(card, *options, program=SOURCE, python=…), which runs SOURCE as a script in the directory `place`."""

    def run(card, *options, program, python=sys.executable, arguments=(), environment=None):
        script = place / "program.py"
        script.write_text(program)
        directory = place / f"out-{len(list(place.glob('out-*')))}"
        process = subprocess.run(
            [HEADROOM, "gpu", *([card] if card else []), *options, "--out", str(directory), "--",
             str(python), str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=place,
            # PyTorch's compiler works in one process: others would import PyTorch again.
            env={"TORCHINDUCTOR_COMPILE_THREADS": "1", **os.environ, **(environment or {})},
        )
        return Answer(process, directory)

    return run


@pytest.fixture
def gpu(tmp_path):
    return runs_in(tmp_path)


@pytest.fixture(scope="module")
def shared_gpu(tmp_path_factory):
    """For runs that several tests look at, because a framework takes seconds to start."""
    return runs_in(tmp_path_factory.mktemp("shared"))


# Runs scripts one after another, and tells what each one printed.
ONE_AFTER_ANOTHER = """
import contextlib, gc, io, json, pathlib, runpy, sys, traceback
for script in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            runpy.run_path(script, run_name="__main__")
        except Exception:
            traceback.print_exc(file=said)
    gc.collect()
    print("said", json.dumps([pathlib.Path(script).stem, said.getvalue()]))
"""


def programs_of(request, place, fixture):
    """Writes the programs of those tests of the module that are marked with program(SOURCE) and take `fixture`. The
    parameters of a test are variables of its program. Returns the paths."""
    scripts = []
    for test in request.session.items:
        marked = test.get_closest_marker("program")
        if marked and test.path == request.path and fixture in test.fixturenames:
            scripts.append(place / f"{test.name}.py")
            parameters = test.callspec.params if hasattr(test, "callspec") else {}
            assigned = "".join(f"{name} = {value!r}\n" for name, value in parameters.items())
            scripts[-1].write_text(assigned + marked.args[0])
    return list(map(str, scripts))


@pytest.fixture(scope="module")
def run_together(request, shared_gpu, tmp_path_factory):
    """run_together(python) runs the programs of all tests of the module that take the fixture `printed`, in one
    process, and returns the answer and what each program printed, by the name of its test."""

    @functools.cache
    def run(python):
        scripts = programs_of(request, tmp_path_factory.mktemp("programs"), "printed")
        answer = shared_gpu("a100-40gb", "--until-step", "all", python=python, program=ONE_AFTER_ANOTHER,
                            arguments=scripts)
        assert answer.status == 0, answer.errors
        lines = answer.output.splitlines()
        return answer, dict(json.loads(line.removeprefix("said ")) for line in lines if line.startswith("said "))

    return run


@pytest.fixture
def printed(run_together, pytorch, request):
    """What the program of this test printed."""
    return run_together(pytorch)[1][request.node.name].splitlines()


# Imports PyTorch once, and runs each script as the main program of a fork: those that use the compiler last, after its
# import. A fork ends as Python does, except that it takes nothing apart, for which it would have to copy all it shares.
EACH_IN_A_FORK = """
import atexit, json, os, sys, threading, traceback
import torch
def uses_compiler(script):
    return any(word in open(script).read() for word in ("compile", "checkpoint"))
for script in sorted(sys.argv[1:], key=uses_compiler):
    if uses_compiler(script):
        import torch._dynamo
    child = os.fork()
    if child == 0:
        sys.argv, __file__, status = [script], script, 1
        os.dup2(os.open(script + ".printed", os.O_CREAT | os.O_WRONLY), 1)
        try:
            exec(compile(open(script).read(), script, "exec"))
            status = 0
        except Exception:
            traceback.print_exc()
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("ran", json.dumps([script, child, status]), flush=True)
"""


class Recorded:
    """What PyTorch recorded of a program, what the program printed, and the errors that all programs printed."""

    def __init__(self, script, framework, errors):
        self.devices, self.steps, self.errors = framework["devices"], framework["steps"], errors
        self.differences = "".join(f"{text}\n" for text in framework["differences"]).replace(script.name, "program.py")
        self.printed = Path(f"{script}.printed").read_text().splitlines()

    @property
    def roles(self):
        return {share["name"]: share["bytes"] for share in self.devices[0]["roles"]}


@pytest.fixture(scope="module")
def run_each(request, shared_gpu, tmp_path_factory):
    """run_each(test, fixture, python, first, **environment) runs the programs of all tests of the module that take the
    fixture, once, and returns what was recorded of that of this test. `first` is what all of them import."""

    @functools.cache
    def scripts_of(fixture):
        return programs_of(request, tmp_path_factory.mktemp("programs"), fixture)

    @functools.cache
    def run(fixture, python, first="import torch", **environment):
        answer = shared_gpu("rtx4090", "--until-step", "all", python=python, arguments=scripts_of(fixture),
                            program=EACH_IN_A_FORK.replace("import torch", first, 1), environment=environment)
        frameworks = {framework["pid"]: framework for framework in answer.figures["frameworks"]}
        ran = [json.loads(line.removeprefix("ran ")) for line in answer.output.splitlines() if line.startswith("ran ")]
        return {Path(script).stem: Recorded(Path(script), frameworks[pid], answer.errors)
                for script, pid, status in ran if status == 0}, answer.output + answer.errors

    def recorded_of(test, *arguments, **named):
        programs, said = run(*arguments, **named)
        assert test.name in programs, said
        return programs[test.name]

    return recorded_of


@pytest.fixture
def recorded(run_each, pytorch, request):
    """What was recorded of this test's program."""
    return run_each(request.node, "recorded", pytorch)


def printed_by(answer):
    """What a program that fits printed."""
    assert answer.status == 0, answer.errors
    return [line for line in answer.output.split("\nFITS")[0].splitlines() if line]


def pytest_configure(config):
    config.addinivalue_line("markers", "program(SOURCE): what the test's fixture runs together with others")


def environment_python(name):
    """The interpreter of the environment that `scripts/setup --with NAME` makes; it need not exist."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "headroom" / "environments" / name / "bin" / "python"


def python_of(environment):
    python = environment_python(environment)
    if not python.exists():
        pytest.skip(f"{environment} is not set up: scripts/setup --with {environment}")
    return python


@pytest.fixture(scope="session")
def pytorch():
    return python_of("pytorch")


@pytest.fixture(scope="session")
def triton(pytorch):
    if subprocess.run([pytorch, "-c", "import triton"], capture_output=True).returncode != 0:
        pytest.skip("Triton is not installed beside PyTorch")


@pytest.fixture(scope="session")
def tensorflow():
    python = python_of("tensorflow")
    if not list(python.parents[1].glob("lib/*/site-packages/nvidia/cudnn")):
        pytest.skip("tensorflow was set up without cuDNN: remove it, then scripts/setup --with tensorflow")
    return python


@pytest.fixture(scope="session")
def jax():
    return python_of("jax")
