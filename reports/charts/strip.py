"""A finding as a picture of one line: measured beside claimed, or a square for each case. It shows only what the
sentence beside it says, so screen readers skip it."""

from __future__ import annotations

from typing import Sequence

from markupsafe import Markup

from reports.charts.effect import reach
from reports.charts.evidence import Claimed, Point

_WIDTH, _HEIGHT, _EDGE = 120, 22, 6
_SIDE = 12  # of a square


def tally(answers: Sequence[bool]) -> Markup:
    """A square for each case, filled if its answer is yes. Many squares are drawn smaller."""
    width = max(_WIDTH, 2 * _EDGE + len(answers) * (_SIDE + 4))
    squares = (
        f'<rect x="{_EDGE + place * (_SIDE + 4)}" y="{(_HEIGHT - _SIDE) / 2}" width="{_SIDE}" height="{_SIDE}" rx="2" '
        f'fill="var(--{"accent" if answer else "surface"})" stroke="var(--accent)"/>'
        for place, answer in enumerate(answers)
    )
    return Markup(f'<svg class="strip" viewBox="0 0 {width} {_HEIGHT}" aria-hidden="true">{"".join(squares)}</svg>')


def strip(points: Sequence[Point], claimed: Claimed | None) -> Markup:
    low, high = reach(points, claimed)
    middle = _HEIGHT / 2

    def x(value: float) -> float:
        inside = min(max(value, low), high)
        return round(_EDGE + (inside - low) / (high - low) * (_WIDTH - 2 * _EDGE), 1)

    parts = [f'<svg class="strip" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">']
    if claimed and (claimed.low is not None or claimed.high is not None):
        left = x(low if claimed.low is None else claimed.low)
        right = x(high if claimed.high is None else claimed.high)
        width = max(2, round(right - left, 1))
        parts.append(f'<rect x="{left}" y="2" width="{width}" height="{_HEIGHT - 4}" fill="var(--accepted)"/>')
    parts.append(f'<path d="M{_EDGE} {middle}H{_WIDTH - _EDGE}" stroke="var(--faint)"/>')
    parts.append(f'<path d="M{x(0)} 4V{_HEIGHT - 4}" stroke="var(--faint)"/>')
    if claimed and claimed.value is not None:
        parts.append(f'<path d="M{x(claimed.value)} 1V{_HEIGHT - 1}" stroke="var(--claim)" stroke-width="2"/>')
    marks = dict.fromkeys((x(point.effect), point.simulated) for point in points if point.effect is not None)
    for place, simulated in marks:
        fill = "var(--surface)" if simulated else "var(--accent)"
        parts.append(f'<circle cx="{place}" cy="{middle}" r="3" fill="{fill}" stroke="var(--accent)"/>')
    return Markup("".join(parts) + "</svg>")
