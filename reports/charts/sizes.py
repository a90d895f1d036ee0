"""Bytes by block size at the peak, and by size of the holes beside the blocks."""

from __future__ import annotations

from typing import Sequence

from reports.charts.area import Area
from reports.charts.palette import Look
from reports.charts.style import Chart, Datum, Drawing, LegendItem, Table, bytes_datum
from reports.charts.svg import to_svg
from reports.data import units
from reports.data.layout import Block, Layout


def sizes_chart(chart_id: str, layout: Layout, look: Look) -> Chart | None:
    """Size classes run from one power of two, included, to the next. None without blocks."""
    if not layout.blocks:
        return None
    blocks, holes = _classes(layout.blocks), _classes(layout.holes)
    present = range(min([*blocks, *holes]), max([*blocks, *holes]) + 1)
    title = "Sizes of blocks and holes at the peak"
    drawing = Drawing(20 * len(present) + 34)
    area = Area(drawing, 78, 4, 116, 26, floor=False)
    area.set_ylim(len(present) - 0.4, -0.6)
    top = max(sum(sizes) for classes in (blocks, holes) for sizes in classes.values())
    area.set_xlim(0, top)
    area.yticks(range(len(present)), [units.bytes_(2**power) for power in present], grid=False)
    for classes, token, offset in ((blocks, look.token, -0.19), (holes, "faint", 0.19)):
        area.bars(
            [(0, row + offset - 0.16, sum(classes[power]), row + offset + 0.16)
             for row, power in enumerate(present) if power in classes],
            token,
        )  # fmt: skip
    rows = []
    for row, power in enumerate(present):
        own, free = blocks.get(power, []), holes.get(power, [])
        if own or free:
            area.text(1.015, row, f"{len(own):,} · {len(free):,}", "muted", transform=area.by_y, va="center")
        rows.append(
            (
                Datum(f"{units.bytes_(2**power)} up to {units.bytes_(2 ** (power + 1))}", sort=power),
                Datum(f"{len(own):,}", sort=len(own)),
                bytes_datum(sum(own)),
                Datum(f"{len(free):,}", sort=len(free)),
                bytes_datum(sum(free)),
            )
        )
    area.text(1.015, len(present) - 0.05, "blocks · holes", "muted", transform=area.by_y, va="center")
    largest = max(blocks, key=lambda power: sum(blocks[power]))
    description = (
        f"Most bytes are in blocks from {units.bytes_(2**largest)} to {units.bytes_(2 ** (largest + 1))}: "
        f"{units.bytes_(sum(blocks[largest]))} in {len(blocks[largest])} blocks."
    )
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, description),
        Table(("size", "live blocks", "their bytes", "holes", "their bytes"), rows),
        [LegendItem("bytes in live blocks", look.token, "block"), LegendItem("bytes in holes", "faint", "block")],
        note=f"Bars are bytes; the longest is {units.bytes_(top)}. Figures at the right count blocks and holes.",
    )


def _classes(parts: Sequence[Block]) -> dict[int, list[int]]:
    classes: dict[int, list[int]] = {}
    for part in parts:
        if part.size > 0:
            classes.setdefault(part.size.bit_length() - 1, []).append(part.size)
    return classes
