"""Files that other people and other programs leave in folders are refused by name, never obeyed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import Headroom

SOUND = {"frameworks": [{"devices": [{"peak_allocated_bytes": 5, "roles": [{"name": "weights", "bytes": 5}]}]}],
         "peak_bytes": 7}  # fmt: skip
DEEP = "[" * 200_000 + "]" * 200_000
FORGED = "layer\x1b[2J\nFITS: forged"


def device(**figures: object) -> dict:
    return {"frameworks": [{"devices": [figures]}], "peak_bytes": 7}


@pytest.mark.parametrize("command", [["verify"], ["report"], ["run", "--resume"], ["compare", "other"],
                                     ["merge", "other", "--out", "merged"]], ids=lambda words: words[0])  # fmt: skip
@pytest.mark.parametrize("text", [DEEP, '{"kind": "run", "x": ' + DEEP + "}"], ids=["all", "member"])
def test_a_run_nested_without_end_is_refused(headroom: Headroom, command: list[str], text: str) -> None:
    for name in ("stranger", "other"):
        (headroom.place / name).mkdir()
        headroom.write(f"{name}/run.json", text)
        headroom.write(f"{name}/samples.jsonl", "")
    outcome = headroom(*command, "stranger")
    assert outcome.code == 2, outcome.errors[-500:]
    assert "run.json" in outcome.errors and "nested" in outcome.errors


@pytest.mark.parametrize(
    "run",
    [{"frameworks": 5, "peak_bytes": 7}, {"frameworks": [5], "peak_bytes": 7}, {"frameworks": [], "peak_bytes": "x"},
     device(peak_allocated_bytes=2**63), device(peak_allocated_bytes=-1), device(peak_allocated_bytes=1e30), device(),
     device(peak_allocated_bytes=1, lines=[{"name": "a"}]), "DEEP"],
    ids=str,
)  # fmt: skip
def test_a_gpu_run_that_is_none_is_refused(headroom: Headroom, run: object) -> None:
    headroom.write("sound.json", json.dumps(SOUND))
    headroom.write("stranger.json", json.dumps(run).replace('"DEEP"', DEEP))
    for command in (["compare", "sound.json", "stranger.json"], ["gpu", "t4", "--against", "stranger.json", "--", "true"]):
        outcome = headroom(*command)
        assert outcome.code == 2, outcome.errors
        assert "stranger.json: this is not the gpu.json" in outcome.errors


@pytest.mark.parametrize("command", [["compare", "pipe.json", "pipe.json"], ["report", "folder"], ["verify", "folder"]],
                         ids=lambda words: words[0])  # fmt: skip
def test_a_pipe_in_place_of_a_file_is_not_waited_for(headroom: Headroom, command: list[str]) -> None:
    (headroom.place / "folder").mkdir()
    os.mkfifo(headroom.place / "folder" / "run.json")
    os.mkfifo(headroom.place / "pipe.json")
    outcome = headroom(*command)
    assert outcome.code == 2, outcome.errors


# A program started by `headroom gpu` that writes into the folder of records, as a framework's hook does.
WRITER = """
import json, os, sys
with open(os.environ["HEADROOM_GPU_RECORDS"] + "/torch-1.json", "w") as out:
    out.write(sys.argv[1])
"""


def told(headroom: Headroom, text: str, *options: str):
    headroom.write("writer.py", WRITER)
    return headroom("gpu", "t4", *options, "--", "python3", "writer.py", text)


def framework(**changes: object) -> str:
    share = [{"name": FORGED, "bytes": 5}]
    use = {"device": 0, "peak_allocated": 5, "peak_reserved": 5, "phase": FORGED, "roles": share, "lines": share,
           "modules": [{"name": FORGED, "pattern": FORGED, "bytes": 5, "roles": {FORGED: 5}}], "phase_peaks": {}}  # fmt: skip
    return json.dumps({"framework": FORGED, "pid": 1, "steps": 1, "stopped_at_step": False, "error": "",
                       "ended_out_of_memory": False, "out_of_memory": [{"device": 0, "requested": 5, "line": FORGED}],
                       "devices": [use], "snapshot": FORGED, "differences": [FORGED]} | changes)  # fmt: skip


@pytest.mark.parametrize("changes", [{}, {"ended_out_of_memory": True, "error": FORGED}], ids=["fits", "does not"])
def test_names_of_a_framework_stay_in_their_lines(headroom: Headroom, changes: dict) -> None:
    outcome = told(headroom, framework(**changes))
    assert "\\x1b[2J" in outcome.output, outcome.errors
    assert "\x1b" not in outcome.output and "\nFITS: forged" not in outcome.output


@pytest.mark.parametrize("text", ["{", "[]", DEEP[:50_000], framework(steps="many"), framework(devices=[5])],
                         ids=["cut off", "list", "deep", "text", "number"])  # fmt: skip
def test_a_record_that_the_program_spoilt_is_named(headroom: Headroom, text: str) -> None:
    outcome = told(headroom, text)
    assert outcome.code == 2
    assert "torch-1.json: is not what the hook writes" in outcome.errors


@pytest.mark.parametrize("text", ["{}", '{"verdict": "fits"}', '{"verdict": [], "directory": 5}', DEEP], ids=range(4))
def test_the_page_of_a_gpu_run_that_is_none_is_refused(headroom: Headroom, text: str) -> None:
    Path(headroom.place / "stranger").mkdir()
    headroom.write("stranger/gpu.json", text)
    outcome = headroom("report", "stranger")
    assert outcome.code == 2, outcome.errors
    assert "stranger" in outcome.errors and "Traceback" not in outcome.errors


@pytest.mark.parametrize("out", [(), ("--out", "made/of/parts")], ids=["default", "named"])
@pytest.mark.parametrize("mistake", [["gpu", "t4", "--cudnn", "no-such-file"], ["gpu", "t4", "--context", "1TiB"],
                                     ["gpu", "--which", "--context", "1TiB"]], ids=["cudnn", "context", "which"])  # fmt: skip
def test_a_gpu_run_that_cannot_start_leaves_no_folder(headroom: Headroom, mistake: list[str], out: tuple) -> None:
    before = sorted(headroom.place.iterdir())
    outcome = headroom(*mistake, *out, "--", "true")
    assert outcome.code == 2, outcome.errors
    assert sorted(headroom.place.iterdir()) == before
