"""Work is spread over processes, and is done even when they die."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from reports.data.spread import spread


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})


@pytest.mark.parametrize("count", [0, 1, 7, 20])
def test_the_results_stand_in_the_order_of_the_items(count: int) -> None:
    assert spread(lambda item: item * item, range(count)) == [item * item for item in range(count)]


def test_several_processes_share_the_work() -> None:
    assert len(set(spread(lambda item: os.getpid(), range(20)))) == 3


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
    own = os.getpid()

    def work(item: int) -> int:
        if os.getpid() != own:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert spread(work, range(20)) == list(range(20))


def test_an_error_reaches_the_caller() -> None:
    def work(item: int) -> int:
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item"):
        spread(work, range(20))
