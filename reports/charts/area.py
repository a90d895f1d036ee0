"""The area of a chart between its margins. Its methods are named after those of matplotlib's Axes, whose ticks, spines
and measured texts would take most of the time of a chart."""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Iterable, Sequence

import numpy
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, Bbox, Transform, nonsingular

from reports.charts.style import TEXT, Drawing, colour

_PAD = 6  # from the area to the labels of its ticks
_LINE = 12.098  # height of a line of text
# How far the baseline of a text lies below its position, by vertical alignment. Digits have no descenders.
_DROP = {"baseline": 0.0, "center": 3.449, "digits": 4.749, "top": 9.498}
_ANCHOR = {"left": "start", "center": "middle", "right": "end"}
_BOX = (Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY)


class _Words(Artist):
    """Text that is aligned by the height of a line. matplotlib's Text would measure every word, in another font than
    the page's."""

    zorder = 3

    def __init__(
        self, x: float, y: float, text: str, token: str, transform: Transform, offset: tuple[float, float], *,
        ha: str = "left", va: str = "baseline", halo: bool = False, zorder: float = 3,
    ) -> None:  # fmt: skip
        super().__init__()
        self.set_transform(transform)
        self.set_zorder(zorder)
        self._at, self._offset, self._drop = (x, y), offset, _DROP[va]
        self._text, self._halo = text, halo
        self._style = f"fill: {colour(token)}; text-anchor: {_ANCHOR[ha]}"

    def draw(self, renderer: RendererSVG) -> None:
        x, y = self.get_transform().transform(self._at) + self._offset
        attributes = {"style": self._style, "x": str(x), "y": str(renderer.height - y + self._drop)}
        renderer.writer.element("text", self._text, ({"class": "halo"} if self._halo else {}) | attributes)


