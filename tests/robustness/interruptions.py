"""Attacks that interrupt the program: failing system calls, kills, and other processes on its folder."""

from __future__ import annotations

import errno
import shutil
import time

from attacked import (
    RUN,
    TOLD,
    Program,
    Tries,
    agrees,
    expect,
    finish,
    killed,
    measured_whole,
    preloaded,
    samples,
    seconds_of,
)

ERRORS = ["ENOSPC", "EDQUOT", "EIO", "EINTR", "EMFILE", "ENOMEM"]


def fail_calls(program: Program, tries: Tries) -> None:
    library = preloaded(program, "fail_call")
    whole = measured_whole(program)
    program.fresh()
    count = program.place / "count"
    preload = {"LD_PRELOAD": library, "FAIL_COUNT": str(count)}
    expect(program(*RUN, environment=preload).returncode == 0, "the run fails without a failing call")
    points = [(at, name) for at in range(1, int(count.read_text()) + 1) for name in ERRORS]
    tries.chance.shuffle(points)  # if time runs out, the points tried are a random sample
    for at, name in points:
        if not tries.has_time():
            break
        program.fresh()
        failing = preload | {"FAIL_AT": str(at), "FAIL_WITH": str(getattr(errno, name))}
        done = program(*RUN, environment=failing)
        with tries.one(f"FAIL_AT={at} FAIL_WITH={name}"):
            expect(done.returncode in {0, *TOLD}, f"ended with {done.returncode}: {done.stderr[-300:]}")
            expect(done.returncode == 0 or "headroom: " in done.stderr, "ended without a message")
            expect(name != "EINTR" or done.returncode == 0, f"a signal ended it: {done.stderr[-300:]}")
            if done.returncode == 0:
                expect(agrees(samples(program.run()), whole), "ended well with other samples")
            finish(program, whole)


def kill_runs(program: Program, tries: Tries) -> None:
    whole = measured_whole(program)
    program.fresh()
    longest = seconds_of(program, *RUN)
    while tries.has_time():
        program.fresh()
        killed(program, tries.chance, longest, *RUN)
        for _ in range(tries.chance.randrange(3)):
            if (run := program.run()) is not None:
                killed(program, tries.chance, longest, "run", "--resume", str(run))
        with tries.one():
            finish(program, whole)


def kill_exports(program: Program, tries: Tries) -> None:
    program.fresh()
    words = ["export", "history.txt", "--to", "rmm", "-o", "out.csv"]
    longest = seconds_of(program, *words)
    source = (program.place / "history.txt").read_bytes()
    whole = (program.place / "out.csv").read_bytes()
    while tries.has_time():
        (program.place / "out.csv").unlink(missing_ok=True)
        killed(program, tries.chance, longest, *words)
        out = program.place / "out.csv"
        time.sleep(0.1)
        with tries.one():
            expect(not out.exists() or out.read_bytes() == whole, "half a file has the name of a whole one")
            expect((program.place / "history.txt").read_bytes() == source, "the source was changed")
            expect(program(*words).returncode == 0 and out.read_bytes() == whole, "the export does not work again")


def kill_stores(program: Program, tries: Tries) -> None:
    """Kills merge and history add."""
    program.fresh()
    for part in ("1/2", "2/2"):
        seconds_of(program, *RUN, "--out", f"shard{part[0]}", "--shard", part)
    shards = [str(next((program.place / f"shard{number}").iterdir())) for number in (1, 2)]
    longest = seconds_of(program, "merge", *shards, "--out", "merged0")
    whole = samples(next((program.place / "merged0").iterdir()))
    run = str(next((program.place / "merged0").iterdir()))
    number = 0
    while tries.has_time():
        number += 1
        with tries.one():
            killed(program, tries.chance, longest, "merge", *shards, "--out", f"merged{number}")
            shutil.rmtree(program.place / f"merged{number}", ignore_errors=True)
            again = program("merge", *shards, "--out", f"merged{number}")
            expect(again.returncode == 0, f"merge does not work again: {again.stderr[-300:]}")
            expect(samples(next((program.place / f"merged{number}").iterdir())) == whole, "merged samples differ")
            store = f"store{number}"
            killed(program, tries.chance, longest / 2, "history", "add", run, "--store", store)
            added = program("history", "add", run, "--store", store)
            expect(added.returncode in (0, 2), f"history add: {added.stderr[-300:]}")
            checked = program("history", "check", "--store", store)
            expect(checked.returncode in (0, 2, 12), f"history check: {checked.returncode} {checked.stderr[-300:]}")
            expect("not JSON" not in checked.stderr, checked.stderr[-300:])


def crowd(program: Program, tries: Tries) -> None:
    whole = measured_whole(program)
    while tries.has_time():
        program.fresh()
        killed(program, tries.chance, 1, *RUN)
        with tries.one():
            if (run := program.run()) is not None:
                both = [program.start("run", "--resume", str(run)) for _ in range(3)]
                told = [process.communicate()[1] for process in both]
                refused = [text for text, process in zip(told, both) if process.returncode == 2]
                expect(all("another headroom" in text for text in refused), f"refused otherwise: {refused}")
                expect(all(process.returncode in (0, 2) for process in both), f"ended otherwise: {told}")
                finish(program, whole)
            starts = [program.start(*RUN, "--out", "together") for _ in range(2)]
            ends = [process.communicate()[1] for process in starts]
            expect(all(process.returncode == 0 for process in starts), f"two runs at once: {ends}")
            expect([samples(path) for path in (program.place / "together").iterdir()] == 2 * [whole], "mixed up")
