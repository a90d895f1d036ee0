"""Numbers and lists for people: GiB, ms, percent. Exact values stand beside them, in titles and tables."""

from __future__ import annotations

import math
from typing import Iterable

MINUS = "\u2212"
DASH = "\u2013"
NARROW = "\u202f"  # between a number and its unit, and between thousands


def bytes_(value: float | None) -> str:
    """1610612736 → "1.50 GiB"."""
    return _scaled(value, (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40)))


def nanoseconds(value: float | None) -> str:
    """16100000 → "16.1 ms"."""
    return _scaled(value, (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)))


def _scaled(value: float | None, units: tuple[tuple[str, float], ...]) -> str:
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0:
        return f"0{NARROW}{units[0][0]}"
    chosen = units[0]
    for unit in units:
        # 999.7 would print as "1000": the next unit reads better.
        if abs(value) >= unit[1] * (1 if unit is units[0] else 0.9995):
            chosen = unit
    return f"{plain(value / chosen[1])}{NARROW}{chosen[0]}"


def plain(value: float | None) -> str:
    """Three significant digits: 1234 → "1 234", 12.34 → "12.3", 0.01234 → "0.0123"."""
    if value is None or not math.isfinite(value):
        return DASH
    size = abs(value)
    if float(value).is_integer() and size < 1e15:
        text = f"{int(value):,}".replace(",", NARROW)
    elif size >= 1000:
        text = f"{value:,.0f}".replace(",", NARROW)
    elif size >= 100:
        text = f"{value:.0f}"
    elif size >= 10:
        text = f"{value:.1f}"
    elif size >= 0.9995:
        text = f"{value:.2f}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", MINUS)


def exact(value: float | None, unit: str = "") -> str:
    """The value as stored, thousands grouped, with its unit."""
    if value is None:
        return "not known"
    text = f"{value:,}" if isinstance(value, int) or float(value).is_integer() else repr(value)
    return f"{text.removesuffix('.0')} {unit}".strip()


def percent(fraction: float | None) -> str:
    """0.0312 → "3.1 %"."""
    if fraction is None or not math.isfinite(fraction):
        return DASH
    points = abs(fraction) * 100
    digits = 0 if points >= 99.95 else 1 if points >= 1 or points == 0 else 2
    return f"{fraction * 100:.{digits}f}{NARROW}%".replace("-", MINUS).replace(f"0.0{NARROW}", f"0{NARROW}")


def effect(value: float | None) -> str:
    """A relative change: −0.62 → "−62.0 %"; from +300 % on as a factor: 15 → "16×"."""
    if value is None or not math.isfinite(value):
        return DASH
    if value >= 3:
        return f"{plain(1 + value)}×"
    return ("+" if value > 0 else "") + percent(value)


def listed(words: Iterable[str], most: int | None = None) -> str:
    """ "a", "b", "c" → "a, b and c"; of more than `most`, the first of them and how many more there are."""
    every = list(dict.fromkeys(words))
    if most is not None and len(every) > most:
        return f"{', '.join(every[:most])} and {len(every) - most} more"
    return " and ".join([", ".join(every[:-1]), every[-1]]) if len(every) > 1 else "".join(every)


def value_in(value: float | None, unit: str) -> str:
    """A value in the unit its field name or evidence states."""
    if value is None:
        return DASH
    if unit == "bytes":
        return bytes_(value)
    if unit in ("ns", "nanoseconds"):
        return nanoseconds(value)
    if unit in ("", "1", "count", "ratio"):
        return plain(value)
    return f"{plain(value)}{NARROW}{unit}"


def canonical(unit: str, metric: str) -> str:
    """The unit of a piece of evidence, in this module's words."""
    return {"B": "bytes", "1": "", "1/s": unit_of(metric) or "1/s"}.get(unit, unit)


def unit_of(metric: str) -> str:
    """The unit is part of a metric's name: reserved_bytes.initial → bytes."""
    for field in reversed(metric.split(".")):
        if field.endswith("_bytes") or field == "bytes" or "_bytes_per_" in field:
            return "bytes"
        if field.endswith("_ns"):
            return "ns"
        if field.endswith("_per_s"):
            return field.removesuffix("_per_s").rpartition("_")[2] + "/s"
    return ""
