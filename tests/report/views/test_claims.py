"""A claim on the page: which part is open, and how its configurations are drawn."""

from __future__ import annotations

from typing import Any

from fixture import cell_of
from fixture_verdicts import claim_of, evidence_of, part_of, verdict_of

from reports.charts.evidence import ArmIndex
from reports.charts.palette import AllocatorLooks
from reports.views.claims import ClaimView, build_claims

PEAK = "reserved_bytes.overall_peak"
BATCHES = (1, 2, 4)


def evidence() -> list[dict[str, Any]]:
    return [evidence_of(f"X/meta/batch={batch}", PEAK, "B", (2**30, 2**29), 0) for batch in BATCHES]


def build(parts: list[dict[str, Any]], allocators: tuple[str, str] = ("bfc(growth=off)", "bfc(growth=on)")) -> ClaimView:
    records = [
        {"experiment": f"X/meta/batch={batch}", "arm": arm, "cell": cell_of("meta(card=v100)", batch, allocator)}
        for batch in BATCHES
        for arm, allocator in zip(("preallocate", "growth"), allocators)
    ]
    claim = claim_of("X", "t", "s", "REFUTED", parts)
    (view,) = build_claims([claim], ArmIndex(records, []), AllocatorLooks(set(allocators)))
    return view


def part(name: str, relation: str) -> dict[str, Any]:
    return part_of(name, "t", (None, None, None, -1), [verdict_of("meta", "REFUTED", "w", evidence(), relation=relation)])


def opened(view: ClaimView) -> list[str]:
    return [item.name for item in view.parts if item.decides]


def test_the_open_part_is_the_first_that_is_no_analogue() -> None:
    assert opened(build([part("first", "analogue"), part("second", "own"), part("third", "own")])) == ["second"]
    assert opened(build([part("first", "analogue"), part("second", "analogue")])) == ["first"]


def test_arms_of_one_allocator_are_told_apart_in_their_chart() -> None:
    for allocators in (("bfc", "bfc"), ("bfc", "malloc")):
        (chart,) = build([part("p", "own")], allocators).parts[0].charts
        arms = [item for item in chart.legend if item.label in ("preallocate", "growth")]
        assert len(arms) == 2 and len({(item.token, item.marker) for item in arms}) == 2
