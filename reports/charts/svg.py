"""matplotlib's SVG → SVG that obeys the page: CSS variables for colours, no style
attributes (the content security policy forbids them), ids of its own, few digits.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from typing import Iterable

from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.backends.backend_svg import RendererSVG

from reports.charts.style import TOKEN_OF, Drawing
from reports.charts.svg_groups import group_alike

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"


def to_svg(drawing: Drawing, chart_id: str, title: str, description: str) -> Markup:
    """`chart_id` prefixes every id; title and description are for readers who cannot see the drawing."""
    stream = io.StringIO()
    renderer = RendererSVG(drawing.width, drawing.height, stream)
    for artist in sorted(drawing.artists, key=Artist.get_zorder):
        artist.draw(renderer)
    renderer.finalize()
    root = ElementTree.fromstring(stream.getvalue())
    _rewrite(root, chart_id)
    group_alike(root, _SVG)
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
        elif key == _XLINK:
            element.set("href", "#" + names[value.lstrip("#")])
        elif value.startswith("url(#"):
            element.set(key, f"url(#{names[value[5:-1]]})")
        elif key == "style":
            for name, setting in _declarations(value):
                element.set(name, setting)
        elif key == "d":
            element.set("d", _shorten(value))
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
        if value in TOKEN_OF:
            yield name, f"var(--{TOKEN_OF[value]})"
        elif name in ("stroke-linejoin", "stroke-linecap") and value in ("round", "butt", "square"):
            continue
        else:
            yield name, value


def _shorten(path: str) -> str:
    """Keeps one decimal, two in a marker's outline; lines along an axis become H and V."""
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
            # The previous point lies on the same straight line and is dropped.
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
