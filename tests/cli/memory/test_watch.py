"""headroom watch on real child processes: it sees what they hold and does not affect them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAM, Headroom, Outcome

MIB = 2**20
OVER_BUDGET, LEAK_FOUND = 13, 14

# No test depends on how long anything takes: a child waits until it has been sampled often enough,
# which it sees from the length of the timeline.
PRELUDE = f"""
import os, signal, sys, time
MIB = {MIB}
timeline = os.environ["TIMELINE"]
def looks():
    return sum(1 for _ in open(timeline))
def be_seen(times=2):
    enough = looks() + times
    while looks() < enough and os.getppid() != 1:  # 1: nobody watches any more
        time.sleep(0.002)
def hold(mib):
    return bytearray(os.urandom(1)) * (mib * MIB)
"""


class Watched:
    """Runs `headroom watch` around a Python script."""

    def __init__(self, headroom: Headroom) -> None:
        self.headroom = headroom
        self.out = headroom.place / "watched"

    def arguments(self, script: str, *options: str, interval: str = "5ms") -> list[str]:
        self.headroom.write("child.py", PRELUDE + script)
        return ["watch", "--out", str(self.out), "--interval", interval, "--no-page", *options,
                "--", sys.executable, "child.py"]

    @property
    def environment(self) -> dict[str, str]:
        return {"TIMELINE": str(self.out / "timeline.jsonl")}

    def __call__(self, script: str, *options: str, interval: str = "5ms", **environment: str) -> Outcome:
        arguments = self.arguments(script, *options, interval=interval)
        return self.headroom(*arguments, **self.environment, **environment)

    @property
    def file(self) -> dict[str, Any]:
        return json.loads((self.out / "watch.json").read_text())

    @property
    def summary(self) -> dict[str, Any]:
        return self.file["summary"]

    @property
    def looks(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / "timeline.jsonl").read_text().splitlines()]


@pytest.fixture
def watched(headroom: Headroom) -> Watched:
    return Watched(headroom)


def test_output_input_and_exit_status_are_the_commands_own(headroom: Headroom) -> None:
    done = subprocess.run(
        [PROGRAM, "watch", "--no-page", "--", "sh", "-c", "cat; echo heard >&2; exit 7"],
        cwd=headroom.place, input="said", capture_output=True, text=True, check=False,
    )
    assert (done.returncode, done.stdout) == (7, "said")
    assert "heard" in done.stderr
    assert "exit status 7" in done.stderr


def test_it_sees_what_the_process_holds_and_the_kernels_mark_of_what_it_held(watched: Watched) -> None:
    assert watched("block = hold(64); be_seen(); del block; be_seen()").code == 0
    assert 64 * MIB <= watched.summary["resident_peak"]["bytes"] < 128 * MIB
    assert 64 * MIB <= watched.summary["highest_process"]["high_water_mark_bytes"] < 128 * MIB


def test_a_peak_between_two_looks_is_in_the_kernels_mark(watched: Watched) -> None:
    watched("be_seen(); block = hold(96); del block; be_seen()", interval="200ms")
    assert watched.summary["highest_process"]["high_water_mark_bytes"] >= 96 * MIB


def test_workers_count_even_those_whose_parent_died(watched: Watched) -> None:
    # The worker's parent forks it and ends at once: nobody but the watcher is its parent now.
    outcome = watched("""
ready, told = os.pipe()
over, ending = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.close(ending)
        block = hold(64)
        os.write(told, b"1")
        os.read(over, 1)  # until the command has ended
    os._exit(0)
os.wait()
os.read(ready, 1)
be_seen(2)
""")
    assert outcome.code == 0
    assert watched.summary["processes_seen"] >= 2
    largest = max(watched.looks, key=lambda look: look["resident_bytes"])
    assert len(largest["processes"]) >= 2
    assert sum(process["resident_bytes"] for process in largest["processes"]) == largest["resident_bytes"]
    assert largest["resident_bytes"] >= 64 * MIB


def test_pages_that_workers_share_are_charged_once(watched: Watched) -> None:
    outcome = watched("""
block = hold(64)
children = []
for _ in range(3):
    if (child := os.fork()) == 0:
        be_seen(20)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
