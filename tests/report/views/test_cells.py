"""What the page says of one cell beside its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fixture import cell_of, sample_of
from fixture_verdicts import comparison_of

from reports.charts.palette import AllocatorLooks
from reports.data import glossary
from reports.views.cell_tables import facts
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


def test_a_figure_that_the_glossary_names_is_shown_in_its_words_and_unit() -> None:
    memory = {"lower_bound_bytes": 1, "internal_fragmentation": 0, "external_fragmentation": 0, "utilisation": 1}
    sample = sample_of(
        cell_of("meta(capacity=1GiB)", 16, "malloc"), "made/up", "malloc", 0,
        memory={**memory, "process_baseline_bytes": None},
        figures={"process_bytes": 3 * 2**29, "skipped_steps": 3, "known_to_nobody": 5},
    )  # fmt: skip
    shown = [(name, datum.text) for name, datum in facts(sample)]
    assert (glossary.metric("process_bytes"), "1.50\u202fGiB") in shown
    assert (glossary.metric("skipped_steps"), "3") in shown
    assert "5" not in [text for _, text in shown]
