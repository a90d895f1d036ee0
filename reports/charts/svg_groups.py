"""Makes a drawing smaller without changing it: common attributes of neighbours move to a group
around them."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree

# Attributes that are inherited or, like clip-path, act on a group as on each element in it.
_SHARED = (
    "clip-path", "fill", "fill-opacity", "stroke", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
    "stroke-opacity", "stroke-width", "text-anchor",
)  # fmt: skip
_FEWEST = 3  # a group adds markup of its own


def group_alike(element: ElementTree.Element, namespace: str) -> None:
    """Wraps each run of leaves of one tag that agree in these attributes."""
    children: list[ElementTree.Element] = []
    for _, run in itertools.groupby(list(element), key=_look):
        members = list(run)
        shared = [name for name in _SHARED if name in members[0].attrib]
        if len(members) < _FEWEST or not shared or len(members[0]):
            children += members
            continue
        group = ElementTree.Element(f"{{{namespace}}}g", {name: members[0].attrib[name] for name in shared})
        for member in members:
            for name in shared:
                del member.attrib[name]
        group.extend(members)
        children.append(group)
    element[:] = children
    for child in children:
        if len(child) and not child.tag.endswith("}defs"):
            group_alike(child, namespace)


def _look(element: ElementTree.Element) -> tuple[object, ...]:
    return element.tag, len(element) > 0, *(element.get(name) for name in _SHARED)
