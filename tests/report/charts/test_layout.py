"""Segments, blocks and holes at a moment of a trace."""

from __future__ import annotations

import random
from typing import Any

from fixture import cell_of
from fixture_recording import MIB, record, trace_of

from reports.charts.palette import AllocatorLooks
from reports.charts.segments import ROWS, segments_chart
from reports.charts.sizes import sizes_chart
from reports.data import trace
from reports.data.layout import Layout, layout_at

LOOK = AllocatorLooks({"bfc"})["bfc"]


def at_peak(batch: int = 4) -> tuple[Layout, trace.Timeline]:
    content = trace_of(record(batch, 1024 * MIB, True, None), cell_of("meta", batch, "bfc"))
    timeline = trace.follow(content.header, content.op_names, content.columns)
    assert timeline.layout is not None
    return timeline.layout, timeline


def events(*rows: tuple[str, int, int, int]) -> tuple[list[str], list[str], dict[str, Any]]:
    """The columns of a trace, from rows of kind, id, address and size."""
    kinds, ids, addresses, sizes = zip(*rows)
    return list(kinds), ["weight"] * len(rows), {"id": ids, "address": addresses, "size_bytes": sizes}


def parts(layout: Layout | None) -> list[list[tuple[int, int, str]]]:
    assert layout is not None
    return [[(part.address, part.size, part.role) for part in segment.parts] for segment in layout.segments]


def test_blocks_and_holes_fill_the_segments_and_add_up_to_the_ledger() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    layout, timeline = at_peak(random.Random(seed).randrange(1, 64))
    assert sum(segment.size for segment in layout.segments) == timeline.reserved[timeline.peak]
    assert sum(block.size for block in layout.blocks) == timeline.allocated[timeline.peak]
    for segment in layout.segments:
        at = segment.address
        for part in segment.parts:
            assert part.address == at
            at += part.size
        assert at == segment.address + segment.size


def test_a_hole_stands_between_blocks_and_at_the_end() -> None:
    rows = [("segment_alloc", 1, 100, 50), ("alloc", 1, 100, 10), ("alloc", 2, 110, 10), ("alloc", 3, 120, 10)]
    layout = layout_at(*events(*rows, ("free", 2, 110, 10)), 4)
    assert parts(layout) == [[(100, 10, "weight"), (110, 10, ""), (120, 10, "weight"), (130, 20, "")]]


def test_pages_mapped_side_by_side_are_one_segment_and_may_go_in_part() -> None:
    rows = [("segment_map", 1, 0, 20), ("segment_map", 1, 20, 20), ("alloc", 1, 15, 10)]
    assert parts(layout_at(*events(*rows), 2)) == [[(0, 15, ""), (15, 10, "weight"), (25, 15, "")]]
    layout = layout_at(*events(*rows, ("segment_unmap", 1, 30, 5)), 3)
    assert parts(layout) == [[(0, 15, ""), (15, 10, "weight"), (25, 5, "")], [(35, 5, "")]]


def test_segments_side_by_side_stay_two() -> None:
    layout = layout_at(*events(("segment_alloc", 1, 0, 20), ("segment_alloc", 2, 20, 20)), 1)
    assert parts(layout) == [[(0, 20, "")], [(20, 20, "")]]


def test_addresses_that_contradict_each_other_are_not_drawn() -> None:
    segment = ("segment_alloc", 1, 0, 50)
    assert layout_at(*events(segment, ("alloc", 1, 45, 10)), 1) is None
    assert layout_at(*events(segment, ("alloc", 1, 0, 10), ("alloc", 2, 5, 10)), 2) is None
    assert layout_at(*events(segment, ("segment_free", 1, 70, 10)), 1) is None


def test_the_map_shows_every_role_that_fills_a_stripe_and_counts_all_holes() -> None:
    layout, _ = at_peak(32)
    chart = segments_chart("m", layout, budget=400)
    stripe = sum(segment.size for segment in layout.segments) / (ROWS * 200)
    shown = {item.label for item in chart.legend}
    for block in layout.blocks:
        if block.size >= 2 * stripe:
            assert block.role.replace("_", " ") in shown
    assert f"{len(layout.holes):,} hole" in chart.note
    holes = sum(row[2].sort for row in chart.table.rows if "hole" in row[0].text)
    assert holes == sum(hole.size for hole in layout.holes)


def test_the_histogram_counts_every_block_and_hole_once() -> None:
    layout, _ = at_peak()
    chart = sizes_chart("s", layout, LOOK)
    assert chart is not None
    assert sum(row[1].sort for row in chart.table.rows) == len(layout.blocks)
    assert sum(row[4].sort for row in chart.table.rows) == sum(hole.size for hole in layout.holes)
