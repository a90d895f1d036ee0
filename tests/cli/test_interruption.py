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

import pytest
from conftest import PROGRAM, Headroom, figures, run_info, samples

SEED = ["--seed", "11"]


@pytest.fixture
def whole(headroom: Headroom, counting: str) -> dict:
    """The figures of a run that nothing disturbed."""
    assert headroom("run", counting, "--samples-only", "--out", "whole", *SEED).code == 0
    (run,) = (headroom.place / "whole").iterdir()
    return figures(run)


def stop_after(headroom: Headroom, counting: str, done: int, number: signal.Signals) -> tuple[int, str]:
    """Starts a run and signals it once `done` samples are reported; its exit status and errors."""
    process = headroom.start("run", counting, "--samples-only", "--progress", "plain", *SEED)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"{done}/"):
            process.send_signal(number)
            break
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_done_and_prints_how_to_go_on(
    headroom: Headroom, counting: str, whole: dict, number: signal.Signals
) -> None:
    code, errors = stop_after(headroom, counting, 5, number)
    run = headroom.only_run()
    assert code == 130
    assert f"headroom run --resume runs/{run.name}" in errors
    assert run_info(run)["status"] == "interrupted"
    assert 5 <= len(samples(run)) < len(whole)

    assert headroom("run", "--resume", str(run), "--samples-only").code == 0
    assert figures(run) == whole
    assert len(samples(run)) == len(whole)  # none was run twice
    assert run_info(run)["status"] == "finished"


def test_an_interrupt_leaves_a_report_of_what_there_is(headroom: Headroom, counting: str) -> None:
    process = headroom.start("run", counting, "--progress", "plain", *SEED)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("5/"):
            process.send_signal(signal.SIGINT)
            break
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    report = headroom.only_run() / "report.html"
    assert Path(output.splitlines()[-1]) == report
    assert "was interrupted" in report.read_text()
    assert "Complete the run: headroom run --resume" in output


def test_a_kill_is_survived_even_in_the_middle_of_a_line(headroom: Headroom, counting: str, whole: dict) -> None:
    code, _ = stop_after(headroom, counting, 7, signal.SIGKILL)
    run = headroom.only_run()
    assert code == -signal.SIGKILL
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


def test_a_finished_run_has_nothing_left_to_go_on_with(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    before = (headroom.only_run() / "samples.jsonl").read_bytes()
    assert headroom("run", "--resume", str(headroom.only_run()), "--samples-only").code == 0
    assert (headroom.only_run() / "samples.jsonl").read_bytes() == before


def test_a_changed_suite_is_not_gone_on_with(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    suite = headroom.place / counting
    suite.write_text(suite.read_text().replace("batch=8", "batch=9"))
    outcome = headroom("run", "--resume", str(headroom.only_run()))
    assert outcome.code == 2
    assert "the suite or its claims changed" in outcome.errors
    assert "batch=8" in outcome.errors


def test_another_machine_program_or_environment_is_not_gone_on_with(headroom: Headroom, counting: str) -> None:
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


def test_a_run_is_gone_on_with_from_any_directory(headroom: Headroom, counting: str, whole: dict) -> None:
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
    process = headroom.start("run", counting, "--samples-only", "--progress", "plain")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("13/"):  # later samples write no traces
            shutil.rmtree(headroom.place / "runs", ignore_errors=True)
            break
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 2, errors
    assert "Results" not in output and "samples.jsonl: was deleted" in errors


NOISY = """
name = "noisy"
description = "for tests"

[[experiment]]
id = "pairs"
workload = "resnet(batch=2,depth=18,width=8)"
device = "host(capacity=256MiB)"
allocator = ["malloc", "bfc(growth=on)"]
warmup_steps = 1
measured_steps = 1
blocks = 2
"""


def test_a_pair_that_a_kill_cut_in_two_is_recorded_once(headroom: Headroom) -> None:
    suite = headroom.write("noisy.toml", NOISY)
    process = headroom.start("run", suite, "--samples-only", "--progress", "plain", "--max-pairs", "2")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("3/"):
            process.kill()
            break
    process.communicate(timeout=60)
    run = headroom.only_run()
    assert len(samples(run)) % 2 == 1  # the kill came between the two samples of a pair
    outcome = headroom("run", "--resume", str(run), "--samples-only")
    assert outcome.code == 0, outcome.errors
    places = [(sample["experiment"], sample["arm"], sample["block"]) for sample in samples(run)]
    assert len(set(places)) == len(places)


ONE_CELL = """
name = "one"
description = "for tests"
[[experiment]]
id = "small"
workload = "resnet(batch=2,depth=18,width=8)"
device = "meta(capacity=256MiB)"
rules = "dense"
allocator = "malloc"
warmup_steps = 1
measured_steps = 20
"""


def test_a_sample_that_a_full_disk_cut_off_is_taken_when_there_is_room(headroom: Headroom) -> None:
    """The limit stands for a disk on which the run's record fits, and no trace."""
    suite = headroom.write("one.toml", ONE_CELL)
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
