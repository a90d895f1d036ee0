"""Data for showing any two configurations of the run side by side: values, the comparisons that
the run made in pairs, and step times. Nothing is judged here: where no comparison was made, the
page says so.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Sequence

from markupsafe import Markup

from reports.charts.palette import AllocatorLooks
from reports.charts.style import Datum, Table
from reports.data import glossary, units
from reports.data.axes import differing, strategy_label
from reports.data.devices import simulated
from reports.data.slug import slug
from reports.views.page import Page, Section

MAXIMUM_CELLS = 200  # configurations that can be chosen, measured ones first
MAXIMUM_ROWS = 400  # rows of the table of all comparisons
_POINTS_IN_ALL = 12_000  # points of all distributions together
TIME = "steady_step_time_ns"
_METRICS = (
    "reserved_bytes.overall_peak",
    "reserved_bytes.initial",
    "allocated_bytes.overall_peak",
    "process_bytes.overall_peak",
    TIME,
    "steady_step_time_p95_ns",
    "first_step_time_ns",
    "throughput_samples_per_s",
    "external_fragmentation",
)


@dataclass(frozen=True)
class CompareView:
    data: Markup  # JSON for the script
    shown: int
    cells: int
    keys: dict[str, str]  # configuration → its index in the script
    timed: Table | None  # comparisons of step times in pairs: for readers without scripts, and on paper
    timed_in_all: int


def build_compare(
    samples: Sequence[dict[str, Any]],
    entries: Sequence[dict[str, Any]],
    exclusions: Sequence[dict[str, Any]],
    looks: AllocatorLooks,
) -> CompareView | None:
    """None if fewer than two configurations have figures."""
    usable = [entry for entry in entries if entry["status"] == "ok" and entry["values"]]
    if len(usable) < 2:
        return None
    ranked = sorted(usable, key=lambda entry: simulated(entry["cell"]))
    chosen = ranked[:MAXIMUM_CELLS]
    by_arm: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for sample in samples:
        steady = sample["step_time_ns"][sample["warmup_steps"] :]
        if sample["status"] == "ok" and steady and not simulated(sample["cell"]):
            by_arm.setdefault((sample["experiment"], sample["arm"]), []).append(sample)
    points = max(24, _POINTS_IN_ALL // max(1, len(by_arm)))
    metrics = [name for name in _METRICS if any(entry["values"].get(name) is not None for entry in chosen)]
    varied = differing([entry["cell"] for entry in chosen])
    left_out = {(item["experiment"], item["block"]) for item in exclusions}
    data = {
        "metrics": [
            {"name": glossary.metric(name), "unit": units.unit_of(name), "less": not glossary.more_is_better(name)}
            for name in metrics
        ],
        "time": metrics.index(TIME) if TIME in metrics else -1,
        "words": {
            word.word: [word.tone, word.icon]
            for word in (glossary.verdict(name) for name in _words(chosen, metrics))
        },
        "cells": [_cell(entry, metrics, varied, by_arm, points, left_out, looks) for entry in chosen],
    }
    rows = _timed(usable)
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    headers = ("experiment", "variant", "against", "change of step time", "95 % interval", "pairs", "verdict")
    return CompareView(
        Markup(text.replace("<", "\\u003c")),
        len(chosen),
        len(usable),
        {entry["cell"]["cell_id"]: _key(entry) for entry in reversed(chosen)},
        Table(headers, rows[:MAXIMUM_ROWS]) if rows else None,
        len(rows),
    )


def _words(entries: Sequence[dict[str, Any]], metrics: Sequence[str]) -> list[str]:
    used = {entry["comparisons"][name]["verdict"] for entry in entries for name in metrics if entry["comparisons"].get(name)}
    # In the reversed comparison, worse becomes better.
    return sorted(used | {"WORSE", "BETTER"})


def _cell(
    entry: dict[str, Any],
    metrics: Sequence[str],
    varied: Sequence[str],
    by_arm: dict[tuple[str, str], list[dict[str, Any]]],
    points: int,
    left_out: set[tuple[str, int]],
    looks: AllocatorLooks,
) -> dict[str, Any]:
    cell, key = entry["cell"], (entry["experiment"], entry["arm"])
    group = by_arm.get(key, [])
    times = sorted(time for sample in group for time in sample["step_time_ns"][sample["warmup_steps"] :])
    return {
        "key": _key(entry),
        "experiment": entry["experiment"],
        "arm": entry["arm"],
        "base": entry["baseline_arm"],
        "name": f"{cell['workload']} · {strategy_label(cell, varied)}",
        "device": cell["device"],
        "simulated": simulated(cell),
        "link": "cell-" + slug(cell["cell_id"]),
        "colour": looks[cell["allocator"]].token,
        "values": [_figures(entry["values"].get(metric)) for metric in metrics],
        "compared": {
            place: _comparison(comparison)
            for place, metric in enumerate(metrics)
            if (comparison := entry["comparisons"].get(metric)) and comparison["theta"] is not None
            and comparison["scale"] == "log_ratio"
        },
        "blocks": [
            [sample["block"], _figures(_mean(sample)), int((entry["experiment"], sample["block"]) in left_out)]
            for sample in group
        ],
        "times": [_figures(time) for time in _quantiles(times, points)],
        "steps": len(times),
    }


def _key(entry: dict[str, Any]) -> str:
    return slug(f"{entry['experiment']}|{entry['arm']}|")


def _comparison(comparison: dict[str, Any]) -> list[Any]:
    ci90, ci95 = (comparison[name] or [None, None] for name in ("ci90", "ci95"))
    figures = [comparison["theta"], *ci90, *ci95, comparison["delta"]]
    return [*(_figures(value) for value in figures), int(comparison["exact"]), comparison["verdict"]]


def _figures(value: float | None) -> float | int | None:
    """Five significant digits keep the page small. Whole numbers stay whole."""
    if value is None or isinstance(value, int):
        return value
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() else rounded


def _mean(sample: dict[str, Any]) -> float:
    steady = sample["step_time_ns"][sample["warmup_steps"] :]
    return sum(steady) / len(steady)


def _quantiles(ordered: Sequence[int], most: int) -> list[int]:
    """All values, or evenly chosen ones that include the first and the last."""
    if len(ordered) <= most:
        return list(ordered)
    return [ordered[round(place * (len(ordered) - 1) / (most - 1))] for place in range(most)]


def _timed(entries: Sequence[dict[str, Any]]) -> list[tuple[Datum, ...]]:
    rows = []
    for entry in entries:
        comparison = entry["comparisons"].get(TIME)
        if comparison is None or comparison["effect"] is None:
            continue
        bounds = comparison["ci95"]
        interval = "–" if bounds is None else " … ".join(_effect(bound) for bound in bounds)
        rows.append(
            (
                Datum(entry["experiment"]),
                Datum(entry["arm"]),
                Datum(entry["baseline_arm"] or "–"),
                Datum(units.effect(comparison["effect"]), units.exact(comparison["effect"]), comparison["effect"]),
                Datum(interval),
                Datum(str(comparison["n_pairs"]), sort=comparison["n_pairs"]),
                Datum(comparison["verdict"]),
            )
        )
    return rows


def _effect(theta: float | None) -> str:
    return "unbounded" if theta is None else units.effect(math.expm1(theta))


def _of_page(page: Page) -> CompareView | None:
    return build_compare(page.measured, page.entries, page.verdicts.get("exclusions", []), page.looks)


SECTION = Section("compare", "Compare", "any two configurations side by side", 30, _of_page)
