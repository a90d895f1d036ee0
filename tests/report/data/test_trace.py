"""Following a recorded trace."""

from __future__ import annotations

import random
from pathlib import Path

import numpy
import pytest
from fixture import cell_of
from fixture_recording import MIB, record, trace_of, write_trace

from harness.trace.file import Trace
from reports.data import trace


def made_up(growth: bool = True) -> Trace:
    return trace_of(record(4, 1024 * MIB, growth, None), cell_of("meta(card=v100-16gb)", 4, "bfc"))


def follow(content: Trace) -> trace.Timeline:
    return trace.follow(content.header, content.op_names, content.columns)


def test_totals_follow_the_events() -> None:
    run = record(4, 1024 * MIB, True, None)
    timeline = follow(trace_of(run, cell_of("meta", 4, "bfc")))
    recorded = numpy.array(run.history)
    assert (timeline.requested == recorded[:, 1]).all()
    assert (timeline.allocated == recorded[:, 2]).all()
    assert (timeline.reserved == recorded[:, 3]).all()


def test_roles_add_up_to_the_requested_bytes_at_every_event() -> None:
    timeline = follow(made_up())
    assert (sum(timeline.by_role.values()) == timeline.requested).all()


def test_what_is_live_at_the_peak_adds_up_to_the_peak() -> None:
    timeline = follow(made_up())
    assert sum(size for _, _, size in timeline.live_at_peak) == timeline.requested[timeline.peak]


def test_a_sound_trace_breaks_no_invariant() -> None:
    assert follow(made_up()).broken == []


def test_blocks_beyond_the_reserved_bytes_are_found() -> None:
    content = made_up()
    place = content.columns["kind"].index(2)
    content.columns["size_bytes"][place] = 1
    assert any("allocated exceeds reserved" in text for text in follow(content).broken)


def test_more_than_the_capacity_is_found() -> None:
    content = made_up()
    content.header["capacity_bytes"] = 1
    assert any("reserved exceeds capacity" in text for text in follow(content).broken)


def test_mapped_pages_count_as_reserved() -> None:
    content = made_up()
    plain = follow(content).reserved
    renamed = {"segment_alloc": "segment_map", "segment_free": "segment_unmap"}
    content.header["kinds"] = [renamed.get(kind, kind) for kind in content.header["kinds"]]
    assert (follow(content).reserved == plain).all()


def test_a_free_of_nothing_is_found() -> None:
    content = made_up()
    place = content.columns["kind"].index(1)
    content.columns["id"][place] = 999_999
    assert any("not live" in text for text in follow(content).broken)


def test_the_request_that_found_no_room_is_remembered() -> None:
    content = made_up()
    for name, values in content.columns.items():
        values.append({"kind": 4, "requested_bytes": 12345}.get(name, values[-1]))
    events = len(content.columns["kind"])
    failure = follow(content).failure
    assert failure is not None and (failure.event, failure.requested) == (events - 1, 12345)
    assert follow(made_up()).failure is None


def test_a_written_trace_is_followed_as_it_was_recorded(tmp_path: Path) -> None:
    content = made_up()
    write_trace(content, tmp_path / "t.hrtrace")
    loaded = trace.load(tmp_path, "t.hrtrace")
    assert (loaded.reserved == follow(content).reserved).all()
    assert loaded.live_at_peak == follow(content).live_at_peak


def test_a_damaged_trace_is_refused(tmp_path: Path) -> None:
    write_trace(made_up(), tmp_path / "t.hrtrace")
    content = bytearray((tmp_path / "t.hrtrace").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "t.hrtrace").write_bytes(content)
    with pytest.raises(trace.TraceError, match="damaged"):
        trace.load(tmp_path, "t.hrtrace")


def test_a_truncated_trace_is_refused(tmp_path: Path) -> None:
    write_trace(made_up(), tmp_path / "t.hrtrace")
    whole = (tmp_path / "t.hrtrace").read_bytes()
    (tmp_path / "t.hrtrace").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(trace.TraceError, match="cut off"):
        trace.load(tmp_path, "t.hrtrace")


def test_a_trace_without_events_is_refused(tmp_path: Path) -> None:
    content = made_up()
    write_trace(Trace(content.header, [], {name: [] for name in content.columns}), tmp_path / "t.hrtrace")
    with pytest.raises(trace.TraceError, match="no events"):
        trace.load(tmp_path, "t.hrtrace")


def test_a_trace_with_too_many_events_to_draw_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAXIMUM_EVENTS", 100)
    write_trace(made_up(), tmp_path / "t.hrtrace")
    with pytest.raises(trace.TraceError, match="more than 100 events"):
        trace.load(tmp_path, "t.hrtrace")


def test_a_trace_outside_the_run_directory_is_not_opened(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    write_trace(made_up(), tmp_path / "t.hrtrace")
    with pytest.raises(trace.TraceError, match="outside"):
        trace.load(run, "../t.hrtrace")


def test_thinning_keeps_the_ends_and_every_extreme() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    values = numpy.random.default_rng(seed).integers(0, 10**9, 5000)
    kept = trace.thin(values, budget=200)
    assert len(kept) <= 210
    assert kept[0] == 0 and kept[-1] == len(values) - 1
    assert values[kept].max() == values.max() and values[kept].min() == values.min()
