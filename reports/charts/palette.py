"""How allocators are drawn: one colour, marker and dash each, the same in every chart and table.

Colours are names of CSS variables (templates/style.css), so that charts follow light and dark.
Hues after Okabe and Ito, "Color Universal Design" (2008), toned down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Fixed looks, so that a strategy looks the same in every report. Others follow, those without
# parameters first, in alphabetical order.
_FIXED = {
    "bfc": 0,
    "bfc(growth=off)": 0,
    "bfc(growth=on)": 1,
    "malloc": 2,
    "caching": 3,
    "planned": 4,
}
_OF_THE_CARD = {"reserve"}
_COLOURS = 8
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
_DASHES = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))


@dataclass(frozen=True)
class Look:
    token: str  # CSS variable
    marker: str  # of matplotlib
    dash: tuple[float, ...]


PLAIN = Look("muted", "o", (5, 2))  # of a baseline that has the same allocator as its treatment


class AllocatorLooks:
    """Assigns looks over all allocators of one run."""

    def __init__(self, specs: set[str]) -> None:
        names = {plain_name(spec) for spec in specs}
        place = {name: _FIXED[name] for name in names if name in _FIXED}
        free = len(set(_FIXED.values()))
        for name in sorted(names - set(place), key=lambda name: ("(" in name, name)):
            place[name] = free
            free += 1
        self._place = {spec: place[plain_name(spec)] for spec in specs}

    def __getitem__(self, spec: str) -> Look:
        place = self._place.get(spec, 0)
        return Look(
            token=f"a{place % _COLOURS}",
            marker=_MARKERS[(place + place // _COLOURS) % len(_MARKERS)],  # another marker when all colours are used
            dash=_DASHES[place // _COLOURS % len(_DASHES)],
        )

    def ordered(self) -> list[str]:
        return sorted(self._place, key=lambda spec: (self._place[spec], spec))


# Order of stacking and of bars; roles that stay across steps come first.
ROLES = (
    "weight",
    "statistic",
    "optimizer_state",
    "gradient",
    "activation",
    "activation_gradient",
    "workspace",
    "input",
    "result",
)


def plain_name(spec: str) -> str:
    """The spec without values that only mirror the card, so that a strategy has the same name on every card."""
    parts = split_spec(spec)
    kept = [part for part in parts.parameters.split(", ") if part and part.partition("=")[0] not in _OF_THE_CARD]
    return f"{parts.name}({','.join(kept)})" if kept else parts.name


def role_token(role: str) -> str:
    return f"r{ROLES.index(role)}" if role in ROLES else "r8"


def role_name(role: str) -> str:
    return role.replace("_", " ")


@dataclass(frozen=True)
class SpecText:
    """`bfc(growth=on)` split for reading: the name stands out, the parameters follow."""

    text: str
    name: str
    parameters: str


def split_spec(spec: str) -> SpecText:
    """In a chain of adaptors, "limit(4GiB)|caching(x=1)", the last element, the allocator, stands out."""
    *before, last = _links(spec)
    match = re.fullmatch(r"\s*([^()]*)\((.*)\)\s*", last, re.DOTALL)
    if match and _balanced(match[2]):
        name, parameters = match[1], match[2].replace(",", ", ")
    else:
        name, parameters = last, ""
    if before:
        parameters = ", ".join(part for part in (parameters, f"behind {' | '.join(before)}") if part)
    return SpecText(spec, name, parameters)


def _links(spec: str) -> list[str]:
    """Splits at every "|" that is not inside parentheses."""
    links, depth = [""], 0
    for character in spec:
        depth += (character == "(") - (character == ")")
        if character == "|" and depth == 0:
            links.append("")
        else:
            links[-1] += character
    return links


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def readable(spec: str) -> str:
    """The spec as one text in which a line may break."""
    parts = split_spec(spec)
    return f"{parts.name} ({parts.parameters})" if parts.parameters else parts.name
