"""Histories from strangers: their demands are bounded, their text is never obeyed, and the user's own
files stay unchanged."""

from __future__ import annotations

import os
import pickle
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import SOURCE, Headroom

sys.path.insert(0, str(SOURCE))

from harness.trace.file import read_trace  # noqa: E402

MIB = 1 << 20


def write_pickle(headroom: Headroom, contents: object) -> str:
    (headroom.place / "snapshot.pickle").write_bytes(pickle.dumps(contents, protocol=4))
    return "snapshot.pickle"


def test_a_pickle_that_is_too_deep_is_refused_with_a_reason(headroom: Headroom) -> None:
    depth = 1_000_000
    # Nested tuples as the key of a dictionary: hashing the key recurses through all of them.
    deep = b"\x80\x04}" + b")" + b"\x85" * depth + b"K\x01s."
    (headroom.place / "deep.pickle").write_bytes(deep)
    outcome = headroom("replay", "deep.pickle", "--capacity", "1GiB")
    assert outcome.code == 2
    assert re.search(r"deep\.pickle: .{10}", outcome.errors)


def test_a_pickle_of_references_to_the_same_blocks_is_refused(headroom: Headroom) -> None:
    blocks = [{"address": 0, "size": 1, "state": "active_allocated"}] * 20_000
    segments = [{"device": 0, "address": 0, "total_size": 1, "stream": 0, "blocks": blocks}] * 20_000
    outcome = headroom("leaks", write_pickle(headroom, {"segments": segments, "device_traces": []}))
    assert outcome.code == 2
    assert "more often than a snapshot" in outcome.errors


def test_a_pickle_that_takes_hours_is_given_up(headroom: Headroom) -> None:
    # Multiples of 2^61 - 1 have one hash. Written by hand, because building the table here is as slow.
    numbers = (pickle.encode_long(i * (2**61 - 1)) for i in range(1, 120_000))
    items = b"".join(b"\x8a" + bytes([len(number)]) + number + b"K\x00" for number in numbers)
    (headroom.place / "colliding.pickle").write_bytes(b"\x80\x04}(" + items + b"u.")
    outcome = headroom("leaks", "colliding.pickle", before=lambda: resource.setrlimit(resource.RLIMIT_CPU, (3, 3)))
    assert outcome.code == 2, outcome.errors
    assert "colliding.pickle: takes more time or memory" in outcome.errors


def test_two_live_segments_have_two_numbers(headroom: Headroom) -> None:
    def segment(action: str, address: int) -> dict:
        return {"action": action, "addr": address, "size": 2 * MIB, "stream": 0, "time_us": 1, "frames": []}

    a, b, c = 2 * MIB, 4 * MIB, 6 * MIB
    events = [segment("segment_alloc", a), segment("segment_alloc", b), segment("segment_free", a),
              segment("segment_alloc", c), segment("alloc", b), segment("segment_free", b), segment("segment_free", c)]
    name = write_pickle(headroom, {"segments": [], "device_traces": [events]})
    assert headroom("export", name, "--to", "headroom", "-o", "history.hrtrace").code == 0
    trace = read_trace(headroom.place / "history.hrtrace", 100)
    kinds = [trace.header["kinds"][kind] for kind in trace.columns["kind"].tolist()]
    numbers = [number for kind, number in zip(kinds, trace.columns["id"].tolist()) if kind == "segment_alloc"]
    assert len(set(numbers)) == len(numbers) == 3


def test_an_error_of_a_converted_history_names_the_users_file(headroom: Headroom) -> None:
    rows = "".join(f"{i},{i},{i + 2},{2**59}\n" for i in range(9))
    outcome = headroom("replay", headroom.write("mine.csv", "id,lower,upper,size\n" + rows), "--capacity", "1GiB")
    assert "converted.hrtrace" not in outcome.errors


def history(headroom: Headroom) -> str:
    return headroom.write("history.txt", "".join(f"{on} a{i} 4096 0\n" for i in range(100) for on in (1, 0)))


def test_a_history_is_not_exported_over_itself(headroom: Headroom) -> None:
    name = history(headroom)
    before = (headroom.place / name).read_bytes()
    (headroom.place / "link.txt").symlink_to(name)
    (headroom.place / "other.unfinished").hardlink_to(headroom.place / name)
    for target in (name, f"./{name}", "link.txt", "other"):
        outcome = headroom("export", name, "--to", "rmm", "-o", target)
        assert outcome.code == 2 and f"{name}: would be overwritten" in outcome.errors, target
        assert (headroom.place / name).read_bytes() == before


