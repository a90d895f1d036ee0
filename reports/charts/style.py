"""Shared by all charts: figures, axes, ticks, colours by name, and the plain data of a chart."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Sequence

import matplotlib
from markupsafe import Markup
from matplotlib.artist import Artist

from reports.data import units

WIDTH = 520  # units of the viewBox; on a phone the style sheet enlarges the text instead
TEXT = 12.5

# matplotlib only knows fixed colours: each CSS variable travels through it as one of these.
_TOKENS = (
    ["ink", "muted", "faint", "line", "surface", "band", "accepted", "claim", "alert"]
    + [f"a{i}" for i in range(8)]
    + [f"r{i}" for i in range(9)]
)
_COLOUR_OF = {token: f"#{0x0A0B00 + i:06x}" for i, token in enumerate(_TOKENS)}
TOKEN_OF = {colour: token for token, colour in _COLOUR_OF.items()}

# Set globally, because artists read these when they are made, and some when they are drawn.
matplotlib.rcParams.update(
    {
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
        "path.simplify": False,  # Headroom keeps peaks itself
        "svg.hashsalt": "charts",  # the same input gives the same ids
    }
)


def colour(token: str) -> str:
    return _COLOUR_OF[token]


@dataclass(frozen=True)
class Drawing:
    """What a chart draws on, in units of its viewBox. matplotlib's Figure would import its axes and widgets, which
    takes long."""

    height: float
    width: float = WIDTH
    artists: list[Artist] = field(default_factory=list)


@dataclass(frozen=True)
class LegendItem:
    label: str
    token: str
    kind: str = "line"  # line | dash | area | dot | ring | band
    marker: str = ""


@dataclass(frozen=True)
class Table:
    """Headers and rows of (text, exact value) pairs: the data behind a chart."""

    headers: Sequence[str]
    rows: Sequence[Sequence["Datum"]]


@dataclass(frozen=True)
class Datum:
    text: str
    exact: str = ""
    sort: float | str | None = None  # sort key, if the text is not one

    @property
    def sorts_by_title(self) -> bool:
        """Whether `exact` is the same number, so that the page shows it only once."""
        number = self.exact.partition(" ")[0].replace(",", "")
        return self.sort is not None and number in (str(self.sort), str(self.sort).removesuffix(".0"))


def bytes_datum(value: int | None) -> Datum:
    return Datum(units.bytes_(value), units.exact(value, "bytes"), value)


@dataclass(frozen=True)
class Chart:
    """One figure of the page."""

    id: str
    title: str
    svg: Markup
    table: Table
    legend: Sequence[LegendItem] = ()
    note: str = ""
    hover: Markup = Markup("")  # JSON for the pointer read-out; empty: none
    alerts: Sequence[str] = field(default_factory=tuple)


def nice_bytes_ticks(top: float, count: int = 4) -> list[float]:
    """Ticks from 0 to at least `top` that are round numbers of KiB, MiB, …"""
    if top <= 0:
        return [0.0, 1.0]
    unit = 1.0
    # The highest tick must be below 1024 units: 1500 KiB would be printed as 1.46 MiB, which is not round.
    while nice_ticks(top / unit, count)[-1] >= 1024:
        unit *= 1024
    return [tick * unit for tick in nice_ticks(top / unit, count)]


def nice_ticks(top: float, count: int = 4) -> list[float]:
    """0, step, 2·step … past `top`, with a step of 1, 2, 2.5 or 5 times a power of ten."""
    if top <= 0:
        return [0.0, 1.0]
    raw = top / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    ticks = [0.0]
    while ticks[-1] < top * 0.999:
        ticks.append(ticks[-1] + step)
    return ticks
