"""Output that cannot be written is reported, and names from files are shown, not obeyed."""

from __future__ import annotations

import json
import pickle
import subprocess

import pytest
from conftest import PROGRAM, Headroom

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egpj"
HIDDEN = ("\x1b", "\x07", "\x9b", "\u202e", "\r")


@pytest.mark.parametrize(
    "arguments",
    [["plan", "resnet(depth=18,width=8,batch=2)", "--device", "1GiB", "-a", "allocator=malloc"], ["list"],
     ["list", "--json"], ["--help"], ["run", "--help"], ["run", "smoke", "--dry-run"],
     ["replay", "history.txt", "--capacity", "1GiB", "--allocator", "malloc"], ["leaks", "history.txt"]],
    ids=" ".join,
)
def test_output_that_cannot_be_written_is_an_error_of_the_user(headroom: Headroom, arguments: list[str]) -> None:
    headroom.write("history.txt", "".join(f"{on} a{i} 4096 0\n" for i in range(100) for on in (1, 0)))
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, *arguments], cwd=headroom.place, stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "headroom: standard output cannot be written: No space left on device\n"


def event(action: str, address: int, frames: list[dict]) -> dict:
    return {"action": action, "addr": address, "size": 1 << 20, "stream": 0, "time_us": 1, "frames": frames}


@pytest.fixture
def snapshot(headroom: Headroom) -> str:
    """A leak whose place in the program has a name that a terminal would obey."""
    frames = [{"filename": "model.py", "line": 1, "name": f"forward{ESCAPES}\nforged line"}]
    history = [event("alloc", i << 21, frames) for i in range(1, 200)]
    (headroom.place / "snapshot.pickle").write_bytes(
        pickle.dumps({"segments": [], "device_traces": [history]}, protocol=4))
    return "snapshot.pickle"


@pytest.mark.parametrize("arguments", [["leaks", "snapshot.pickle"],
                                       ["replay", "snapshot.pickle", "--capacity", "16MiB", "--allocator", "malloc"]])
def test_names_of_a_snapshot_are_shown_in_one_line(headroom: Headroom, snapshot: str, arguments: list[str]) -> None:
    outcome = headroom(*arguments)
    assert outcome.code == 0, outcome.errors
    assert not any(character in outcome.output for character in HIDDEN)
    assert "\\x1b[2J" in outcome.output and "\\x0aforged line" in outcome.output


def test_errors_show_what_a_file_says(headroom: Headroom) -> None:
    headroom.write("history.csv", "Thread,Time,Action,Pointer,Size,Stream\n1,0,al\x1b[2Jlocate,1,1,0\n")
    headroom.write("suite.toml", f'name = "x"\ndescription = "y"\n"{ESCAPES.encode("unicode_escape").decode()}" = 1\n')
    for arguments in (["replay", "history.csv", "--capacity", "1GiB"], ["replay", f"no{ESCAPES}.csv"],
                      ["run", f"no{ESCAPES}"], [ESCAPES]):
        outcome = headroom(*arguments)
        assert outcome.code == 2
        assert not any(character in outcome.errors for character in HIDDEN), arguments


def test_a_run_of_a_stranger_is_shown(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only", "--max-pairs", "1").code == 0
    run = headroom.only_run()
    for name in ("run.json", "samples.jsonl"):
        text = (run / name).read_text()
        (run / name).write_text(text.replace("small/", f"small{json.dumps(ESCAPES)[1:-1]}/"))
    for arguments in (["verify", str(run)], ["compare", str(run), str(run)]):
        outcome = headroom(*arguments)
        assert not any(character in outcome.output + outcome.errors for character in HIDDEN), arguments


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped", "a\x1b[2Jb", ".."])
def test_a_run_or_suite_whose_name_is_no_name_of_a_file_is_refused(headroom: Headroom, counting: str, name: str) -> None:
    text = (headroom.place / counting).read_text()
    hostile = headroom.write("hostile.toml", text.replace('"counting"', json.dumps(name)))
    outcome = headroom("run", hostile, "--samples-only")
    assert outcome.code == 2 and "'name' of the suite must be" in outcome.errors
    assert headroom("run", counting, "--samples-only", "--shard", "1/2", "--seed", "1").code == 0
    run = headroom.only_run()
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(info | {"run_id": name}))
    outcome = headroom("merge", str(run))
    assert outcome.code == 2 and "is not a valid name of a run" in outcome.errors


def test_a_process_cannot_write_to_the_terminal_by_its_name(headroom: Headroom) -> None:
    named = "import time, ctypes; ctypes.CDLL(None).prctl(15, b'\\x1b[2J\\n', 0, 0, 0); time.sleep(0.5)"
    outcome = headroom("watch", "--no-page", "--interval", "20ms", "--", "/usr/bin/python3", "-c", named)
    assert outcome.code == 0
    assert "\x1b" not in outcome.errors
    assert json.loads(next(headroom.runs()[0].glob("watch.json")).read_text())


@pytest.mark.parametrize("arguments, code", [(["list", "workloads"], 0), (["list", "bogus"], 2), (["watch", "--", "false"], 1)],
                         ids=["success", "mistake", "watch"])  # fmt: skip
def test_errors_that_nobody_can_be_told_do_not_change_the_exit_status(
    headroom: Headroom, arguments: list[str], code: int
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, *arguments], cwd=headroom.place, stdout=subprocess.DEVNULL, stderr=full,
                              check=False)  # fmt: skip
    assert done.returncode == code
