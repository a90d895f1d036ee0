"""Work is spread over processes, and is done even when they die."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reports.data.spread import spread

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})


@pytest.mark.parametrize("count", [0, 1, 7, 20])
def test_the_results_stand_in_the_order_of_the_items(count: int) -> None:
    assert spread(lambda item: item * item, range(count)) == [item * item for item in range(count)]


def alone(program: str) -> str:
    """What a program prints in a process without threads, which numpy's library may have started in this one."""
    start = "import os, signal; os.sched_getaffinity = lambda process: {0, 1, 2}\nfrom reports.data.spread import spread\n"
    command = [sys.executable, "-c", start + program]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_several_processes_share_the_work() -> None:
    assert alone("print(len(set(spread(lambda item: os.getpid(), range(20)))))") == "3\n"


def test_two_long_pieces_of_work_are_done_by_two_processes() -> None:
    assert alone("print(len(set(spread(lambda item: os.getpid(), range(2), fewest=1))))") == "2\n"


def test_a_process_with_threads_does_all_itself() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert spread(lambda item: os.getpid(), range(20)) == [os.getpid()] * 20
    finally:
        end.set()
        thread.join()


def test_the_share_of_a_process_that_dies_is_done_here() -> None:
    program = """
own = os.getpid()
def work(item):
    if os.getpid() != own:
        os.kill(os.getpid(), signal.SIGKILL)
    return item
print(spread(work, range(20)) == list(range(20)))
"""
    assert alone(program) == "True\n"


def test_an_error_reaches_the_caller() -> None:
    def work(item: int) -> int:
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item"):
        spread(work, range(20))
