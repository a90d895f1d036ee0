"""headroom replay: histories of every format, and the explanation of a request that could not be served."""

from __future__ import annotations

import json
import re
import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import Headroom, Outcome, record_of, samples

MIB = 2**20


def replayed(headroom: Headroom, *arguments: str) -> dict[str, Any]:
    outcome = headroom("replay", *arguments, "--json")
    assert outcome.code == 0, outcome.errors
    return record_of(outcome.output)


def strategy(result: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in result["strategies"] if row["allocator"] == name)


def block(address: int, size: int, state: str = "active_allocated") -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": []}


def event(
    action: str, address: int, size: int, frames: list[dict[str, Any]] | None = None, stream: int = 0
) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": stream, "time_us": 1, "frames": frames or []}


def snapshot(
    headroom: Headroom, history: list[dict[str, Any]], blocks: list[dict[str, Any]], stream: int = 0
) -> str:
    segment = {"device": 0, "address": 0, "total_size": 100 * MIB, "stream": stream, "blocks": blocks}
    contents = {"segments": [segment], "device_traces": [history], "allocator_settings": {}}
    (headroom.place / "snapshot.pickle").write_bytes(pickle.dumps(contents, protocol=4))
    return "snapshot.pickle"


def test_a_recorded_cell_replayed_by_its_own_strategy_takes_what_it_took(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    run = headroom.only_run()
    checked = 0
    for sample in samples(run):
        if sample["trace_file"] and sample["status"] == "ok":
            allocator = sample["cell"]["allocator"]
            result = replayed(headroom, str(run / sample["trace_file"]), "--allocator", allocator)
            again = strategy(result, allocator)
            for kind in ("requested", "allocated", "reserved"):
                assert again[f"{kind}_bytes_peak"] == sample["memory"][f"{kind}_bytes"]["overall_peak"]
            checked += 1
    assert checked >= 3


def test_a_capacity_below_a_page_is_a_memory_without_pages(headroom: Headroom) -> None:
    (headroom.place / "scratchpad.csv").write_text("id,lower,upper,size\n1,0,2,600\n2,1,3,400\n3,2,4,600\n")
    result = replayed(headroom, "scratchpad.csv", "--capacity", "1000", "--allocator", "malloc")
    assert (result["granule_bytes"], result["planned_ahead"]["bytes"]) == (1, 1000)


def test_every_strategy_is_tried_when_none_is_named(headroom: Headroom) -> None:
    history = headroom.write("history.txt", "1 a 1048576 0\n0 a 1048576 0\n")
    rows = replayed(headroom, history, "--capacity", "64MiB")["strategies"]
    names = [row["allocator"] for row in rows]
    listed = json.loads(headroom("list", "allocators", "--json").output)["allocators"]
    assert {name.partition("(")[0] for name in names} == {entry["name"] for entry in listed}
    assert len(set(names)) == len(names) > len(listed)  # some in several settings
    assert {row["status"] for row in rows} == {"ok"}


def test_a_device_too_small_for_a_strategy_leaves_it_out_and_tries_the_rest(headroom: Headroom) -> None:
    (headroom.place / "scratchpad.csv").write_text("id,lower,upper,size\n1,0,2,60\n2,2,3,40\n")
    tiny = ("scratchpad.csv", "--capacity", "100")
    rows = replayed(headroom, *tiny)["strategies"]
    refused = [row["allocator"] for row in rows if row["status"] == "unsupported"]
    assert refused and len(refused) < len(rows)
    named = headroom("replay", *tiny, "--allocator", refused[0])
    assert named.code == 2 and refused[0] in named.errors


def test_strategies_that_failed_alike_share_an_explanation(headroom: Headroom) -> None:
    taken = (("a", 3 * MIB), ("b", 2 * MIB))
    history = headroom.write(
        "history.txt", "".join(f"{on} {name} {size} 0\n" for on in (1, 0) for name, size in taken)
    )
    alike = ("buddy", "buddy(region=8MiB)")
    wanted = [word for name in alike for word in ("--allocator", name)]
    outcome = headroom("replay", history, "--capacity", "4MiB", *wanted)
    assert outcome.code == 0, outcome.errors
    (told,) = [line for line in outcome.output.splitlines() if "could not be served" in line]
    assert told.startswith(", ".join(alike) + ": request ")


@pytest.fixture
def scattered(headroom: Headroom) -> str:
    """Two blocks of 6 MiB that pin 40 MiB of PyTorch's segments, and then a request of 20 MiB."""
    names = "abcdef"
    taken = [f"1 {name} {6 * MIB} 0" for name in names]
    freed = [f"0 {name} {6 * MIB} 0" for name in names if name not in "be"]
    return headroom.write("scattered.txt", "\n".join([*taken, *freed, f"1 g {20 * MIB} 0", ""]))


def test_the_answer_for_pytorch_comes_first_and_names_exactly_what_would_serve(
    headroom: Headroom, scattered: str
) -> None:
    asked = (scattered, "--capacity", "40MiB")
    answer = headroom("replay", *asked).output
    assert answer.startswith("NO: PyTorch's caching allocator does not serve it in 40.00 MiB: request ")
    told = set(re.findall(r"^  (\w+) \(a strategy of Headroom's\)", answer, re.MULTILINE))
    served = {row["allocator"] for row in replayed(headroom, *asked)["strategies"] if row["status"] == "ok"}
    others = {name for name in served if not name.startswith(("caching", "expandable", "bfc", "async"))}
    assert told == others != set()
    assert ("expandable_segments:True" in answer) == ("expandable" in served)


def test_a_history_that_pytorch_serves_is_a_yes_with_what_it_reserves(headroom: Headroom, scattered: str) -> None:
    answer = headroom("replay", scattered, "--capacity", "1GiB").output
    assert answer.startswith("YES: PyTorch's caching allocator serves it in 1.00 GiB, with 60.00 MiB reserved")


def test_more_live_bytes_than_there_is_memory_are_no_fault_of_an_allocator(headroom: Headroom, scattered: str) -> None:
    answer = headroom("replay", scattered, "--capacity", "30MiB").output
    assert "No allocator can: 36.00 MiB were live at once." in answer
    assert "--all" in answer


def test_the_search_for_the_smallest_capacity_goes_below_what_a_strategy_begins_with(headroom: Headroom) -> None:
    history = headroom.write("history.txt", "1 a 1000 0\n0 a 1000 0\n")
    rows = replayed(headroom, history, "--granule", "4096", "--capacity", "64MiB")["strategies"]
    assert {row["status"] for row in rows} == {"ok"}


def test_a_snapshot_begins_with_what_was_live_before_its_history(headroom: Headroom) -> None:
    history = [event("free_requested", 0, 8 * MIB), event("free_completed", 0, 8 * MIB), event("alloc", 64 * MIB, 4 * MIB)]
    blocks = [block(16 * MIB, 2 * MIB), block(64 * MIB, 4 * MIB), block(70 * MIB, MIB, "inactive")]
    result = replayed(headroom, snapshot(headroom, history, blocks), "--capacity", "1GiB", "--allocator", "malloc")
    assert result["requests"] == 4  # two live before, one freed, one allocated
    assert result["peak_live_bytes"] == 10 * MIB


def test_a_block_that_waits_for_a_stream_is_live_until_that_has_come_so_far(headroom: Headroom) -> None:
    first, second = event("alloc", 0, 4 * MIB), event("alloc", 64 * MIB, 4 * MIB)
    requested, completed = event("free_requested", 0, 4 * MIB), event("free_completed", 0, 4 * MIB)
    peaks = []
    for history in ([first, requested, second, completed], [first, requested, completed, second]):
        name = snapshot(headroom, history, [block(64 * MIB, 4 * MIB)])
        result = replayed(headroom, name, "--capacity", "1GiB", "--allocator", "malloc")
        peaks.append(result["peak_live_bytes"])
    assert peaks == [8 * MIB, 4 * MIB]


def test_each_stream_of_a_snapshot_is_served_from_its_own_pool(headroom: Headroom) -> None:
    # The first block was live before the history began; its stream stands in its segment.
    history = [event("alloc", 200 * MIB, 3 * MIB, stream=9), event("free_completed", 200 * MIB, 3 * MIB, stream=9)]
    name = snapshot(headroom, history, [block(0, 3 * MIB)], stream=7)
    result = replayed(headroom, name, "--capacity", "1GiB", "--allocator", "caching", "--allocator", "bfc(growth=on)")
    assert result["streams"] == 2
    assert strategy(result, "caching")["keeps_streams_apart"]
    assert strategy(result, "caching")["reserved_bytes_peak"] == 2 * 20 * MIB
    assert not strategy(result, "bfc(growth=on)")["keeps_streams_apart"]


def test_streams_of_logs_and_texts_are_kept(headroom: Headroom) -> None:
    log = headroom.write("log.csv", "Thread,Time,Action,Pointer,Size,Stream\n"
                         "1,1,allocate,0xa,4096,0\n1,2,free,0xa,4096,0\n1,3,allocate,0xb,4096,1f\n")
    text = headroom.write("history.txt", "1 a 4096 0\n0 a 4096 0\n1 b 4096 31\n")
    for name in (log, text):
        result = replayed(headroom, name, "--capacity", "1GiB", "--allocator", "caching")
        assert result["streams"] == 2
        assert strategy(result, "caching")["reserved_bytes_peak"] == 2 * 2 * MIB
    words = headroom("replay", log, "--capacity", "1GiB", "--allocator", "caching", "--allocator", "bfc").output
    assert "Blocks of 2 streams. Kept apart by: caching." in words


def test_a_refused_request_is_explained_by_what_lies_in_its_way(headroom: Headroom) -> None:
    # Four blocks of 8 MiB fill a segment; freeing the first and the third leaves holes of 8 MiB.
    lines = [f"1 {name} {8 * MIB} 0" for name in "abcd"] + [f"0 {name} {8 * MIB} 0" for name in "ac"]
    lines.append(f"1 e {16 * MIB} 0")
    history = headroom.write("history.txt", "\n".join(lines) + "\n")
    result = replayed(headroom, history, "--capacity", "32MiB", "--allocator", "bfc", "--allocator", "malloc")
    failed = strategy(result, "bfc")
    assert failed["status"] == "oom"
    failure = failed["failure"]
    assert failure["request"] == 6
    assert failure["requested_bytes"] == 16 * MIB
    assert failure["free_bytes"] == 16 * MIB
    assert failure["largest_hole_bytes"] == 8 * MIB
    assert [pin["bytes"] for pin in failure["pins"]] == [8 * MIB]
    assert strategy(result, "malloc")["status"] == "ok"  # pages need not lie in a row
    assert failed["smallest_capacity_bytes"] == 48 * MIB


def test_a_request_refused_beside_a_hole_is_explained_in_the_strategys_own_words(headroom: Headroom) -> None:
    history = headroom.write("history.txt", f"1 a {8 * MIB} 0\n1 b {8 * MIB} 0\n1 c {8 * MIB} 0\n")
    outcome = headroom("replay", history, "--capacity", "32MiB", "--allocator", "limit(20MiB)|bfc")
    assert "but not for this request: out of memory: no room for 8.00 MiB under limit(20MiB)" in outcome.output


def test_the_place_in_the_users_code_is_named(headroom: Headroom) -> None:
    frames = [{"filename": "/lib/torch/nn/linear.py", "line": 1, "name": "forward"},
              {"filename": "/home/me/model.py", "line": 42, "name": "attend"}]
    name = snapshot(headroom, [event("alloc", 0, 32 * MIB, frames)], [block(0, 32 * MIB)])
    outcome = headroom("replay", name, "--capacity", "16MiB", "--allocator", "bfc")
    assert "model.py:42 attend" in outcome.output


def test_an_rmm_log_and_a_minimalloc_csv_mean_the_same_bytes(headroom: Headroom) -> None:
    log = headroom.write("log.csv", "Thread,Time,Action,Pointer,Size,Stream\n"
                         "1,1,allocate,0xa,4096,0\n1,2,allocate,0xb,8192,1f\n1,3,free,0xa,4096,0\n")
    buffers = headroom.write("buffers.csv", "id,lower,upper,size\n1,0,2,4096\n2,1,3,8192\n")
    inclusive = headroom.write("inclusive.csv", "size,end,lower,id\n4096,1,0,1\n8192,2,1,2\n")
    peaks = {replayed(headroom, name, "--capacity", "1GiB", "--allocator", "malloc")["peak_live_bytes"]
             for name in (log, buffers, inclusive)}
    assert peaks == {4096 + 8192}


@pytest.mark.parametrize(("text", "needed", "least"), [
    # The example of MiniMalloc's README, which fits into 12.
    ("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n", 12, 12),
    ("id,lower,upper,size,alignment\na,0,2,1,2\nb,0,2,1,2\n", 3, 2),
    ("id,lower,upper,size,gaps\na,0,4,2,1-3\nb,1,3,2,\n", 2, 2),
    ("id,lower,upper,size,gaps\na,0,10,2,0-5@0:1\nb,0,10,2,5-10@1:2\n", 3, 3),
    ("id,lower,upper,size,offset\na,0,4,2,6\nb,1,3,7,\n", 15, 9),
])
def test_a_planning_problem_is_planned_as_it_asks(headroom: Headroom, text: str, needed: int, least: int) -> None:
    problem = headroom.write("problem.csv", text)
    for name in (problem, "problem.hrtrace"):
        planned = replayed(headroom, name, "--capacity", "1GiB", "--allocator", "malloc")["planned_ahead"]
        assert (planned["bytes"], planned["lower_bound_bytes"]) == (needed, least)
        assert headroom("export", problem, "--to", "headroom", "-o", "problem.hrtrace").code == 0


@pytest.mark.parametrize(("capacity", "fits", "said"), [
    ("3", True, ""),
    ("2", False, "No plan fits into 2 B: that is proven."),  # the lower bound alone would let it
    ("1", False, "No plan fits into 1 B: that is proven."),
])
def test_replay_says_whether_any_plan_fits(headroom: Headroom, capacity: str, fits: bool, said: str) -> None:
    problem = headroom.write("problem.csv", "id,lower,upper,size,alignment\na,0,2,1,2\nb,0,2,1,2\n")
    asked = (problem, "--capacity", capacity, "--allocator", "malloc", "--plan-time", "0.2s")
    assert replayed(headroom, *asked)["planned_ahead"]["fits"] is fits
    text = headroom("replay", *asked).output
    assert (said in text) if said else ("No plan fits" not in text)


def refused(outcome: Outcome, *words: str) -> None:
    assert outcome.code == 2
    assert all(word in outcome.errors for word in words), outcome.errors
    assert "Traceback" not in outcome.errors


class Malice:
    """An object that writes a file when Python's own unpickler loads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, (f"open({str(self.path)!r}, 'w')",))


def test_a_pickle_with_code_in_it_is_refused_and_not_run(headroom: Headroom) -> None:
    trap = headroom.place / "sprung"
    (headroom.place / "evil.pickle").write_bytes(pickle.dumps({"segments": [Malice(trap)]}))
    refused(headroom("replay", "evil.pickle", "--capacity", "1GiB"), "evil.pickle", "builtins.exec")
    assert not trap.exists()


def test_a_pickle_that_asks_for_all_memory_is_refused(headroom: Headroom) -> None:
    # LONG_BINPUT into the last slot of the memo: a few bytes that want 64 GiB.
    (headroom.place / "bomb.pickle").write_bytes(b"\x80\x04}r\xff\xff\xff\xff.")
    refused(headroom("replay", "bomb.pickle", "--capacity", "1GiB"), "bomb.pickle")


@pytest.mark.parametrize(("text", "words"), [
    ("Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0xa,much,0\n", ["line 2", "much"]),
    ("Thread,Time,Action,Pointer,Size,Stream\n1,1,borrow,0xa,1,0\n", ["line 2", "borrow"]),
    ("Thread,Time,Action,Pointer\n1,1,allocate,0xa\n", ["Size"]),
    ("id,lower,upper,size\n1,5,4,10\n", ["line 2", "ends at 4"]),
    ("id,lower,upper,size\n1,5,5,10\n", ["without a single allocation"]),
    ("id,lower,upper,size,weight\n1,5,6,10,2\n", ["line 1", "weight"]),
    ("id,lower,upper,size,offset\n1,0,6,10,0\n2,3,9,10,5\n", ["fixed", "buffers 1 and 0 overlap at time 3"]),
    ("id,lower,upper,size\n1,0,5,-10\n", ["line 2", "negative"]),
    ("1 a 100 0\n0 b 100 0\n", ["line 2", "not live"]),
    ("1 a 100 0\n1 a 100 0\n", ["line 2", "while it is live"]),
    ("hello\n", ["none of these", "RMM"]),
    ("", ["is empty"]),
    ("id,lower,upper,size\n", ["without a single allocation"]),
])
def test_a_malformed_history_is_refused_with_its_place(headroom: Headroom, text: str, words: list[str]) -> None:
    name = headroom.write("history", text)
    refused(headroom("replay", name, "--capacity", "1GiB"), "history", *words)


def test_a_cut_off_snapshot_is_refused(headroom: Headroom) -> None:
    name = snapshot(headroom, [event("alloc", 0, MIB)], [])
    whole = (headroom.place / name).read_bytes()
    (headroom.place / name).write_bytes(whole[: len(whole) // 2])
    refused(headroom("replay", name, "--capacity", "1GiB"), name, "damaged")


def test_a_capacity_must_be_named_where_the_history_has_none(headroom: Headroom) -> None:
    name = headroom.write("history.txt", "1 a 1048576 0\n")
    refused(headroom("replay", name), "--capacity", "1.00 MiB")


def test_a_missing_file_is_named(headroom: Headroom) -> None:
    refused(headroom("replay", "nowhere.pickle", "--capacity", "1GiB"), "nowhere.pickle")