class Area:
    """Positions are in data (`data`), in shares of the area (`shares`), or in both: `by_x` has x in data and y in
    shares, `by_y` the other way round. Limits may change after something was drawn."""

    def __init__(
        self, drawing: Drawing, left: float, top: float, right: float, bottom: float, *, floor: bool = True
    ) -> None:
        """Margins in units of the viewBox. `floor`: a line along the bottom."""
        self.drawing = drawing
        self.box = Bbox.from_extents(left, bottom, drawing.width - right, drawing.height - top)
        self._limits = [(0.0, 1.0), (0.0, 1.0)]
        self._below = 0.0  # height of the labels of ticks
        self.data, self.shares, self.by_x, self.by_y = (Affine2D() for _ in range(4))
        self._place()
        if floor:
            self._line([0, 1], [0, 0], self.shares, color=colour("faint"), linewidth=1, zorder=2.5, clip_on=False)

    def set_xlim(self, low: float, high: float) -> None:
        self._limit(0, low, high)

    def set_ylim(self, low: float, high: float) -> None:
        self._limit(1, low, high)

    def _limit(self, axis: int, low: float, high: float) -> None:
        """Limits that are equal, as of events of one moment, are moved apart."""
        self._limits[axis] = nonsingular(low, high, expander=0.05, increasing=False)
        self._place()

    def get_xlim(self) -> tuple[float, float]:
        return self._limits[0]

    def get_ylim(self) -> tuple[float, float]:
        return self._limits[1]

    def _place(self) -> None:
        share = [(self.box.width, self.box.x0), (self.box.height, self.box.y0)]
        data = [
            (size / (high - low), start - low * size / (high - low))
            for (low, high), (size, start) in zip(self._limits, share)
        ]
        for transform, (across, x), (up, y) in (
            (self.data, *data), (self.shares, *share), (self.by_x, data[0], share[1]), (self.by_y, share[0], data[1]),
        ):  # fmt: skip
            transform.set_matrix([[across, 0, x], [0, up, y], [0, 0, 1]])

    def add(self, artist: Artist) -> None:
        artist.set_clip_box(self.box)
        self.drawing.artists.append(artist)

    def _line(self, xs: Any, ys: Any, transform: Transform, **look: Any) -> None:
        self.add(Line2D(xs, ys, transform=transform, **look))

    def plot(self, xs: Any, ys: Any, **look: Any) -> None:
        self._line(xs, ys, self.data, **look)

    def axvline(self, x: float, **look: Any) -> None:
        self._line([x, x], [0, 1], self.by_x, **look)

    def axhline(self, y: float, **look: Any) -> None:
        self._line([0, 1], [y, y], self.by_y, **look)

    def axvspan(self, low: float, high: float, token: str) -> None:
        self._boxes([(low, 0, high, 1)], self.by_x, token, zorder=0)

    def axhspan(self, low: float, high: float, token: str) -> None:
        self._boxes([(0, low, 1, high)], self.by_y, token, zorder=0)

    def bars(self, boxes: Iterable[tuple[float, float, float, float]], token: str) -> None:
        """All bars of one colour, each from one corner to the opposite one."""
        self._boxes(boxes, self.data, token)

    def _boxes(
        self, boxes: Iterable[tuple[float, float, float, float]], transform: Transform, token: str, **look: Any
    ) -> None:
        corners = [(x, y) for x0, y0, x1, y1 in boxes for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))]
        if corners:
            self.fill(Path(corners, _BOX * (len(corners) // 5)), token, transform=transform, **look)

    def fill(self, path: Path, token: str, *, transform: Transform | None = None, **look: Any) -> None:
        self.add(PathPatch(path, color=colour(token), linewidth=0, transform=transform or self.data, **look))

    def steps_between(self, xs: Any, uppers: Any, token: str, **look: Any) -> None:
        """Fills from zero to values, each of which holds until the next."""
        across = numpy.concatenate(([xs[0]], numpy.repeat(xs[1:], 2), [xs[-1], xs[0]]))
        up = numpy.concatenate((numpy.repeat(uppers[:-1], 2), [uppers[-1], 0, 0]))
        first = numpy.array([[xs[0], 0]])
        self.fill(Path(numpy.concatenate((first, numpy.column_stack((across, up))))), token, **look)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        token: str,
        *,
        offset: tuple[float, float] = (0, 0),
        transform: Transform | None = None,
        **look: Any,
    ) -> None:
        """`offset` in units of the viewBox, to the right and up."""
        self.drawing.artists.append(_Words(x, y, text, token, transform or self.data, offset, **look))

    def heading(self, text: str, offset: tuple[float, float]) -> None:
        """What runs upwards, above the area."""
        self.text(0, 1, text, "ink", offset=offset, transform=self.shares)

    def yticks(
        self, places: Sequence[float], labels: Sequence[str] | Callable[[float], str], *, grid: bool = True
    ) -> None:
        """Labels of values need no unit at zero."""
        if callable(labels):
            labels = [labels(place) if place else "0" for place in places]
        if grid:
            lines = [point for place in places for point in (place, place, math.nan)]
            ends = [0, 1, math.nan] * len(places)
            self._line(ends, lines, self.by_y, color=colour("line"), linewidth=1, zorder=0.5, clip_on=False)
        for place, label in zip(places, labels):
            self.text(0, place, label, "muted", offset=(-_PAD, 0), transform=self.by_y, ha="right", va="digits")

    def xticks(
        self, places: Sequence[float], labels: Sequence[str], *, pad: float = _PAD, ha: str = "center"
    ) -> None:
        for place, label in zip(places, labels):
            self.text(place, 0, label, "muted", offset=(0, -pad), transform=self.by_x, ha=ha, va="top")
            self._below = pad + _LINE

    def caption(self, text: str, *, pad: float) -> None:
        """What runs across, below the labels of ticks."""
        self.text(0.5, 0, text, "muted", offset=(0, -pad - self._below), transform=self.shares, ha="center", va="top")

    def round_places(self, *, across: bool) -> Sequence[float]:
        """Round numbers around the limits, as many as have room for labels."""
        room = self.box.width / TEXT / 3 if across else self.box.height / TEXT / 2
        places = MaxNLocator(nbins=max(1, min(9, int(room))), steps=[1, 2, 2.5, 5, 10])
        return places.tick_values(*self._limits[0 if across else 1])

    def hover(
        self, xs: Sequence[float], labels: Sequence[str], series: Sequence[dict[str, Any]], unit: str = ""
    ) -> Markup:
        """Data for the pointer read-out: positions of points in the viewBox and their values, as text
        or as figures in `unit`."""
        low, high = self.get_xlim()
        places = [round(self.box.x0 + (x - low) / (high - low) * self.box.width) for x in xs]
        runs: list[tuple[int, str]] = []
        for place, label in enumerate(labels):
            if not runs or runs[-1][1] != label:
                runs.append((place, label))
        data = {
            "x": places,
            "top": round(self.drawing.height - self.box.y1, 1),
            "bottom": round(self.drawing.height - self.box.y0, 1),
            "labels": runs,  # each value holds until the next
            "unit": unit,
            "series": list(series),
        }
        # Without "<" no text can end the script element that holds the data.
        return Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"))
