"""Nothing in the working directory is run or read unless a command names it: a colleague's csv.py is
not imported."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Callable

import pytest
from conftest import COUNTING, SOURCE, TIMING, Headroom, samples, suite_of

# Modules the commands themselves are made of, and those they import.
OWN = ["harness", "reports"]
STANDARD = [
    "__main__", "abc", "argparse", "base64", "codecs", "collections", "copy", "csv", "ctypes", "dataclasses",
    "datetime", "encodings", "enum", "functools", "glob", "gzip", "hashlib", "html", "importlib", "inspect", "io",
    "itertools", "json", "logging", "math", "meter", "multiprocessing", "operator", "os", "pathlib", "pickle", "pickletools", "random", "re",
    "resource", "runpy", "shutil", "site", "sitecustomize", "statistics", "string", "struct", "subprocess", "tempfile",
    "threading", "tomllib", "types", "typing", "urllib", "usercustomize", "warnings", "xml", "zipfile", "zlib",
]
INSTALLED = ["jax", "jinja2", "jsonschema", "markupsafe", "matplotlib", "numpy", "PIL", "tensorflow", "torch",
             "zstandard"]
MODULES = OWN + STANDARD + INSTALLED


def report(headroom: Headroom) -> list[str]:
    return ["report", str(headroom.only_run()), "--html", "page.html", "--csv", "samples.csv"]


def trace(headroom: Headroom) -> str:
    run = headroom.only_run()
    return str(run / next(sample["trace_file"] for sample in samples(run) if sample["trace_file"]))


# "history.txt" is of a format that an importer reads, so that Python is started.
COMMANDS: dict[str, Callable[[Headroom], list[str]]] = {
    "report": report,
    "run": lambda _: ["run", "counting.toml", "--max-pairs", "1", "--out", "again"],
    "watch": lambda _: ["watch", "--out", "watched", "--", "sleep", "0.2"],
    "replay": lambda _: ["replay", "history.txt", "--capacity", "1GiB", "--allocator", "malloc"],
    "leaks": lambda _: ["leaks", "history.txt"],
    "export": lambda headroom: ["export", trace(headroom), "--to", "pytorch", "-o", "exported.pickle"],
    "doctor": lambda _: ["doctor"],
}


@pytest.fixture
def hostile(headroom: Headroom) -> Headroom:
    """A working directory in which every module that Python may look for leaves a marker when it runs."""
    suite = headroom.write("counting.toml", suite_of("counting", COUNTING))
    assert headroom("run", suite, "--samples-only", "--max-pairs", "1").code == 0
    headroom.write("history.txt", "".join(f"{on} {name} 1048576 0\n" for name in "abcd" for on in (1, 0)))
    (headroom.place / "executed").mkdir()
    for module in MODULES:
        headroom.write(f"{module}.py", f"open({str(headroom.place / 'executed' / module)!r}, 'w').close()\n")
    headroom.write("matplotlibrc", "not.a.setting: 1\n")
    return headroom


def executed(headroom: Headroom) -> list[str]:
    return sorted(path.name for path in (headroom.place / "executed").iterdir())


@pytest.mark.parametrize("path", [None, "."], ids=["as it is", "with it on PYTHONPATH"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_a_module_of_the_working_directory(hostile: Headroom, command: str, path: str | None) -> None:
    outcome = hostile(*COMMANDS[command](hostile), **({} if path is None else {"PYTHONPATH": path}))
    assert executed(hostile) == []
    assert "matplotlibrc" not in outcome.errors
    assert outcome.code == 0, outcome.errors


def test_no_command_runs_a_package_of_the_working_directory(hostile: Headroom) -> None:
    for module in MODULES:
        file = hostile.place / f"{module}.py"
        text = file.read_text()
        file.unlink()
        for folder in (Path(module), Path(module, "memory"), Path(module, "memory", "foreign")):
            (hostile.place / folder).mkdir()
            hostile.write(str(folder / "__init__.py"), text)
            hostile.write(str(folder / "__main__.py"), text)
    for command, arguments in COMMANDS.items():
        assert hostile(*arguments(hostile)).code == 0, command
        assert executed(hostile) == [], command


def script_suite(parameters: str) -> str:
    return suite_of("script", TIMING | {"allocator": "malloc", "scenario": f"script({parameters})"})


@pytest.mark.parametrize("script", ["file=free_memory,case=small", "file=forked_readers,start=spawn"])
def test_a_program_of_a_scenario_imports_nothing_from_the_working_directory(hostile: Headroom, script: str) -> None:
    suite = hostile.write("script.toml", script_suite(script))
    outcome = hostile("run", suite, "--samples-only", "--max-pairs", "1", "--out", "again", PYTHONPATH=".")
    assert outcome.code == 0, outcome.errors
    assert executed(hostile) == []


def test_the_packed_program_imports_nothing_from_the_working_directory(hostile: Headroom) -> None:
    # The line that asks Python where NVIDIA's libraries lie, as scripts/pack-gpu packs it.
    packed = (SOURCE / "scripts" / "pack-gpu").read_text().split("<<'SH'\n")[1].split("\nSH\n")[0]
    pack = hostile.place / "pack" / "build"
    (pack / "packed").mkdir(parents=True)
    for name, text in (("headroom", packed), ("packed/headroom", "#!/bin/sh\n")):
        (pack / name).write_text(text)
        (pack / name).chmod(0o755)
    subprocess.run([pack / "headroom"], cwd=hostile.place, check=True)
    assert executed(hostile) == []


def test_the_page_of_what_was_watched_can_be_made_later(headroom: Headroom) -> None:
    assert headroom("watch", "--out", "watched", "--no-page", "--", "sleep", "0.2").code == 0
    outcome = headroom("report", "watched")
    assert outcome.code == 0, outcome.errors
    assert outcome.last_line == str(headroom.place / "watched" / "report.html")


@pytest.mark.parametrize("parameters", ["file={place}/evil", "file=../../../../../../..{place}/evil",
                                        "file=free_memory,python=../../../../../../..{place}/environment"])
def test_a_suite_cannot_name_a_program_elsewhere(headroom: Headroom, parameters: str) -> None:
    marker = headroom.place / "executed"
    headroom.write("evil.py", f"open({str(marker)!r}, 'w').close()\n")
    interpreter = headroom.place / "environment" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    interpreter.chmod(0o755)
    suite = headroom.write("script.toml", script_suite(parameters.format(place=headroom.place)))
    (headroom.place / "cache" / "headroom" / "environments").mkdir(parents=True)
    outcome = headroom("run", suite, "--samples-only", XDG_CACHE_HOME=str(headroom.place / "cache"))
    assert not marker.exists()
    assert outcome.code == 2, outcome.errors
