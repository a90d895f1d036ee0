"""matplotlib → inline SVG that obeys the page: CSS variables for colours, the page's font, no
style attributes (the content security policy forbids them), ids of its own, few digits.
"""

from __future__ import annotations

import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Sequence

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

WIDTH = 520  # units of the viewBox; on a phone the style sheet enlarges the text instead
TEXT = 12.5

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"

# matplotlib only knows fixed colours: each CSS variable travels through it as one of these.
_TOKENS = (
    ["ink", "muted", "faint", "line", "surface", "band", "accepted", "claim", "alert"]
    + [f"a{i}" for i in range(8)]
    + [f"r{i}" for i in range(9)]
)
_COLOUR_OF = {token: f"#{0x0A0B00 + i:06x}" for i, token in enumerate(_TOKENS)}
_TOKEN_OF = {colour: token for token, colour in _COLOUR_OF.items()}

# For good, not in a context: artists read these when they are made, some when they are drawn.
matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text: selectable, searchable, small
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
        "font.size": TEXT,
        "path.simplify": False,  # peaks are kept by us, not guessed by it
        "axes.unicode_minus": True,
    }
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
    sort: float | str | None = None  # what to sort by, where the text does not do


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
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(colour("faint"))
        spine.set_linewidth(1)
    axes.tick_params(length=0, pad=6, labelsize=TEXT, labelcolor=colour("muted"))
    axes.grid(axis="y", color=colour("line"), linewidth=1)
    axes.set_axisbelow(True)
    return axes


def format_value_axis(axes: Axes, text: Callable[[float], str]) -> None:
    """Labels the value axis; zero needs no unit."""
    axes.yaxis.set_major_formatter(lambda tick, _: text(tick) if tick else "0")


def nice_bytes_ticks(top: float, count: int = 4) -> list[float]:
    """Round steps in powers of two's units, from 0 to at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    unit = 1.0
    while top / unit >= 1024:
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
    """What the pointer read-out needs: where points lie in the viewBox, and their values, as text
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
        "labels": runs,  # each holds until the next
        "unit": unit,
        "series": list(series),
    }
    # "<" cannot end the script element it lies in.
    return Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"))


def to_svg(figure: Figure, chart_id: str, title: str, description: str) -> Markup:
    """Draws the figure. `chart_id` prefixes every id; title and description are for readers who
    cannot see it."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": chart_id}):
        figure.savefig(
            stream,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Type": None, "Format": None},
        )
    root = ElementTree.fromstring(stream.getvalue())
    _rewrite(root, chart_id)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("class", "chart")
    root.set("role", "img")
    root.set("aria-labelledby", f"{chart_id}-t {chart_id}-d")
    root.set("stroke-linejoin", "round")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{chart_id}-{tag[0]}"})
        element.text = text
        root.insert(place, element)
    text = ElementTree.tostring(root, encoding="unicode")
    text = re.sub(r'\s+xmlns:?\w*="[^"]*"', "", text)  # inside HTML the parser knows the namespace
    return Markup(re.sub(r"<(/?)\w+:", r"<\1", text))


def _rewrite(root: ElementTree.Element, prefix: str) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            name = child.tag.rsplit("}", 1)[-1]
            if name == "metadata" or (name == "defs" and child.find(f"{{{_SVG}}}style") is not None):
                parent.remove(child)
    referenced: dict[str, str] = {}  # as matplotlib names it → as the page does
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == _XLINK:
                name = value.lstrip("#")
            elif value.startswith("url(#"):
                name = value[5:-1]
            else:
                continue
            referenced.setdefault(name, f"{prefix}-{len(referenced)}")
    for element in root.iter():
        if element.tail is not None:
            element.tail = None
        if element.text is not None and not element.text.strip():
            element.text = None
        _rewrite_attributes(element, referenced)
    _drop_empty_groups(root)


def _drop_empty_groups(element: ElementTree.Element) -> None:
    for child in list(element):
        _drop_empty_groups(child)
        if child.tag == f"{{{_SVG}}}g" and not child.attrib:
            place = list(element).index(child)
            element.remove(child)
            for offset, grandchild in enumerate(list(child)):
                element.insert(place + offset, grandchild)


def _rewrite_attributes(element: ElementTree.Element, names: dict[str, str]) -> None:
    attributes = dict(element.attrib)
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "id":
            if value in names:
                element.set("id", names[value])
            elif value == "halo":  # set by charts on text that lies over curves
                element.set("class", "halo")
        elif key == _XLINK:
            element.set("href", "#" + names[value.lstrip("#")])
        elif value.startswith("url(#"):
            element.set(key, f"url(#{names[value[5:-1]]})")
        elif key == "style":
            for name, setting in _declarations(value):
                element.set(name, setting)
        elif key == "d":
            element.set("d", _shorten(value))
        elif key == "transform" and value.startswith("rotate(-0 "):
            continue
        elif key in ("x", "y", "width", "height"):
            element.set(key, _round(value))
        else:
            element.set(key, value)


def _declarations(style: str) -> Iterable[tuple[str, str]]:
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip(), value.strip()
        if not name:
            continue
        if name == "font":  # the shorthand is no attribute; the family is the page's
            weight, size = re.match(r"(?:(bold|\d+) )?([\d.]+)px", value).groups()  # type: ignore[union-attr]
            if float(size) != TEXT:  # the usual size stands in the style sheet
                yield "font-size", size
            if weight:
                yield "font-weight", weight
        elif value in _TOKEN_OF:
            yield name, f"var(--{_TOKEN_OF[value]})"
        elif name in ("stroke-linejoin", "stroke-linecap") and value in ("round", "butt", "square"):
            continue
        else:
            yield name, value


def _shorten(path: str) -> str:
    """One decimal is plenty; runs along an axis become H and V. A marker's outline keeps two."""
    if "C" in path or "Q" in path:
        path = re.sub(r"-?\d+\.\d+", lambda match: f"{float(match[0]):.2f}", path)
        return re.sub(r"\s*([MLCQZz])\s*", r"\1", path).strip()
    pieces: list[str] = []
    at = ("", "")
    rightward = True
    for command, x, y in re.findall(r"([MLz])\s*(-?[\d.]+)?\s*(-?[\d.]+)?", path):
        if command == "z":
            pieces.append("z")
            continue
        to = (_round(x), _round(y))
        if command == "M" or (to[0] != at[0] and to[1] != at[1]):
            pieces.append(f"{command}{to[0]} {to[1]}")
        elif to[0] != at[0]:
            # Further along the same straight line: the point before says nothing.
            if pieces[-1][0] == "H" and (float(to[0]) > float(at[0])) == rightward:
                pieces.pop()
            rightward = float(to[0]) > float(at[0])
            pieces.append(f"H{to[0]}")
        elif to[1] != at[1]:
            pieces.append(f"V{to[1]}")
        at = to
    return "".join(pieces)


def _round(number: str) -> str:
    try:
        return f"{float(number):.1f}".removesuffix(".0")
    except ValueError:
        return number