def reader_of(process: subprocess.Popen[str], module: bytes = b"harness.trace.formats") -> Path | None:
    """The process in which Headroom's `module` reads, below /proc."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            started_by = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if started_by == process.pid and module in (place / "cmdline").read_bytes().split(b"\0"):
                return place
        except (OSError, IndexError):
            continue  # it has ended
    return None


def test_what_reads_a_strangers_file_has_no_network_no_programs_and_no_secrets(headroom: Headroom) -> None:
    headroom.write("history.txt", "".join(f"{on} a{i} 512 0\n" for i in range(150_000) for on in (1, 0)))
    assert_isolated(headroom, "harness.trace.formats", "export", "history.txt", "--to", "rmm", "-o", "out.csv")


def test_what_reads_a_strangers_run_has_no_network_no_programs_and_no_secrets(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    assert_isolated(headroom, "reports", "report", str(headroom.only_run()))


def assert_isolated(headroom: Headroom, module: str, *command: str) -> None:
    """Watches the process of `module` while the command runs."""
    process = headroom.start(*command, SECRET_TOKEN="of the user")
    filtered, environment = False, b""
    while process.poll() is None and not filtered:
        place = reader_of(process, module.encode())
        try:
            filtered = place is not None and "\nSeccomp:\t2\n" in (place / "status").read_text()
            environment = (place / "environ").read_bytes() if filtered else b""
        except OSError:
            continue  # it has ended
    assert process.wait() == 0
    assert filtered
    assert b"PATH=" in environment and b"SECRET_TOKEN" not in environment


def is_at_work(process: Path) -> bool:
    try:
        return "(zombie)" not in (process / "status").read_text()
    except OSError:
        return False


def test_a_killed_export_takes_its_reader_with_it(headroom: Headroom) -> None:
    headroom.write("history.txt", "".join(f"{on} a{i} 512 0\n" for i in range(150_000) for on in (1, 0)))
    process = headroom.start("export", "history.txt", "--to", "rmm", "-o", "out.csv")
    unfinished = headroom.place / "out.csv.unfinished"
    while process.poll() is None and not unfinished.exists():
        time.sleep(0.01)
    reader = reader_of(process)
    process.kill()
    process.wait()
    assert reader is not None
    given_up = time.monotonic() + 60
    while is_at_work(reader):
        assert time.monotonic() < given_up
        time.sleep(0.01)
    assert not (headroom.place / "out.csv").exists()


def test_a_reader_whose_export_was_killed_before_it_could_ask_writes_nothing(headroom: Headroom) -> None:
    headroom.write("history.txt", "1 a 512 0\n0 a 512 0\n")
    output, kept = os.pipe()
    os.close(output)  # the killed export read here
    words = [sys.executable, "-m", "harness.trace.formats", "history.txt", "out.csv", "--to", "rmm"]
    done = subprocess.run(words, cwd=headroom.place, env=os.environ | {"PYTHONPATH": str(SOURCE)}, stdout=kept,
                          stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
    os.close(kept)
    assert [path.name for path in headroom.place.iterdir()] == ["history.txt"]
    assert done.returncode == 1 and "was killed" in done.stderr


@pytest.mark.parametrize("action", ["socket.socket()", "subprocess.run(['true'])", "os.execv('/bin/true', ['true'])"])
def test_the_filter_of_calls_refuses_sockets_and_programs(action: str) -> None:
    code = ("import os, socket, subprocess, sys\nsys.path.insert(0, sys.argv[1])\n"
            "from harness.trace.isolation import forbid_programs_and_network\n"
            f"forbid_programs_and_network()\ntry:\n    {action}\nexcept PermissionError:\n    print('refused')")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code, SOURCE], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n", done.stderr


@pytest.mark.parametrize("command", ["replay history.txt --capacity 1MiB --allocator malloc", "leaks history.txt",
                                     "export history.txt -o out.csv --to rmm", "compare history.txt history.txt"])
def test_commands_that_read_files_of_others_open_no_socket_and_take_only_memory_that_is_available(
        headroom: Headroom, command: str) -> None:  # fmt: skip
    headroom.write("history.txt", "1 a 512 0\n0 a 512 0\n")
    # Programs that a command starts inherit its limits.
    python = headroom.place / headroom.write(
        "python", f"#!{sys.executable} -I\nimport os, resource, socket, sys\ntry:\n    socket.socket()\n"
        f"except PermissionError:\n    with open({str(headroom.place / 'refused')!r}, 'w') as file:\n"
        "        print(resource.getrlimit(resource.RLIMIT_DATA)[0], file=file)\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n")  # fmt: skip
    python.chmod(0o755)
    outcome = headroom(*command.split(), HEADROOM_PYTHON=str(python))
    assert outcome.code == 0, outcome.errors
    of_machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < int((headroom.place / "refused").read_text()) < of_machine
