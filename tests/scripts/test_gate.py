"""scripts/gate in a made-up repository, with stand-ins for the build and for what it measures."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# `meson setup DIR/build DIR` puts a program there that prints its arguments and what it is told to print.
STAND_INS = {
    "dpkg-query": "echo installed",
    "meson": 'mkdir "$2"; touch "$2/build.ninja"; cp "$PROGRAM" "$2/headroom"; echo "$3" >> "$PLACE/builds"',
    "ninja": "true",
}
HEADROOM = """#!/bin/sh
echo "$0 $*" >> "$PLACE/calls"
pass=$(wc -l < "$PLACE/calls")
cat "$PLACE/pass$pass.output"
exit $(cat "$PLACE/pass$pass.code")
"""


@pytest.fixture
def gate(tmp_path):
    clone = tmp_path / "clone"
    shutil.copytree(SCRIPTS, clone / "scripts")
    git = ["git", "-C", clone, "-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    for message in ("old", "new"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], check=True)
    for name, body in STAND_INS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "program").write_text(HEADROOM)
    (tmp_path / "program").chmod(0o755)

    def run(*arguments, passes=((0, ""),)):
        for number, (code, output) in enumerate(passes, 1):
            (tmp_path / f"pass{number}.output").write_text(output)
            (tmp_path / f"pass{number}.code").write_text(str(code))
        (tmp_path / "calls").unlink(missing_ok=True)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PLACE": str(tmp_path), "PROGRAM": str(tmp_path / "program")}
        return subprocess.run(
            [clone / "scripts" / "gate", *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
        )

    run.place = tmp_path
    run.commit = lambda name: subprocess.run([*git, "rev-parse", name], capture_output=True, text=True).stdout[:12]
    run.calls = lambda: (tmp_path / "calls").read_text().splitlines()
    return run


def test_the_new_build_runs_every_cell_against_the_old_one(gate):
    done = gate("HEAD~1", "HEAD", "--suite", "mine", "--max-pairs", "20")
    assert done.returncode == 0, done.stderr
    builds = gate.place / "runs" / "gate" / "builds"
    old, new = (builds / gate.commit(name) / "build" / "headroom" for name in ("HEAD~1", "HEAD"))
    (call,) = gate.calls()
    assert call.startswith(f"{new} run mine --against {old} --strict ")
    assert call.endswith("--max-pairs 20")


def test_a_commit_is_built_once(gate):
    gate("HEAD~1")
    gate("HEAD~1")
    assert len((gate.place / "builds").read_text().splitlines()) == 2


def test_builds_that_were_deleted_are_built_again(gate):
    assert gate("HEAD~1").returncode == 0
    shutil.rmtree(gate.place / "runs")
    assert gate("HEAD~1").returncode == 0
    assert len((gate.place / "builds").read_text().splitlines()) == 4


def test_what_is_worse_fails_only_when_it_is_worse_again(gate):
    slow, other = "worse: a/b: steady_step_time_ns by +5.0 %.\n", "worse: a/c: steady_step_time_ns by +4.0 %.\n"
    slower = slow.replace("5.0", "6.1")
    assert gate("HEAD~1", passes=[(10, slow), (10, slower)]).returncode == 10
    assert gate("HEAD~1", passes=[(10, slow), (10, other)]).returncode == 0
    assert gate("HEAD~1", passes=[(10, slow), (0, "")]).returncode == 0
    assert gate("HEAD~1", passes=[(10, slow + other), (10, other)]).stdout.splitlines()[-1] == (
        "worse twice: a/c: steady_step_time_ns"
    )


def test_what_is_not_worse_is_measured_once_and_keeps_its_exit_code(gate):
    for code in (0, 12):
        assert gate("HEAD~1", passes=[(code, "")]).returncode == code
        assert len(gate.calls()) == 1


def test_a_name_that_is_no_commit_is_told(gate):
    done = gate("nothing-of-the-kind")
    assert (done.returncode, "nothing-of-the-kind" in done.stderr) == (2, True)
