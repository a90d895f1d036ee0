"""A finding as a picture of 1200 × 630 pixels, for programs that show a picture of what a message links to."""

from __future__ import annotations

import io
import textwrap
from typing import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reports.charts.effect import reach
from reports.charts.evidence import Claimed, Point
from reports.data.glossary import Word

_WIDTH, _HEIGHT = 1200, 630
_LEFT, _RIGHT = 60, 1140
_TITLE, _SENTENCE = 48, 72  # characters a line
_MOST_LINES = 5


def preview(
    title: str,
    word: Word,
    basis: str,
    sentence: str,
    points: Sequence[Point],
    claimed: Claimed | None,
    colours: Mapping[str, str],
) -> bytes:
    """Returns a PNG. `colours` are the page's, by name. Text that does not fit is cut: the page has all of it."""
    figure = Figure(figsize=(_WIDTH / 100, _HEIGHT / 100), dpi=100, facecolor=colours["page"])
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(_HEIGHT, 0)

    def write(y: float, text: str, size: float, colour: str, **more: str) -> None:
        axes.text(_LEFT, y, text, fontsize=size * 0.72, color=colours[colour], va="top", linespacing=1.3, **more)

    write(48, "Headroom", 24, "accent", weight="bold")
    write(104, _lines(title, _TITLE, 2), 36, "ink", weight="bold")
    write(218, f"{word.word} ({basis})", 28, word.tone, weight="bold")
    write(278, _lines(sentence, _SENTENCE, _MOST_LINES), 26, "ink")
    if points:
        _strip(axes, colours, points, claimed)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _lines(text: str, width: int, most: int) -> str:
    return "\n".join(textwrap.wrap(text, width, max_lines=most, placeholder=" …"))


def _strip(axes: Axes, colours: Mapping[str, str], points: Sequence[Point], claimed: Claimed | None) -> None:
    """Draws measured beside claimed, as the page does beside the finding."""
    low, high = reach(points, claimed)
    top, middle, bottom = 515, 550, 585

    def x(value: float) -> float:
        return _LEFT + (min(max(value, low), high) - low) / (high - low) * (_RIGHT - _LEFT)

    if claimed and (claimed.low is not None or claimed.high is not None):
        left, right = (x(end if bound is None else bound) for end, bound in ((low, claimed.low), (high, claimed.high)))
        axes.fill_between((left, max(right, left + 6)), top, bottom, color=colours["accepted"])
    axes.plot((_LEFT, _RIGHT), (middle, middle), color=colours["line"], linewidth=2)
    axes.plot((x(0), x(0)), (top, bottom), color=colours["faint"], linewidth=2)
    axes.text(x(0), top - 8, "0", fontsize=15, color=colours["muted"], ha="center")
    if claimed and claimed.value is not None:
        axes.plot((x(claimed.value),) * 2, (top, bottom), color=colours["claim"], linewidth=4)
        axes.text(x(claimed.value), top - 8, "claimed", fontsize=15, color=colours["claim"], ha="center")
    for point in points:
        if point.effect is not None:
            fill = colours["surface"] if point.simulated else colours["accent"]
            axes.plot(x(point.effect), middle, "o", markersize=12, color=fill, markeredgecolor=colours["accent"])
