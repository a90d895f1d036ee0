"""What the page says of one cell beside its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fixture import cell_of
from fixture_verdicts import comparison_of

from reports.charts.palette import AllocatorLooks
from reports.views.cells import build_cells

WHY = "Rare slow steps are slower or more frequent with malloc than with bfc: the mean moves by another +12 %."


def slow_steps(why: str | None, place: Path) -> list[str]:
    tail = {"metric": "steady_step_time_mean_ns", "theta": 0.11, "ci95": [0.05, 0.2], "why": why}
    entry: dict[str, Any] = {
        "experiment": "made/up", "arm": "malloc", "cell": cell_of("host(capacity=1GiB)", 16, "malloc"),
        "status": "ok", "reason": None, "samples": 10, "values": {}, "intervals": {}, "baseline_arm": "bfc",
        "comparisons": {"steady_step_time_ns": {**comparison_of(0.0, 0.01), "tail": tail}},
    }  # fmt: skip
    (view,) = build_cells(place, [], [entry], AllocatorLooks({"malloc"}))
    assert not view.alerts, "bytes do not contradict each other"
    return list(view.slow_steps)


def test_a_mean_that_tells_otherwise_than_the_median_is_told(tmp_path: Path) -> None:
    assert slow_steps(WHY, tmp_path) == [WHY]


def test_a_mean_that_agrees_with_the_median_is_not_mentioned(tmp_path: Path) -> None:
    assert slow_steps(None, tmp_path) == []
