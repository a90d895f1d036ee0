"""headroom leaks: what an allocation history keeps from step to step, by the line that allocated it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from conftest import COUNTING, Headroom, record_of, samples, suite_of

MIB = 1 << 20

SUITE = suite_of("leaking", COUNTING | {
    "kind": "control", "allocator": "caching", "inject": ["none", "leak(bytes=1MiB)"],
    "warmup_steps": 2, "measured_steps": 12,
})


@pytest.fixture
def traces(headroom: Headroom) -> dict[str, str]:
    """The traces of a run with an injected leak and of one without, by the name of the injection."""
    suite = headroom.write("leaking.toml", SUITE)
    assert headroom("run", suite, "--samples-only", "--max-pairs", "1").code == 0
    run = headroom.only_run()
    return {sample["cell"]["inject"]: str(run / sample["trace_file"])
            for sample in samples(run) if sample["trace_file"]}


def told(headroom: Headroom, *arguments: str) -> dict[str, Any]:
    outcome = headroom("leaks", *arguments, "--json")
    assert outcome.code == 0, outcome.errors
    return record_of(outcome.output)


def test_what_was_added_is_found_to_the_byte_and_nothing_else(headroom: Headroom, traces: dict[str, str]) -> None:
    leaking = told(headroom, traces["leak(bytes=1MiB)"])
    assert leaking["live_bytes"] == {"verdict": "leak", "bytes_per_step": MIB}
    assert [site["growth"]["bytes_per_step"] for site in leaking["sites"]] == [MIB]
    assert leaking["sites"][0]["most_held_bytes"] == 14 * MIB
    assert told(headroom, traces["none"])["live_bytes"]["verdict"] == "no leak"


def test_the_first_line_is_the_answer(headroom: Headroom, traces: dict[str, str]) -> None:
    assert headroom("leaks", traces["leak(bytes=1MiB)"]).output.startswith("LEAKS: ")
    first = headroom("leaks", traces["leak(bytes=1MiB)"]).output.splitlines()[0]
    assert "+1.00 MiB per step" in first and "all live bytes together grow by +1.00 MiB" in first
    assert headroom("leaks", traces["none"]).output.startswith("NO LEAK in 13 steps: ")


def test_too_few_steps_are_no_proof(headroom: Headroom, traces: dict[str, str]) -> None:
    assert headroom("leaks", traces["none"], "--warmup", "12").output.startswith("TOO SHORT TO TELL: ")


def test_a_snapshot_of_pytorch_names_the_same_sites(headroom: Headroom, traces: dict[str, str]) -> None:
    assert headroom("export", traces["leak(bytes=1MiB)"], "--to", "pytorch", "-o", "snapshot.pickle").code == 0
    own, exported = told(headroom, traces["leak(bytes=1MiB)"]), told(headroom, "snapshot.pickle")
    assert exported["sites"] == own["sites"]


def test_a_history_that_tells_no_steps_apart_is_looked_at_in_windows(headroom: Headroom) -> None:
    lines = []
    for i in range(400):
        lines += [f"1 work{i} 4096 0", f"0 work{i} 4096 0", f"1 kept{i} 512 0"]
    found = told(headroom, headroom.write("history.txt", "\n".join(lines) + "\n"))
    assert not found["steps_are_the_historys_own"]
    assert found["live_bytes"]["verdict"] == "leak"


@pytest.mark.parametrize("step", [-5, 2_147_483_647])
def test_steps_that_cannot_be_steps_of_training_are_not_taken_for_them(headroom: Headroom, step: int) -> None:
    frames = [{"filename": "step", "line": step, "name": ""}]
    events = [{"action": "alloc", "addr": 4096 * i, "size": 512, "stream": 0, "frames": frames}
              for i in range(1, 200)]
    (headroom.place / "snapshot.pickle").write_bytes(
        pickle.dumps({"segments": [], "device_traces": [events]}))
    assert not told(headroom, "snapshot.pickle")["steps_are_the_historys_own"]


def test_a_leak_fails_only_when_asked_to(headroom: Headroom, traces: dict[str, str]) -> None:
    for added, code in (("leak(bytes=1MiB)", 14), ("none", 0)):
        assert headroom("leaks", traces[added]).code == 0
        assert headroom("leaks", traces[added], "--fail-on", "leak").code == code


def test_a_leak_of_one_place_counts_while_another_shrinks(headroom: Headroom) -> None:
    def frames(file: str) -> list[dict]:
        return [{"filename": file, "line": 1, "name": "f"}]

    def event(action: str, address: int, size: int, where: list[dict]) -> dict:
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": 1, "frames": where}

    cache, leak = frames("cache.py"), frames("leak.py")
    steps = 640
    events = [event("alloc", (1 + i) << 20, MIB, cache) for i in range(steps)]
    for i in range(steps):
        events.append(event("free_completed", (1 + i) << 20, MIB, cache))
        events.append(event("alloc", (10_000 + i) << 20, 4096, leak))
    (headroom.place / "snapshot.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))
    found = told(headroom, "snapshot.pickle")
    assert found["live_bytes"]["verdict"] != "leak"
    assert any(site["growth"]["verdict"] == "leak" for site in found["sites"])
    assert headroom("leaks", "snapshot.pickle", "--fail-on", "leak").code == 14
    outcome = headroom("leaks", "snapshot.pickle")
    assert outcome.code == 0
    first = outcome.output.splitlines()[0]
    assert first.startswith("LEAKS: leak.py:1") and "all live bytes together" in first


@pytest.mark.parametrize(
    ("files", "place"),
    [
        (["/env/site-packages/torch/nn.py", "/env/site-packages/lib/layer.py", "train.py"], "train.py:1 f"),
        (["/share/headroom/virtual_gpu/hook/headroom_values.py", "train.py"], "train.py:1 f"),
        (["/env/site-packages/torch/nn.py", "/env/site-packages/lib/layer.py"], "layer.py:1 f"),
    ],
)
def test_a_place_is_a_line_of_the_users_where_there_is_one(headroom: Headroom, files: list[str], place: str) -> None:
    frames = [{"filename": file, "line": 1, "name": "f"} for file in files]
    events = [{"action": "alloc", "addr": 4096 * i, "size": 512, "stream": 0, "frames": frames} for i in range(1, 700)]
    (headroom.place / "snapshot.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))
    assert f"LEAKS: {place}" in headroom("leaks", "snapshot.pickle").output.splitlines()[0]


def test_a_warm_up_as_long_as_the_history_is_refused(headroom: Headroom, traces: dict[str, str]) -> None:
    outcome = headroom("leaks", traces["none"], "--warmup", "99")
    assert outcome.code == 2
    assert "--warmup 99" in outcome.errors


def test_what_is_no_history_is_refused(headroom: Headroom) -> None:
    outcome = headroom("leaks", headroom.write("notes.txt", "hello\n"))
    assert outcome.code == 2
    assert "notes.txt" in outcome.errors
