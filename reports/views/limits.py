"""How far each strategy got: the largest batch that fitted a device, and the smallest device that
held a batch. Only what the run tried; a larger batch or a smaller device may still fit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from reports.charts.style import Datum, Table
from reports.data import units
from reports.data.axes import differing, strategy_label

_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@dataclass(frozen=True)
class Limits:
    largest_batch: Table | None
    smallest_device: Table | None


def build_limits(entries: Sequence[dict[str, Any]]) -> Limits:
    return Limits(
        _table(
            entries,
            group=lambda cell: (_without(cell["workload"], "batch"), cell["device"]),
            size=lambda cell: cell["batch"],
            text=units.plain,
            more=True,
            headers=("largest batch that ran", "smallest that ran out of memory"),
        ),
        _table(
            entries,
            group=lambda cell: (cell["workload"], _without(cell["device"], "capacity")),
            size=lambda cell: _capacity(cell["device"]),
            text=units.bytes_,
            more=False,
            headers=("smallest device that was enough", "largest that ran out of memory"),
        ),
    )


def _without(spec: str, parameter: str) -> str:
    stripped = re.sub(rf"(?<=[(,]){parameter}=[^,)]*,?", "", spec)
    return stripped.replace(",)", ")").replace("()", "")


def _capacity(device: str) -> float | None:
    found = re.search(r"capacity=([\d.]+)([KMGT]?i?B)", device)
    return float(found[1]) * _SIZES[found[2]] if found and found[2] in _SIZES else None


def _table(
    entries: Sequence[dict[str, Any]],
    *,
    group: Callable[[dict[str, Any]], tuple[str, str]],
    size: Callable[[dict[str, Any]], float | None],
    text: Callable[[float], str],
    more: bool,
    headers: tuple[str, str],
) -> Table | None:
    """None if no group has both a size that fitted and one that did not."""
    counted = [e for e in entries if e["status"] in ("ok", "oom") and size(e["cell"]) is not None]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in counted:
        groups.setdefault(group(entry["cell"]), []).append(entry["cell"])
    varied = {key: differing(cells) for key, cells in groups.items()}
    tried: dict[tuple[str, str, str], dict[str, set[float]]] = {}
    for entry in counted:
        cell = entry["cell"]
        key = (*group(cell), strategy_label(cell, varied[group(cell)]))
        tried.setdefault(key, {"ok": set(), "oom": set()})[entry["status"]].add(size(cell) or 0)
    contested = {key[:2] for key, found in tried.items() if found["oom"]} & {
        key[:2] for key, found in tried.items() if found["ok"]
    }
    rows = []
    for key, found in tried.items():
        if key[:2] not in contested:
            continue
        fitted = (max if more else min)(found["ok"], default=None)
        failed = (min if more else max)(found["oom"], default=None)
        rows.append(
            (
                Datum(key[0]),
                Datum(key[1]),
                Datum(key[2]),
                Datum(text(fitted) if fitted is not None else "none that was tried", sort=fitted),
                Datum(text(failed) if failed is not None else "none that was tried", sort=failed),
            )
        )
    return Table(("workload", "device", "strategy", *headers), rows) if rows else None
