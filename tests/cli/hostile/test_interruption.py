"""A run that is stopped in any way loses at most the sample in flight. Resumed, it has the exact
figures of a run that was never stopped."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import pytest
from conftest import COUNTING, PROGRAM, TIMING, Headroom, Outcome, figures, run_info, samples, suite_of

SEED = ["--seed", "11"]


@pytest.fixture
def whole(headroom: Headroom, counting: str) -> dict:
    """The figures of a run that nothing disturbed."""
    assert headroom("run", counting, "--samples-only", "--out", "whole", *SEED).code == 0
    (run,) = (headroom.place / "whole").iterdir()
    return figures(run)


def acted_on(headroom: Headroom, done: int, act: Callable[[subprocess.Popen[str]], object], *arguments: str) -> Outcome:
    """Starts a run, acts on it once `done` samples are reported, and waits for its end."""
    process = headroom.start("run", *arguments, "--progress", "plain")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"{done}/"):
            act(process)
            break
    output, errors = process.communicate(timeout=120)
    return Outcome(process.returncode, output, errors)


def stop_after(headroom: Headroom, counting: str, done: int, number: signal.Signals) -> Outcome:
    return acted_on(headroom, done, lambda run: run.send_signal(number), counting, "--samples-only", *SEED)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_done_and_prints_how_to_continue(
    headroom: Headroom, counting: str, whole: dict, number: signal.Signals
) -> None:
    outcome = stop_after(headroom, counting, 5, number)
    run = headroom.only_run()
    assert outcome.code == 130
    assert f"headroom run --resume runs/{run.name}" in outcome.errors
    assert run_info(run)["status"] == "interrupted"
    assert 5 <= len(samples(run)) < len(whole)

    assert headroom("run", "--resume", str(run), "--samples-only").code == 0
    assert figures(run) == whole
    assert len(samples(run)) == len(whole)  # none was run twice
    assert run_info(run)["status"] == "finished"


def test_an_interrupt_leaves_a_report_of_what_there_is(headroom: Headroom, counting: str) -> None:
    outcome = acted_on(headroom, 5, lambda run: run.send_signal(signal.SIGINT), counting, *SEED)
    assert outcome.code == 130, outcome.errors
    report = headroom.only_run() / "report.html"
    assert Path(outcome.last_line) == report
    assert "was interrupted" in report.read_text()
    assert "Complete the run: headroom run --resume" in outcome.output


def test_a_kill_is_survived_even_in_the_middle_of_a_line(headroom: Headroom, counting: str, whole: dict) -> None:
    assert stop_after(headroom, counting, 7, signal.SIGKILL).code == -signal.SIGKILL
    run = headroom.only_run()
    file = run / "samples.jsonl"
    file.write_bytes(file.read_bytes()[:-40])

    outcome = headroom("run", "--resume", str(run), "--samples-only")
    assert outcome.code == 0, outcome.errors
    assert figures(run) == whole


def test_verify_leaves_a_torn_line_out_and_says_so(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    file = headroom.only_run() / "samples.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    outcome = headroom("verify", str(headroom.only_run()))
    assert outcome.code == 0, outcome.errors
    assert "incomplete" in outcome.errors


def test_a_full_disk_is_an_error_that_loses_nothing(headroom: Headroom, counting: str, whole: dict) -> None:
    # A limit on the file size imitates a disk that fills up in the middle of a record.
    limit = 50_000
    outcome = headroom(
        "run", counting, "--samples-only", *SEED,
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    run = headroom.only_run()
    assert outcome.code == 2
    assert "samples.jsonl: cannot be written" in outcome.errors
    assert f"headroom run --resume runs/{run.name}" in outcome.errors
    kept = figures(run)  # every line is whole
    assert 0 < len(kept) < len(whole)

    assert headroom("run", "--resume", str(run), "--samples-only").code == 0
    assert figures(run) == whole


def test_a_finished_run_has_nothing_left_to_do(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    before = (headroom.only_run() / "samples.jsonl").read_bytes()
    assert headroom("run", "--resume", str(headroom.only_run()), "--samples-only").code == 0
    assert (headroom.only_run() / "samples.jsonl").read_bytes() == before


def test_a_run_of_a_changed_suite_is_not_continued(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    suite = headroom.place / counting
    suite.write_text(suite.read_text().replace("batch=8", "batch=9"))
    outcome = headroom("run", "--resume", str(headroom.only_run()))
    assert outcome.code == 2
    assert "the suite or its claims changed" in outcome.errors
    assert "batch=8" in outcome.errors


def test_a_run_of_another_machine_program_or_environment_is_not_continued(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    run: Path = headroom.only_run()
    info = run_info(run)
    info["machine"]["cpu"] = "abacus"
    info["headroom"]["executable_sha256"] = "0"
    (run / "run.json").write_text(json.dumps(info))
    outcome = headroom("run", "--resume", str(run), OMP_NUM_THREADS="7")
    assert outcome.code == 2
    assert "the processor was 'abacus'" in outcome.errors
    assert "the program was rebuilt" in outcome.errors
    assert "the variable OMP_NUM_THREADS was '1' and is '7'" in outcome.errors


def test_a_run_is_continued_from_any_directory(headroom: Headroom, counting: str, whole: dict) -> None:
    stop_after(headroom, counting, 5, signal.SIGINT)
    elsewhere = Headroom(headroom.place / "elsewhere")
    elsewhere.place.mkdir()
    outcome = elsewhere("run", "--resume", f"../runs/{headroom.only_run().name}", "--samples-only")
    assert outcome.code == 0, outcome.errors
    assert figures(headroom.only_run()) == whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_replay_leaves_nothing_behind(headroom: Headroom, number: signal.Signals) -> None:
    temporary = headroom.place / "temporary"
    temporary.mkdir()
    headroom.write("long.txt", "".join(f"{on} a{i} 4096 0\n" for i in range(400_000) for on in (1, 0)))
    process = headroom.start("replay", "long.txt", "--capacity", "1GiB", TMPDIR=str(temporary))
    while not list(temporary.glob("headroom-*/*")):  # the importer is at work
        assert process.poll() is None
        time.sleep(0.005)
    (importer,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(number)
    assert process.wait(30) == 130
    assert list(temporary.iterdir()) == []
    assert not Path(f"/proc/{importer}").exists()


def test_a_run_whose_folder_is_deleted_does_not_end_as_complete(headroom: Headroom, counting: str) -> None:
    def delete(_run: object) -> None:
        shutil.rmtree(headroom.place / "runs", ignore_errors=True)

    outcome = acted_on(headroom, 13, delete, counting, "--samples-only")  # later samples write no traces
    assert outcome.code == 2, outcome.errors
    assert "Results" not in outcome.output and "samples.jsonl: was deleted" in outcome.errors


def test_a_pair_that_a_kill_cut_in_two_is_recorded_once(headroom: Headroom) -> None:
    suite = headroom.write("noisy.toml", suite_of("noisy", TIMING | {"blocks": 2}))
    acted_on(headroom, 3, lambda run: run.kill(), suite, "--samples-only", "--max-pairs", "2")
    run = headroom.only_run()
    records = run / "samples.jsonl"
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:3]))  # the kill may have come after the second sample of the pair
    outcome = headroom("run", "--resume", str(run), "--samples-only")
    assert outcome.code == 0, outcome.errors
    places = [(sample["experiment"], sample["arm"], sample["block"]) for sample in samples(run)]
    assert len(set(places)) == len(places)


def test_a_sample_that_a_full_disk_cut_off_is_taken_when_there_is_room(headroom: Headroom) -> None:
    """The limit stands for a disk on which the run's record fits, and no trace."""
    suite = headroom.write("one.toml", suite_of("one", COUNTING | {"allocator": "malloc", "measured_steps": 20}))
    assert headroom("run", suite, "--samples-only").code == 0
    whole = headroom.only_run()
    (trace,) = (whole / "traces").iterdir()
    limit = (whole / "run.json").stat().st_size + 1
    assert limit < trace.stat().st_size
    full = headroom("run", suite, "--samples-only", "--out", "full",
                    before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))  # fmt: skip
    assert full.code == 2
    assert f"{trace.name}: cannot be written: File too large; make room. Every sample" in full.errors
    (run,) = (headroom.place / "full").iterdir()
    assert headroom("run", "--resume", str(run)).code == 0
    assert [sample["status"] for sample in samples(run)] == ["ok", "ok"]


def test_a_sample_whose_run_was_killed_before_it_could_ask_is_not_taken() -> None:
    start = "import os, sys; read, write = os.pipe(); os.close(read); os.dup2(write, 3); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", start, PROGRAM, "sample", "{}", "--result-fd", "3"],
                          capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "headroom: the run that asked for this sample has ended\n"
