"""What a training process leaves of its device for a second one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from fixture import cell_of, sample_of
from fixture_recording import GIB, MEASURED, MIB, WARMUP, memory_of, record, trace_of, write_trace

from reports.charts.palette import AllocatorLooks
from reports.data import trace
from reports.views.left import MAXIMUM_GROUPS, LeftOver, build_left

CAPACITY = 2 * GIB


def sample(place: Path, growth: bool, batch: int = 4, device: str = "meta(card=a)", **cell: Any) -> dict[str, Any]:
    allocator = f"bfc(growth={'on' if growth else 'off'})"
    run = record(batch, CAPACITY, growth, None)
    made = cell_of(device, batch, allocator, **cell)
    name = f"{len(list(place.iterdir()))}.hrtrace"
    write_trace(trace_of(run, made), place / name)
    return sample_of(made, "made/up", allocator, 0, memory=memory_of(run, host=False), trace_file=name)


def build(place: Path, *samples: dict[str, Any]) -> LeftOver:
    return build_left(place, samples, AllocatorLooks({item["cell"]["allocator"] for item in samples}))


def test_preallocation_leaves_nothing_and_growth_what_it_never_took(tmp_path: Path) -> None:
    growing = sample(tmp_path, True)
    (group,) = build(tmp_path, sample(tmp_path, False), growing).groups
    rows = {row[0].text: [value.sort for value in row[1:]] for row in group.chart.table.rows}
    assert rows["bfc(growth=off)"] == [0, 0, 0]
    reserved = growing["memory"]["reserved_bytes"]
    moments = ("initial", "after_step_1", "overall_peak")
    assert rows["bfc(growth=on)"] == [CAPACITY - reserved[moment] for moment in moments]
    assert group.sentence.startswith("bfc(growth=on) never leaves less than") and group.simulated


def test_the_curve_ends_with_the_last_step_and_meets_the_ledger(tmp_path: Path) -> None:
    growing = sample(tmp_path, True)
    steps = WARMUP + MEASURED
    curve = trace.reserved_by_step(tmp_path, growing["trace_file"], steps)
    assert curve.capacity == CAPACITY
    assert (numpy.diff(curve.at) > 0).all() and curve.at[0] == 0 and steps <= curve.at[-1] < steps + 1
    for moment, steps_of in (("initial", curve.at < 1), ("after_step_1", curve.at < 2)):
        assert curve.bytes[steps_of][-1] == growing["memory"]["reserved_bytes"][moment]
    assert curve.bytes.max() == growing["memory"]["reserved_bytes"]["overall_peak"]
    early = trace.reserved_by_step(tmp_path, growing["trace_file"], 1)
    assert early.at[-1] < 2


def test_strategies_that_leave_the_same_have_no_chart(tmp_path: Path) -> None:
    same = sample(tmp_path, False)
    again = {**same, "cell": {**same["cell"], "allocator": "bfc"}}
    assert not build(tmp_path, same, again).groups


def test_only_allocators_are_held_against_each_other(tmp_path: Path) -> None:
    samples = [sample(tmp_path, False, optimizer="sgd"), sample(tmp_path, True, optimizer="adam")]
    assert not build(tmp_path, *samples).groups


def test_a_sweep_over_batches_is_one_chart(tmp_path: Path) -> None:
    samples = [sample(tmp_path, growth, batch) for batch in (1, 4, 16) for growth in (False, True)]
    found = build(tmp_path, *samples)
    (group,) = found.groups
    assert "batch=4" in group.chart.title and found.note == "1 of 3 workloads and devices are shown."


def test_there_is_no_end_of_charts_but_a_limit(tmp_path: Path) -> None:
    devices = [f"meta(card=c{number})" for number in range(MAXIMUM_GROUPS + 2)]
    found = build(tmp_path, *(sample(tmp_path, growth, 1, device) for device in devices for growth in (False, True)))
    assert len(found.groups) == MAXIMUM_GROUPS and str(len(devices)) in found.note


def test_steps_out_of_order_are_refused(tmp_path: Path) -> None:
    content = trace_of(record(1, 256 * MIB, True, None), cell_of("meta", 1, "bfc"))
    content.columns["step"].reverse()
    write_trace(content, tmp_path / "t.hrtrace")
    with pytest.raises(trace.TraceError, match="out of order"):
        trace.reserved_by_step(tmp_path, "t.hrtrace", 3)
