#!/usr/bin/env python3
"""Attacks the built program for the given time and prints what it survived, one row per attack.

usage: campaign.py HEADROOM [--seconds N] [--seed N] [ATTACK ...]

ATTACKs (default: all): calls (every system call of a run fails once), kills (kill -9 at random points of
runs, merges, history and importers), crowd (several at once on one folder), odd (locales, terminals, umasks,
zones, users), full (a disk that is too small, which needs root; a limit for the length of files), clock (the
clock of the day jumps), long (arguments of 100,000 characters). If the program does not survive an attempt,
the row says how to repeat it, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
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
ERRORS = ["ENOSPC", "EDQUOT", "EIO", "EINTR", "EMFILE", "ENOMEM"]


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


def preloaded(program: Program, name: str) -> str:
    library = program.place.parent / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / f"{name}.c", "-ldl"], check=True)
    return str(library)


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


def killed(program: Program, chance: random.Random, longest: float, *words: str, **options) -> None:
    process = program.start(*words, **options)
    time.sleep(chance.uniform(0, longest))
    process.send_signal(signal.SIGKILL)
    process.communicate()


def seconds_of(program: Program, *words: str) -> float:
    begin, done = time.monotonic(), program(*words)
    expect(done.returncode == 0, f"{' '.join(words)}: {done.stderr[-300:]}")
    return time.monotonic() - begin


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
    """merge, and history add."""
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


def odd(program: Program, tries: Tries) -> None:
    whole = measured_whole(program)
    places = [{"environment": {"LC_ALL": name}} for name in ("C", "POSIX", "C.UTF-8", "tr_TR.UTF-8", "nonsense")]
    places += [{"environment": {"COLUMNS": width, "TERM": term}} for width in ("1", "40", "x") for term in ("dumb", "")]
    places += [{"umask": mask} for mask in (0o077, 0o000, 0o022)]
    places += [{"environment": {"TZ": zone}} for zone in ("Asia/Kathmandu", "nonsense")]
    places += [{"environment": {"HOME": home}} for home in ("/nowhere", "")]
    if os.getuid() == 0:
        places.append({"user": 65534, "group": 65534})
    for options in places:
        if not tries.has_time():
            break
        program.fresh()
        if "user" in options:
            subprocess.run(["chown", "-R", "65534:65534", program.place], check=True)
        with tries.one():
            done = program("run", "tiny.toml", "--seed", "1", **options)
            expect(done.returncode == 0, f"{options}: ended with {done.returncode}: {done.stderr[-300:]}")
            expect(samples(program.run()) == whole, f"{options}: other samples")
            expect((program.run() / "report.html").exists(), f"{options}: no report")


def mount(place: Path, size: int, how: str = "") -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{how}size={size}", "none", place], check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(place: Path, size: int):
    mount(place, size)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def written_to_runs(program: Program) -> list[list[str]]:
    """Commands that write into the folder runs, and read only what lies elsewhere."""
    for part in ("1/2", "2/2"):
        seconds_of(program, *RUN, "--out", f"shard{part[0]}", "--shard", part)
    shards = [str(next((program.place / f"shard{number}").iterdir())) for number in (1, 2)]
    seconds_of(program, "merge", *shards, "--out", "source")
    source = str(next((program.place / "source").iterdir()))
    return [RUN, RUN[:2] + ["--seed", "1"], ["merge", *shards, "--out", "runs"],
            ["export", "history.txt", "--to", "rmm", "-o", "runs/out.csv"],
            ["history", "add", source, "--store", "runs/store"],
            ["report", source, "--html", "runs/report.html"]]  # fmt: skip


def content(place: Path) -> dict[str, bytes]:
    """The files outside of runs, without times of day."""
    files = [file for file in place.rglob("*") if file.is_file()]
    runs = [file.parent for file in files if file.name in ("run.json", "samples.jsonl")]
    return {str(file.relative_to(place)): re.sub(rb"\d{4}-\d\d-\d\dT[\d:]{8}Z", b"", file.read_bytes())
            for file in files if not any(file.is_relative_to(run) for run in runs)}  # fmt: skip


def too_little_room(program: Program, tries: Tries, disk: bool) -> None:
    """Only some of what a command writes fits: on a small disk, or because of a limit for each file."""
    whole = measured_whole(program)
    commands, runs, sound = written_to_runs(program), program.place / "runs", {}
    for number, words in enumerate(commands):
        shutil.rmtree(runs)
        runs.mkdir()
        seconds_of(program, *words)
        sound[number] = content(runs), sum(4096 + file.stat().st_size for file in runs.rglob("*"))
    while tries.has_time():
        number = tries.chance.randrange(len(commands))
        words, (files, most) = commands[number], sound[number]
        size = tries.chance.randrange(1, most)
        shutil.rmtree(runs)
        runs.mkdir()
        limit = {} if disk else {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}
        with small_disk(runs, size) if disk else contextlib.nullcontext(), tries.one(f"{words[0]} with {size} bytes"):
            done = program(*words, **limit)
            expect(done.returncode in {0, *TOLD}, f"ended with {done.returncode}: {done.stderr[-300:]}")
            reason = re.search("No space left on device|File too large", done.stderr)
            expect(done.returncode == 0 or reason, f"ended without the reason: {done.stderr[-300:]}")
            expect("Traceback" not in done.stderr, done.stderr[-600:])
            if disk:
                mount(runs, 64 * 2**20, "remount,")
            finish(program, whole)
            again = program(*words)
            expect(again.returncode == 0, f"ends with {again.returncode} once there is room: {again.stderr[-300:]}")
            other = {name for name, _ in content(runs).items() ^ files.items()}
            expect(not other, f"once there is room, it writes otherwise: {other}")
            expect(all(samples(run.parent) == whole for run in runs.glob("*/run.json")), "other samples")


def fill_disk(program: Program, tries: Tries) -> None:
    if os.getuid() == 0:  # who may mount a disk
        too_little_room(program, tries, disk=True)


def limit_files(program: Program, tries: Tries) -> None:
    too_little_room(program, tries, disk=False)


def numbers(record: object, name: str = ""):
    """Every number in a record of JSON, with the name of its field."""
    if isinstance(record, dict):
        for key, value in record.items():
            yield from numbers(value, key)
    elif isinstance(record, list):
        for value in record:
            yield from numbers(value, name)
    elif isinstance(record, (int, float)):
        yield name, record


def jump_clock(program: Program, tries: Tries) -> None:
    preload = {"LD_PRELOAD": preloaded(program, "jump_clock")}
    whole = measured_whole(program)
    longest = 2 * seconds_of(program, *RUN)
    while tries.has_time():
        program.fresh()
        jumping = {"environment": preload | {"JUMP_SECONDS": str(tries.chance.choice([2, 3600, 10**6, 10**9]))}}
        with tries.one(f"{jumping['environment']['JUMP_SECONDS']} s"):
            killed(program, tries.chance, longest, *RUN, **jumping)
            finish(program, whole, **jumping)
            shutil.rmtree(program.place / "runs", ignore_errors=True)
            for _ in range(2):
                expect((done := program(*RUN, **jumping)).returncode == 0, done.stderr[-300:])
            for run in (program.place / "runs").iterdir():
                expect(samples(run) == whole, "other samples")
                for words in (["verify"], ["report"], ["history", "add"]):
                    done = program(*words, str(run), **jumping)
                    expect(done.returncode == 0, f"{words}: {done.returncode} {done.stderr[-300:]}")
                records = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
                times = [at for at in numbers(records) if at[0].endswith(("_ns", "_ms", "_s", "seconds"))]
                expect(times and all(0 <= value < 300e9 for _, value in times), f"not a duration: {times}")


def long_arguments(program: Program, tries: Tries) -> None:
    program.fresh()
    known = program("no-such-command").stderr.partition("Known: ")[2].strip().split(", ")
    calls = [[command, *last] for command in known for last in (["LONG"], ["--LONG"])]
    for command in known:
        options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", program(command, "--help").stdout)) - {"--help"}
        calls += [[command, *last] for option in sorted(options) for last in ([option, "LONG"], [f"{option}=LONG"])]
    tries.chance.shuffle(calls)
    for call in calls:
        if not tries.has_time():
            break
        done = program(*(word.replace("LONG", 100_000 * "x") for word in call), stdin=subprocess.DEVNULL)
        with tries.one(" ".join(call)):
            expect(done.returncode in {0, 4, *TOLD}, f"ended with {done.returncode}")
            expect(len(done.stderr) < 5_000, f"{len(done.stderr)} bytes of errors")


ATTACKS = {
    "calls": [("a system call of a run fails", fail_calls)],
    "kills": [("kill -9 of a run, up to three times", kill_runs), ("kill -9 of export", kill_exports),
              ("kill -9 of merge and history add", kill_stores)],
    "crowd": [("three resumes and two runs at once", crowd)],
    "odd": [("locale, terminal, umask, zone, home, user", odd)],
    "full": [("a disk too small", fill_disk), ("a limit for the length of files", limit_files)],
    "clock": [("the clock of the day jumps", jump_clock)],
    "long": [("an argument of 100,000 characters", long_arguments)],
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headroom", type=lambda text: Path(text).resolve())
    parser.add_argument("--seconds", type=float, default=60, help="for each row")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("attacks", nargs="*", metavar="ATTACK")
    options = parser.parse_intermixed_args()
    if unknown := set(options.attacks) - ATTACKS.keys():
        parser.error(f"no attack is called {', '.join(sorted(unknown))}: {', '.join(ATTACKS)}")
    print(f"seed {options.seed}", flush=True)
    survived_all = True
    for title, attack in [row for name in options.attacks or ATTACKS for row in ATTACKS[name]]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory(prefix="headroom-campaign-") as place:
            Path(place).chmod(0o755)
            tries = Tries(options.seconds, options.seed)
            attack(Program(options.headroom, Path(place) / "place"), tries)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cost = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        survived_all &= not tries.failures
        print(f"{title}: {tries.count} tried, {tries.count - len(tries.failures)} survived, {cost:.0f} s of processor time",
              *sorted(set(tries.failures)), sep="\n  ", flush=True)  # fmt: skip
    return 0 if survived_all else 1


if __name__ == "__main__":
    sys.exit(main())