""", "--budget", "160MiB")
    assert outcome.code == 0, "shared pages passed for a breach"
    assert watched.summary["resident_peak"]["bytes"] >= 4 * 64 * MIB
    assert 64 * MIB <= watched.summary["proportional_peak"]["bytes"] < 2 * 64 * MIB


# 8 MiB a second whatever the machine is doing meanwhile, until it has been looked at often enough.
LEAK = """
kept = []
start = time.monotonic()
while looks() < 150:
    while len(kept) < 128 * (time.monotonic() - start):
        kept.append(bytearray(b"1") * (MIB // 16))
    time.sleep(0.002)
"""


def test_a_leak_is_found_and_fails_only_when_asked_to(watched: Watched) -> None:
    assert watched(LEAK).code == 0
    assert watched.summary["growth"][0]["verdict"] == "leak"
    shutil.rmtree(watched.out)
    outcome = watched(LEAK, "--fail-on", "leak")
    assert outcome.code == LEAK_FOUND
    assert "LEAKS" in outcome.errors


def test_a_leak_in_a_worker_is_found_in_the_tree_and_in_the_worker(watched: Watched) -> None:
    watched(f"""
if (worker := os.fork()) == 0:
    exec({LEAK!r})
    os._exit(0)
os.waitpid(worker, 0)
""")
    assert watched.summary["growth"][0]["verdict"] == "leak"
    assert [entry["metric"].startswith("RSS of") for entry in watched.summary["growth"][1:]] == [True]


def test_growth_within_the_limit_and_memory_that_stays_are_no_leak(watched: Watched) -> None:
    outcome = watched("block = hold(64)\nbe_seen(40)", "--limit-leak", "1TiB/min", "--fail-on", "leak")
    assert outcome.code == 0
    assert watched.summary["growth"][0]["verdict"] in ("no leak", "levels off")
    first = outcome.errors.splitlines()[0]
    assert first.startswith("headroom watch: NO LEAK of more than 1.00 TiB per min seen in ") and "would not show" in first


def test_a_crash_leaves_all_that_was_seen(watched: Watched) -> None:
    outcome = watched("block = hold(32); be_seen(); os.abort()")
    assert outcome.code == 128 + signal.SIGABRT
    assert watched.summary["end"] == {"words": "killed by SIGABRT", "exit_status": None, "signal": signal.SIGABRT}
    assert watched.summary["resident_peak"]["bytes"] >= 32 * MIB


def test_a_signal_reaches_the_command_and_one_that_ignores_it_goes_on(watched: Watched) -> None:
    arguments = watched.arguments("""
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))
print("ready", flush=True)
while True:
    time.sleep(0.01)
""")
    process = subprocess.Popen(
        [PROGRAM, *arguments], cwd=watched.headroom.place, text=True,
        env=watched.headroom._environment() | watched.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    before = len(watched.looks)
    while len(watched.looks) < before + 20:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == 5


def test_a_budget_that_is_passed_is_told_with_the_moment_and_the_process(watched: Watched) -> None:
    outcome = watched("be_seen(); block = hold(96); be_seen()", "--budget", "64MiB")
    assert outcome.code == OVER_BUDGET
    assert watched.summary["end"]["exit_status"] == 0
    breach = watched.summary["breach"]
    assert breach["held_bytes"] > 64 * MIB
    assert breach["process"]["pid"] == watched.file["pid"]
    assert 0 < breach["time_s"] <= watched.summary["duration_s"]
    assert "over budget" in outcome.errors


def test_a_budget_that_is_kept_changes_nothing(watched: Watched) -> None:
    outcome = watched("be_seen(); sys.exit(3)", "--budget", "4GiB")
    assert (outcome.code, watched.summary["breach"]) == (3, None)


def test_a_budget_stops_the_whole_tree_when_asked_to(watched: Watched) -> None:
    outcome = watched("""
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    block = hold(96)
while True:
    time.sleep(0.01)
""", "--budget", "64MiB", "--stop")
    assert outcome.code == OVER_BUDGET
    assert watched.summary["end"]["words"] == "killed by SIGKILL"
    for process in watched.looks[-1]["processes"]:
        assert not Path(f"/proc/{process['pid']}/status").exists()


def test_processes_that_outlive_the_command_are_named_and_left_running(watched: Watched) -> None:
    outcome = watched("""
if os.fork() == 0:
    os.setsid()
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    time.sleep(600)
    os._exit(0)
