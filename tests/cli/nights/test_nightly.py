"""scripts/nightly with the built program and a tiny suite."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import COUNTING, PROGRAM, SOURCE, Headroom, samples, suite_of

SCRIPT = SOURCE / "scripts" / "nightly"
PLANNED = 4
SUITE = suite_of("counting", COUNTING)


class Script:
    """Calls scripts/nightly in its own directory."""

    def __init__(self, headroom: Headroom) -> None:
        self.place = headroom.place
        self.suite = headroom.write("counting.toml", SUITE)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = os.environ | {"XDG_STATE_HOME": str(self.place / "state"), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [SCRIPT, "--headroom", PROGRAM, "--suite", self.suite, *arguments],
            cwd=self.place, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=300)
        return subprocess.CompletedProcess([], process.returncode, output, errors)

    def kill_after(self, count: int) -> None:
        """Kills a night, and everything it started, once it has recorded this many samples."""
        known = self.runs()
        process = self.start()
        while self.runs() == known or len(samples(self.runs()[-1])) < count:
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def runs(self) -> list[Path]:
        out = self.place / "runs" / "nightly"
        return sorted(run for run in out.glob("*-counting*") if (run / "samples.jsonl").exists())

    def nights(self) -> list[Path]:
        return sorted((self.place / "history" / "nights").glob("*.json"))


@pytest.fixture
def nightly(headroom: Headroom) -> Script:
    return Script(headroom)


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    script = Script(Headroom(tmp_path_factory.mktemp("first")))
    done = script()
    assert done.returncode == 0, done.stderr
    return script.place


@pytest.fixture
def second(nightly: Script, first_night: Path) -> Script:
    """A night was measured in its directory, which that night's record names."""
    shutil.copytree(first_night, nightly.place, symlinks=True, dirs_exist_ok=True)
    (run,) = nightly.runs()
    text = (run / "run.json").read_text()
    assert str(first_night) in text
    (run / "run.json").write_text(text.replace(str(first_night), str(nightly.place)))
    return nightly


def test_a_night_is_measured_kept_checked_and_reported(nightly: Script) -> None:
    done = nightly()
    assert done.returncode == 0, done.stderr
    (run,) = nightly.runs()
    assert len(nightly.nights()) == 1
    assert json.loads((run / "check.json").read_text())["exit_code"] == 0
    assert (run / "issue.md").read_text().startswith("## ")
    for export in ("report.html", "summary.md", "results.xml"):
        assert (run / export).exists()
    assert (run.parent / "latest").resolve() == run
    assert done.stdout.splitlines()[-1] == f"Night: {run}"


def test_every_call_after_a_whole_night_measures_another(second: Script) -> None:
    assert second().returncode == 0
    assert (len(second.runs()), len(second.nights())) == (2, 2)


def test_a_killed_night_continues_where_it_stopped(second: Script) -> None:
    before = [night.read_text() for night in second.nights()]
    second.kill_after(2)
    assert [night.read_text() for night in second.nights()] == before
    kept = samples(second.runs()[-1])
    done = second()
    assert done.returncode == 0, done.stderr
    assert (len(second.runs()), len(second.nights())) == (2, 2)
    assert samples(second.runs()[-1])[: len(kept)] == kept
    assert len(samples(second.runs()[-1])) == PLANNED


def test_a_night_killed_after_it_was_measured_is_kept_by_the_next_call(second: Script) -> None:
    (run,) = second.runs()
    for lost in (run / "check.json", run / "verdicts.json", *second.nights()):
        lost.unlink()
    assert second().returncode == 0
    assert second.runs() == [run]
    assert len(second.nights()) == 1


def test_a_night_of_another_build_is_left_and_a_new_one_begins(nightly: Script) -> None:
    nightly.kill_after(2)
    (old,) = nightly.runs()
    info = json.loads((old / "run.json").read_text())
    info["headroom"]["executable_sha256"] = "0" * 64
    (old / "run.json").write_text(json.dumps(info))
    kept = samples(old)
    done = nightly()
    assert done.returncode == 0, done.stderr
    assert "A new one begins" in done.stdout
    assert (len(nightly.runs()), len(nightly.nights())) == (2, 1)
    assert samples(old) == kept


def test_a_night_that_is_worse_than_accepted_fails_with_an_issue(second: Script) -> None:
    file = second.place / "history" / "accepted.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["cell"]["exact"]["reserved_bytes.steady_peak"] -= 1
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = second()
    assert done.returncode == 10
    issue = (second.runs()[-1] / "issue.md").read_text()
    assert "+1 bytes" in issue
    assert lines[0]["cell"]["experiment"] in issue


def test_what_the_budget_leaves_out_is_no_regression(second: Script) -> None:
    done = second("--budget", "1s")
    assert done.returncode == 0, done.stderr
    assert len(second.nights()) == 2


def test_what_cannot_be_run_says_so(nightly: Script) -> None:
    nightly.suite = "nigthly"
    done = nightly()
    assert (done.returncode, "nightly" in done.stderr) == (2, True)
    assert nightly.nights() == []
