"""The attacked program in a folder of its own, and what must hold whatever happened to it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = """
name = "tiny"
description = "counts bytes"
[[experiment]]
id = "small"
workload = ["resnet(batch=2,depth=18,width=8)", "resnet(batch=4,depth=18,width=8)"]
device = "meta(capacity=256MiB)"
rules = "dense"
allocator = ["malloc", "bfc(growth=off)"]
warmup_steps = 1
measured_steps = 1
"""
RUN = ["run", "tiny.toml", "--samples-only", "--seed", "1"]
TOLD = {2, 12, 70, 130}  # the documented exit codes of a run that did not end well


class Failed(Exception):
    pass


class Tries:
    """What an attack tries until its time is over, and what did not survive."""

    def __init__(self, seconds: float, seed: int):
        self.until, self.chance = time.monotonic() + seconds, random.Random(seed)
        self.count, self.failures = 0, []

    def has_time(self) -> bool:
        return time.monotonic() < self.until

    @contextlib.contextmanager
    def one(self, how_to_repeat: str = ""):
        self.count += 1
        try:
            yield
        except Failed as failure:
            self.failures.append(f"{how_to_repeat}: {failure}".removeprefix(": "))


def expect(condition: object, what: str) -> None:
    if not condition:
        raise Failed(what)


class Program:
    """Headroom in a folder of its own, which is emptied by `fresh`."""

    def __init__(self, headroom: Path, place: Path):
        self.headroom, self.place = headroom, place
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(place / "tmp"),
                            "XDG_STATE_HOME": str(place / "state")}  # fmt: skip

    def fresh(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        (self.place / "tmp").mkdir(parents=True)
        (self.place / "tiny.toml").write_text(SUITE)
        lines = (f"{on} a{i} {512 * (1 + i % 7)} 0\n" for i in range(20_000) for on in (1, 0))
        (self.place / "history.txt").write_text("".join(lines))

    def start(self, *words: str, **options) -> subprocess.Popen[str]:
        environment = self.environment | options.pop("environment", {})
        return subprocess.Popen([self.headroom, *words], cwd=self.place, env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)  # fmt: skip

    def __call__(self, *words: str, **options) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, **options)
        output, errors = process.communicate(timeout=300)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def run(self) -> Path | None:
        runs = sorted(self.place.glob("runs/*/run.json"))
        return runs[0].parent if runs else None


def samples(run: Path) -> dict[tuple, int | None]:
    """Returns the recorded samples without a torn last line: reserved bytes, or None for a failed sample."""
    file = run / "samples.jsonl"
    records = [json.loads(line) for line in (file.read_text().split("\n")[:-1] if file.exists() else [])]
    return {(r["experiment"], r["arm"], r["block"]): (r["memory"] or {}).get("reserved_bytes") for r in records}


def finish(program: Program, whole: dict[tuple, int], **options) -> None:
    """Checks that no recorded sample is lost, and that a resumed run ends like an uninterrupted one."""
    run = program.run()
    if run is None:
        return
    recorded = samples(run)
    resumed = program("run", "--resume", str(run), **options)
    expect(resumed.returncode == 0, f"resume ended with {resumed.returncode}: {resumed.stderr[-300:]}")
    end = samples(run)
    expect(recorded.items() <= end.items(), "a recorded sample was lost")
    expect(agrees(end, whole), "the resumed run has other samples than a whole one")


def agrees(found: dict[tuple, int | None], whole: dict[tuple, int | None]) -> bool:
    """Whether the samples are the same; a failed sample must be recorded as failed."""
    return found.keys() == whole.keys() and all(found[key] in (None, whole[key]) for key in whole)


def measured_whole(program: Program) -> dict[tuple, int]:
    program.fresh()
    done = program(*RUN)
    expect(done.returncode == 0, done.stderr)
    return samples(program.run())


def killed(program: Program, chance: random.Random, longest: float, *words: str, **options) -> None:
    process = program.start(*words, **options)
    time.sleep(chance.uniform(0, longest))
    process.send_signal(signal.SIGKILL)
    process.communicate()


def seconds_of(program: Program, *words: str) -> float:
    begin, done = time.monotonic(), program(*words)
    expect(done.returncode == 0, f"{' '.join(words)}: {done.stderr[-300:]}")
    return time.monotonic() - begin


def preloaded(program: Program, name: str) -> str:
    library = program.place.parent / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / f"{name}.c", "-ldl"], check=True)
    return str(library)