be_seen()
os._exit(0)
""")
    left = watched.summary["left_behind"]
    assert outcome.code == 0 and len(left) == 1
    try:
        assert Path(f"/proc/{left[0]['pid']}").exists()
        assert "outlived the command" in outcome.errors
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(left[0]["pid"], signal.SIGKILL)


def test_a_process_that_runs_already_can_be_followed(watched: Watched) -> None:
    watched.headroom.write("child.py", PRELUDE + "import pathlib\nblock = hold(32)\nsys.stdin.readline()\n")
    child = subprocess.Popen([sys.executable, "child.py"], cwd=watched.headroom.place, stdin=subprocess.PIPE,
                             env=watched.headroom._environment() | watched.environment, text=True)
    follower = watched.headroom.start("watch", "--no-page", "--interval", "5ms", "--out", str(watched.out),
                                      "--pid", str(child.pid))
    while not (watched.out / "timeline.jsonl").is_file() or not any(
        look["resident_bytes"] >= 32 * MIB for look in watched.looks[:-1]
    ):
        assert follower.poll() is None
        time.sleep(0.01)
    child.communicate("\n")
    assert follower.wait(60) == 0
    assert watched.summary["end"]["words"] == "watched from outside"
    assert watched.summary["resident_peak"]["bytes"] >= 32 * MIB


# A stand-in for the driver's library: one device, 3 GiB used, 1 GiB of it by the command.
NVML = r"""
#include <stdlib.h>
struct memory { unsigned long long total, free, used; };
struct process { unsigned int pid; unsigned long long used; unsigned int gpu, compute; };
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int* n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void** d) { *d = (void*)1; return i; }
int nvmlDeviceGetMemoryInfo(void* d, struct memory* m) { m->total = 8ULL << 30; m->used = 3ULL << 30; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void* d, unsigned int* n, struct process* p) {
  int room = *n >= 2;
  *n = 2;
  if (!room) return 7;
  p[0].pid = 1; p[0].used = 2ULL << 30;
  p[1].pid = atoi(getenv("GPU_PID")); p[1].used = 1ULL << 30;
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for the stand-in of NVML")
def test_gpu_memory_is_that_of_the_tree_where_the_driver_tells(watched: Watched) -> None:
    watched.headroom.write("nvml.c", NVML)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"],
                   cwd=watched.headroom.place, check=True)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    watching = subprocess.Popen(
        [PROGRAM, "watch", "--no-page", "--interval", "5ms", "--out", str(watched.out), "--pid", str(child.pid)],
        env=watched.headroom._environment() | {"GPU_PID": str(child.pid),
                                               "LD_LIBRARY_PATH": str(watched.headroom.place)},
        stderr=subprocess.PIPE, text=True,
    )
    while not (watched.out / "timeline.jsonl").is_file() or len(watched.looks[:-1]) < 3:
        assert watching.poll() is None
        time.sleep(0.01)
    child.communicate("\n")
    assert "of the tree (polled)" in watching.communicate(timeout=60)[1]
    assert watched.summary["gpu_peak"]["bytes"] == 2**30
    assert watched.looks[0]["gpu_used_bytes"] == 3 * 2**30


def test_where_there_is_no_driver_it_says_so(watched: Watched) -> None:
    watched("be_seen()", LD_LIBRARY_PATH="/nonexistent")
    if watched.summary["gpu_peak"] is not None:
        pytest.skip("this machine has NVML")
    assert "NVML" in watched.summary["no_gpu_reason"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["watch"], "name a command"),
        (["watch", "--", "/no/such/program"], "cannot be started"),
        (["watch", "--pid", "4194305"], "no such process"),
        (["watch", "--interval", "fast", "--", "true"], "--interval: 'fast'"),
        (["watch", "--interval", "2h", "--", "true"], "--interval: '2h'"),
        (["watch", "--limit-leak", "1MiB", "--", "true"], "--limit-leak: '1MiB'"),
        (["watch", "--budget", "much", "--", "true"], "--budget: 'much'"),
        (["watch", "--stop", "--", "true"], "--budget"),
    ],
)
def test_bad_input_is_refused_with_place_and_mend(headroom: Headroom, arguments: list[str], words: str) -> None:
    outcome = headroom(*arguments)
    assert outcome.code == 2
    assert words in outcome.errors


def test_an_earlier_record_is_never_overwritten(watched: Watched) -> None:
    assert watched("be_seen()").code == 0
    outcome = watched("be_seen()")
    assert outcome.code == 2
    assert "choose another place" in outcome.errors
