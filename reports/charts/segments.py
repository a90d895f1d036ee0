"""The segments at one moment, end to end, with their blocks by role and their holes."""

from __future__ import annotations

import math
from typing import Sequence

import numpy
from matplotlib.path import Path

from reports.charts.area import Area
from reports.charts.palette import ROLES, role_name, role_token
from reports.charts.style import Chart, Datum, Drawing, LegendItem, Table, bytes_datum, colour
from reports.charts.svg import to_svg
from reports.data import units
from reports.data.layout import Block, Layout

ROWS = 8
_HOLE = "band"
_LISTED = 10  # holes and segments in the table


def segments_chart(chart_id: str, layout: Layout, *, budget: int, when: str = "at the peak") -> Chart:
    """`budget`: about how many stripes are drawn."""
    title = f"Segments {when}"
    total = sum(segment.size for segment in layout.segments)
    columns = max(40, min(220, budget // 2))
    stripe = total / (ROWS * columns)
    owners = _owners(layout, total, columns * ROWS)
    drawing = Drawing(24 * ROWS + 12)
    area = Area(drawing, 78, 6, 6, 6, floor=False)
    area.set_xlim(0, columns)
    area.set_ylim(ROWS, 0)
    starts = [units.bytes_(row * stripe * columns) if row else "0" for row in range(ROWS)]
    area.yticks([row + 0.5 for row in range(ROWS)], starts, grid=False)
    for owner in dict.fromkeys(owners):
        path = _stripes(owners, owner, columns)
        area.fill(path, role_token(owner) if owner else _HOLE)
    edges = _segment_edges(layout, stripe, columns)
    if edges is not None:
        area.plot(*edges, color=colour("surface"), linewidth=1.2)
    roles = [role for role in (*ROLES, *sorted(set(owners) - set(ROLES))) if role and role in owners]
    holes = sorted(layout.holes, key=lambda hole: -hole.size)
    free = sum(hole.size for hole in holes)
    words = f"{len(layout.segments):,} segment{'s' if len(layout.segments) > 1 else ''}, {units.bytes_(total)}, with "
    words += (
        f"{len(holes):,} hole{'s' if len(holes) > 1 else ''}, {units.bytes_(free)} together, the largest "
        f"{units.bytes_(holes[0].size)}."
        if holes
        else "no hole."
    )
    note = words + f" One stripe is {units.bytes_(stripe)} and shows what most of it is"
    if len(layout.segments) > 1:
        note += "; lines part segments" if edges is not None else "; there are too many segments for lines between them"
    note += "."
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, words),
        _table(layout, holes),
        [LegendItem(role_name(role), role_token(role), "block") for role in roles] + [LegendItem("hole", _HOLE, "band")],
        note=note,
    )


def _owners(layout: Layout, total: int, stripes: int) -> list[str]:
    """The role with the most bytes of each stripe; "" for a hole."""
    names = sorted({block.role for block in layout.blocks})
    share = numpy.zeros((len(names) + 1, stripes))
    at = 0.0
    for segment in layout.segments:
        for part in segment.parts:
            row = names.index(part.role) + 1 if part.role else 0
            start, end = at * stripes / total, (at + part.size) * stripes / total
            first, last = int(start), min(int(end), stripes - 1)
            if first == last:
                share[row, first] += end - start
            else:
                share[row, first] += first + 1 - start
                share[row, first + 1 : last] += 1
                share[row, last] += end - last
            at += part.size
    return [["", *names][place] for place in share.argmax(axis=0)]


def _stripes(owners: Sequence[str], owner: str, columns: int) -> Path:
    """All stripes of one owner as one path: neighbours in a row are one rectangle."""
    vertices: list[tuple[float, float]] = []
    codes: list[int] = []
    for row in range(ROWS):
        start = None
        for column in range(columns + 1):
            own = column < columns and owners[row * columns + column] == owner
            if own and start is None:
                start = column
            elif not own and start is not None:
                corners = [(start, row + 0.08), (column, row + 0.08), (column, row + 0.92), (start, row + 0.92)]
                vertices += [*corners, corners[0]]
                codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
                start = None
    return Path(vertices, codes)


def _segment_edges(layout: Layout, stripe: float, columns: int) -> tuple[list[float], list[float]] | None:
    """A line with a gap after each edge. No lines if they would hide what they separate."""
    if len(layout.segments) > columns or len(layout.segments) < 2:
        return None
    across: list[float] = []
    down: list[float] = []
    at = 0
    for segment in layout.segments[:-1]:
        at += segment.size
        row, column = divmod(at / stripe, columns)
        across += [column] * 3
        down += [row + 0.02, row + 0.98, math.nan]
    return across, down


def _table(layout: Layout, holes: Sequence[Block]) -> Table:
    """The largest segments and holes; a page could not hold all of them."""
    rows = []
    segments = sorted(layout.segments, key=lambda segment: -segment.size)
    for kind, parts in (("segment", segments), ("hole", holes)):
        for part in parts[:_LISTED]:
            rows.append((Datum(kind), Datum(f"{part.address:#x}", sort=part.address), bytes_datum(part.size)))
        if len(parts) > _LISTED:
            rest = sum(part.size for part in parts[_LISTED:])
            rows.append((Datum(f"{len(parts) - _LISTED:,} more {kind}s"), Datum(""), bytes_datum(rest)))
    return Table(("what", "address", "size"), rows)
