"""Who is drawn how: one colour, marker and dash per allocator, the same in every chart and table.

Colours are names of CSS variables (templates/style.css), so that charts follow light and dark.
Hues after Okabe and Ito, "Color Universal Design" (2008), toned down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Places given for good, so that a strategy looks the same in every report. Others follow in
# alphabetical order.
_FIXED = {
    "bfc": 0,
    "bfc(growth=off)": 0,
    "bfc(growth=on)": 1,
    "malloc": 2,
    "caching": 3,
    "planned": 4,
}
_COLOURS = 8
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
_DASHES = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))


@dataclass(frozen=True)
class Look:
    token: str  # CSS variable
    marker: str  # of matplotlib
    dash: tuple[float, ...]


class AllocatorLooks:
    """Assigns looks over all allocators of one run."""

    def __init__(self, specs: set[str]) -> None:
        self._place = {spec: _FIXED[spec] for spec in specs if spec in _FIXED}
        free = len(set(_FIXED.values()))
        for spec in sorted(specs - set(self._place)):
            self._place[spec] = free
            free += 1

    def __getitem__(self, spec: str) -> Look:
        place = self._place.get(spec, 0)
        return Look(
            token=f"a{place % _COLOURS}",
            marker=_MARKERS[place % len(_MARKERS)],
            dash=_DASHES[place // _COLOURS % len(_DASHES)],
        )

    def ordered(self) -> list[str]:
        return sorted(self._place, key=lambda spec: (self._place[spec], spec))


# Order of stacking and of bars: what stays across steps first.
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
    match = re.fullmatch(r"\s*([^()]*)\((.*)\)\s*", spec, re.DOTALL)
    if not match:
        return SpecText(spec, spec, "")
    return SpecText(spec, match[1], match[2].replace(",", ", "))
