"""Attacks by what surrounds the program: its environment, its disk, its clock and its arguments."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

from attacked import RUN, TOLD, Program, Tries, expect, finish, killed, measured_whole, preloaded, samples, seconds_of


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
