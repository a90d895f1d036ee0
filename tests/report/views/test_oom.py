"""What the page says of cells that ran out of memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from fixture import cell_of, sample_of
from fixture_failure import report_of, scattered
from fixture_recording import MIB, write_trace

from reports.charts.palette import AllocatorLooks
from reports.data import trace
from reports.data.failure import least_in_the_way
from reports.data.layout import Block, Layout, Segment
from reports.views.oom import MAXIMUM_TOLD, OutOfMemories, build_oom

DEVICE = "meta(capacity=64MiB)"


def failed(place: Path, allocator: str = "bfc", **changes: Any) -> dict[str, Any]:
    sample = sample_of(cell_of(DEVICE, 4, allocator), "made/up", allocator, 0, status="oom", oom=report_of())
    sample.update({"trace_file": "failure.hrtrace", **changes})
    write_trace(scattered(), place / "failure.hrtrace")
    return sample


def ran(allocator: str) -> dict[str, Any]:
    return sample_of(cell_of(DEVICE, 4, allocator), "made/up", allocator, 0)


def build(place: Path, *samples: dict[str, Any]) -> OutOfMemories:
    return build_oom(place, samples, [], AllocatorLooks({sample["cell"]["allocator"] for sample in samples}))


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def test_the_request_is_named_by_op_role_phase_and_step(tmp_path: Path) -> None:
    (told,) = build(tmp_path, failed(tmp_path)).told
    assert plain(told.sentence) == "A request for 18 MiB failed: head.linear (activation), forward of step 1."


def test_enough_room_in_pieces_is_told_with_the_blocks_that_part_it(tmp_path: Path) -> None:
    (told,) = build(tmp_path, failed(tmp_path)).told
    assert plain(told.cause) == "Free memory was too fragmented: 20 MiB of the reserved memory were free, but the largest hole was 12 MiB."
    assert plain(told.in_the_way) == "The smallest obstacle was 4 MiB stem.conv (activation)."
    assert told.chart is not None and told.chart.title == "Segments when it failed"


def test_what_no_allocator_could_have_served_is_told_so(tmp_path: Path) -> None:
    (told,) = build(tmp_path, failed(tmp_path, oom=report_of(capacity=50))).told
    assert "exceed the capacity by 12 MiB" in plain(told.cause) and "No allocator could have served it" in told.cause


def test_what_rounding_and_untaken_room_cost_is_told(tmp_path: Path) -> None:
    (told,) = build(tmp_path, failed(tmp_path, oom=report_of(free=10, hole=6, capacity=80))).told
    for words in ("44 MiB of 80 MiB", "added 10 MiB", "10 MiB were free but unusable", "16 MiB were not reserved"):
        assert words in plain(told.cause), words


def test_who_held_the_same_steps_is_named_and_who_did_not(tmp_path: Path) -> None:
    samples = [failed(tmp_path), failed(tmp_path, "malloc"), ran("planned"), ran("caching")]
    (told,) = [item for item in build(tmp_path, *samples).told if item.strategy.name == "bfc"]
    assert told.served == "The same steps ran on this device with planned, caching. Also out of memory: malloc."


def test_without_its_trace_the_figures_of_the_sample_are_shown(tmp_path: Path) -> None:
    (told,) = build(tmp_path, failed(tmp_path, trace_file=None)).told
    assert plain(told.sentence) == "A request for 18 MiB failed."
    assert told.chart is None and told.command == ""
    assert dict(told.facts)["largest free hole"].sort == 12 * MIB


def test_each_cell_is_told_once_and_further_ones_have_a_row(tmp_path: Path) -> None:
    names = [f"strategy{number}" for number in range(MAXIMUM_TOLD + 3)]
    found = build(tmp_path, *(failed(tmp_path, name, block=block) for name in names for block in (0, 1)))
    assert len(found.told) == MAXIMUM_TOLD and found.rest is not None and len(found.rest.rows) == 3
    assert found.count == len(names)


def test_the_command_replays_the_trace_at_the_same_capacity(tmp_path: Path) -> None:
    (told,) = build(tmp_path, failed(tmp_path)).told
    assert told.command == f"headroom replay failure.hrtrace --capacity {64 * MIB}"


def test_the_live_bytes_are_those_at_the_failure(tmp_path: Path) -> None:
    content = scattered()
    failure = trace.follow(content.header, content.op_names, content.columns).failure
    assert failure is not None and failure.live == 44 * MIB


def test_what_is_least_in_the_way_is_what_trying_every_stretch_finds() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(300):
        segments = []
        for number in range(rng.randrange(1, 4)):
            at = number * 10_000
            parts = []
            for _ in range(rng.randrange(1, 9)):
                parts.append(Block(at, rng.randrange(1, 20), rng.choice(["", "weight"])))
                at += parts[-1].size
            segments.append(Segment(number * 10_000, at - number * 10_000, parts))
        wanted = rng.randrange(1, 60)
        stretches = [
            segment.parts[first:last]
            for segment in segments
            for first in range(len(segment.parts))
            for last in range(first + 1, len(segment.parts) + 1)
        ]
        costs = [sum(p.size for p in parts if p.role) for parts in stretches if sum(p.size for p in parts) >= wanted]
        found = least_in_the_way(Layout(segments), wanted)
        assert sum(block.size for block in found) == min(costs, default=0)
