"""Spreads work over the processors."""

from __future__ import annotations

import os
import pickle
from typing import Any, Callable, Sequence


def spread(work: Callable[[Any], Any], items: Sequence[Any], fewest: int = 3) -> list[Any]:
    """[work(item) for item in items], by forked processes. They see all that this process has read, so only
    results are copied. Starting one takes about as long as drawing a chart, so each gets at least `fewest` items. This
    process does one share itself, and each that another did not finish; it does all if it has threads, because a
    fork could wait for ever for what a thread had locked."""
    alone = len(os.listdir("/proc/self/task")) == 1
    processes = max(1, min(len(os.sched_getaffinity(0)), len(items) // fewest)) if alone else 1
    shares = [list(items[first::processes]) for first in range(processes)]
    helpers = [_begin(work, share) for share in shares[1:]]
    done = [_do(work, shares[0])]
    for share, helper in zip(shares[1:], helpers):
        results = _finish(helper) if helper else None
        done.append(_do(work, share) if results is None else results)
    return [done[place % processes][place // processes] for place in range(len(items))]


def _do(work: Callable[[Any], Any], share: Sequence[Any]) -> list[Any]:
    return [work(item) for item in share]


def _begin(work: Callable[[Any], Any], share: Sequence[Any]) -> tuple[int, int] | None:
    """A forked process that does the share, and the pipe from which its results are read."""
    reader, writer = os.pipe()
    try:
        process = os.fork()
    except OSError:  # no more processes, or no memory
        os.close(reader)
        os.close(writer)
        return None
    if process == 0:
        try:
            with open(writer, "wb") as pipe:
                pickle.dump(_do(work, share), pipe)
        finally:
            os._exit(0)  # neither prints what this process had yet to print nor runs its exit handlers
    os.close(writer)
    return process, reader


def _finish(helper: tuple[int, int]) -> list[Any] | None:
    process, reader = helper
    with open(reader, "rb") as pipe:
        results = pipe.read()
    os.waitpid(process, 0)
    try:
        return pickle.loads(results)
    except (EOFError, pickle.UnpicklingError):  # it failed: the work says why when it is done here
        return None
