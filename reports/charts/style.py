"""Shared by all charts: figures, axes, ticks, colours by name, and the plain data of a chart."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Sequence

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

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

# Set globally, because artists read these when they are made, and some when they are drawn. Axes that are made
# as charts want them need not change every tick and grid line afterwards, which takes as long again.
matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text: selectable, searchable, small
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
        "font.size": TEXT,
        "path.simplify": False,  # Headroom keeps peaks itself
        "axes.unicode_minus": True,
        "axes.titley": 1.0,  # there are no titles, whose place would be sought among all the ticks
        "axes.axisbelow": True,
        "axes.edgecolor": _COLOUR_OF["faint"],
        "axes.linewidth": 1,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": _COLOUR_OF["line"],
        "grid.linewidth": 1,
        "xtick.bottom": False,
        "ytick.left": False,
    }
    | {f"axes.spines.{side}": side == "bottom" for side in ("left", "right", "top", "bottom")}
    | {f"{axis}tick.major.size": 0 for axis in "xy"}
    | {f"{axis}tick.major.pad": 6 for axis in "xy"}
    | {f"{axis}tick.labelsize": TEXT for axis in "xy"}
    | {f"{axis}tick.labelcolor": _COLOUR_OF["muted"] for axis in "xy"}
)


def colour(token: str) -> str:
    return _COLOUR_OF[token]


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


def new_figure(height: float, width: float = WIDTH) -> Figure:
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    FigureCanvasSVG(figure)
    figure.patch.set_visible(False)
    return figure


def add_axes(figure: Figure, left: float, top: float, right: float, bottom: float) -> Axes:
    """Axes with the given margins in viewBox units, measured from the figure's edges."""
    width, height = figure.get_size_inches() * 72
    axes = figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    )
    axes.patch.set_visible(False)
    axes.set_autoscale_on(False)  # charts set their limits; finding them anew for every line takes long
    return axes


def format_value_axis(axes: Axes, text: Callable[[float], str]) -> None:
    """Labels the value axis; zero needs no unit."""
    axes.yaxis.set_major_formatter(lambda tick, _: text(tick) if tick else "0")


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


def hover_data(
    axes: Axes, xs: Sequence[float], labels: Sequence[str], series: Sequence[dict[str, Any]], unit: str
) -> Markup:
    """Data for the pointer read-out: positions of points in the viewBox and their values, as text
    or as figures in `unit`."""
    figure = axes.figure
    width, height = figure.get_size_inches() * 72
    box = axes.get_position()
    low, high = axes.get_xlim()
    left, right = box.x0 * width, box.x1 * width
    places = [round(left + (x - low) / (high - low) * (right - left)) for x in xs]
    runs: list[tuple[int, str]] = []
    for place, label in enumerate(labels):
        if not runs or runs[-1][1] != label:
            runs.append((place, label))
    data = {
        "x": places,
        "top": round((1 - box.y1) * height, 1),
        "bottom": round((1 - box.y0) * height, 1),
        "labels": runs,  # each value holds until the next
        "unit": unit,
        "series": list(series),
    }
    # Without "<" no text can end the script element that holds the data.
    return Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"))
