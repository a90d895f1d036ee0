"""Spawns the built headroom program (environment variable HEADROOM names it)."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import jsonschema
import pytest

PROGRAM = os.environ["HEADROOM"]
SOURCE = Path(__file__).resolve().parents[2]

# Experiments to start from. One counts bytes and computes nothing: many samples in little time, and every figure
# is exact. The other takes times.
COUNTING = {
    "id": "small", "workload": "resnet(batch=2,depth=18,width=8)", "device": "meta(capacity=256MiB)", "rules": "dense",
    "allocator": ["malloc", "bfc(growth=on)"], "warmup_steps": 1, "measured_steps": 2,
}
TIMING = {
    "id": "times", "workload": "resnet(batch=2,depth=18,width=8)", "device": "host(capacity=256MiB)",
    "allocator": ["malloc", "bfc(growth=on)"], "warmup_steps": 1, "measured_steps": 1,
}


def suite_of(name: str, *experiments: dict[str, Any]) -> str:
    lines = [f'name = "{name}"', 'description = "for tests"']
    for experiment in experiments:
        lines += ["[[experiment]]", *(f"{key} = {json.dumps(value)}" for key, value in experiment.items())]
    return "\n".join(lines) + "\n"


COUNTING_SUITE = suite_of("counting", COUNTING | {
    "workload": [f"resnet(batch={batch},depth=18,width=8)" for batch in (2, 4, 6, 8)],
    "allocator": ["malloc", "bfc(growth=off)", "bfc(growth=on)"],
})


@dataclass
class Outcome:
    code: int
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        return self.output.rstrip("\n").rsplit("\n", 1)[-1]


class Headroom:
    """Runs commands in a directory of their own."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def _environment(self) -> dict[str, str]:
        # The state of the machine's user, such as calibration, is not used.
        # One thread: tests run beside each other, and OpenMP's threads wait by spinning.
        inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        return inherited | {"XDG_STATE_HOME": str(self.place / "state"), "OMP_NUM_THREADS": "1"}

    def __call__(self, *arguments: str, before: Callable[[], None] | None = None, **environment: str) -> Outcome:
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=self.place, env=self._environment() | environment, preexec_fn=before,
            capture_output=True, text=True, timeout=300, check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PROGRAM, *arguments], cwd=self.place, env=self._environment() | environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def write(self, name: str, text: str) -> str:
        (self.place / name).write_text(text)
        return name

    def runs(self) -> list[Path]:
        return sorted((self.place / "runs").iterdir()) if (self.place / "runs").is_dir() else []

    def only_run(self) -> Path:
        runs = self.runs()
        assert len(runs) == 1
        return runs[0]


@pytest.fixture
def headroom(tmp_path: Path) -> Headroom:
    return Headroom(tmp_path)


@pytest.fixture
def counting(headroom: Headroom) -> str:
    return headroom.write("counting.toml", COUNTING_SUITE)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Path]:
    """The smoke suite from beginning to end: what it printed, and its run directory."""
    program = Headroom(tmp_path_factory.mktemp("smoke"))
    return program("run", "smoke", "--seed", "1"), program.only_run()


def record_of(text: str) -> dict[str, Any]:
    """Parses the output as JSON without NaN, and checks it against reports/schema.json."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    record = json.loads(text, parse_constant=refuse)
    _validator().validate(record)
    return record


@functools.cache
def _validator() -> jsonschema.Draft4Validator:
    return jsonschema.Draft4Validator(json.loads((SOURCE / "reports" / "schema.json").read_text()))


def samples(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]


def run_info(run: Path) -> dict[str, Any]:
    return json.loads((run / "run.json").read_text())


def figures(run: Path) -> dict[tuple[str, str, int], Any]:
    """The figures of a sample that must be the same in every run."""
    return {(s["experiment"], s["arm"], s["block"]): (s["order_index"], s["seed"], s["memory"]["reserved_bytes"])
            for s in samples(run)}
