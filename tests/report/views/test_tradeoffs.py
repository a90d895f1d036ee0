"""Memory against speed, and how far each strategy got."""

from __future__ import annotations

import math
import re
from typing import Any

from fixture import cell_of
from fixture_verdicts import comparison_of

from reports.charts.palette import AllocatorLooks
from reports.views.tradeoffs import TradeOffs, build_tradeoffs

GIB = 2**30
HOST = "host(capacity=4GiB)"


def entry(
    allocator: str, gib: float, speed: float, spread: float | None = 0.01, *, slower: float | None = None, **cell: Any
) -> dict[str, Any]:
    """`slower`: paired change of step time against the baseline, which is malloc."""
    compared = {} if slower is None else {"steady_step_time_ns": comparison_of(math.log1p(slower), 0.01)}
    interval = None if spread is None else [speed * (1 - spread), speed * (1 + spread)]
    made = cell_of(HOST, 16, allocator, **cell)
    made["cell_id"] += repr(cell)
    return {
        "experiment": "made/up", "arm": allocator, "cell": made, "status": "ok", "reason": None, "samples": 10,
        "values": {"reserved_bytes.overall_peak": int(gib * GIB), "throughput_samples_per_s": speed},
        "intervals": {"throughput_samples_per_s": interval},
        "baseline_arm": None if allocator == "malloc" else "malloc", "comparisons": compared,
    }  # fmt: skip


def build(*entries: dict[str, Any]) -> TradeOffs:
    return build_tradeoffs([], entries, AllocatorLooks({item["cell"]["allocator"] for item in entries}))


def front(found: TradeOffs) -> set[str]:
    table = found.groups[0].table
    return {row[0].text for row in table.rows if row[-1].text == "nothing surely beats it"}


def sentence(found: TradeOffs) -> str:
    (text,) = found.groups[0].sentences
    return text.replace("\u202f", " ")


def test_who_is_surely_slower_and_no_smaller_leaves_the_front() -> None:
    assert front(build(entry("malloc", 1, 50), entry("bfc", 1, 100), entry("caching", 2, 120))) == {"bfc", "caching"}


def test_intervals_that_overlap_rank_nobody() -> None:
    assert front(build(entry("malloc", 2, 100, 0.1), entry("bfc", 1, 105, 0.1))) == {"malloc", "bfc"}


def test_without_an_interval_nobody_is_beaten() -> None:
    assert front(build(entry("malloc", 2, 50, None), entry("bfc", 1, 100))) == {"malloc", "bfc"}


def test_a_chart_without_intervals_ranks_nobody_and_says_why() -> None:
    chart = build(entry("malloc", 2, 50, None), entry("bfc", 1, 100, None)).groups[0].chart
    assert "too few for intervals" in chart.note and all("front" not in item.label for item in chart.legend)
    chart = build(entry("malloc", 2, 50), entry("bfc", 1, 40)).groups[0].chart
    assert "signed-rank intervals" in chart.note and any("front" in item.label for item in chart.legend)


def test_the_price_of_a_gibibyte_is_told_from_the_paired_comparison() -> None:
    text = sentence(build(entry("malloc", 4, 100), entry("bfc", 2, 50, slower=0.2)))
    assert "bfc takes 2 GiB (50 %) less than malloc" in text
    assert "20 % longer" in text
    assert "To save 1 GiB this costs you 10 % of step time." in text


def offloading(gib: float, speed: float, of_host: float, **more: Any) -> dict[str, Any]:
    made = entry("bfc", gib, speed, **more)
    made["values"]["offload_reserved_bytes"] = int(of_host * GIB)
    return made


def test_memory_of_the_host_is_told_beside_what_is_saved_on_the_device() -> None:
    text = sentence(build(entry("malloc", 4, 100), offloading(2, 110, 1.5, slower=-0.1)))
    assert "bfc takes 2 GiB (50 %) less than malloc on the device and 1.50 GiB more of the host" in text
    assert "costs nothing" not in text


def test_who_takes_memory_of_the_host_instead_beats_nobody_who_takes_none() -> None:
    assert front(build(entry("malloc", 4, 100), offloading(2, 120, 1.5))) == {"malloc", "bfc"}
    assert front(build(entry("malloc", 2, 120), offloading(2, 100, 1.5))) == {"malloc"}


def test_no_price_is_told_where_times_cannot_be_told_apart() -> None:
    text = sentence(build(entry("malloc", 4, 100), entry("bfc", 2, 100, slower=0.005)))
    assert "cannot tell their step times apart" in text and "costs you" not in text


def test_no_price_of_a_gibibyte_follows_from_a_few_mebibytes() -> None:
    text = sentence(build(entry("malloc", 1, 100), entry("bfc", 0.99, 50, slower=0.2)))
    assert "longer" in text and "costs you" not in text


def test_strategies_on_axes_this_page_has_never_heard_of_are_told_apart() -> None:
    found = build(
        entry("bfc", 2, 100, accumulation="none"), entry("bfc", 1, 80, accumulation="micro_batches(k=4)")
    )
    names = {row[0].text for row in found.groups[0].table.rows}
    assert names == {"bfc", "bfc · accumulation micro_batches(k=4)"}


def test_strategies_of_one_look_are_told_apart_by_numbers_that_do_not_lie_on_each_other() -> None:
    same = [entry("bfc", 1, 100 + speed, accumulation=f"micro_batches(k={speed})") for speed in (1, 2, 3)]
    chart = build(*same).groups[0].chart
    labels = [item.label for item in chart.legend if item.marker]
    assert [label.split(":")[0] for label in labels] == ["1", "2", "3"]
    places = [float(y) for y, number in re.findall(r'y="([\d.]+)">(\d)</text>', chart.svg) if number in "123"]
    assert len(places) == 3 and min(abs(a - b) for a in places for b in places if a is not b) > 10
    apart = build(entry("malloc", 1, 100), entry("bfc", 2, 50)).groups[0].chart
    assert [item.label for item in apart.legend if item.marker] == ["malloc", "bfc"]


def without_room(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "status": "oom", "values": {}, "intervals": {}}


def test_the_largest_batch_is_told_per_allocator_where_one_found_no_room() -> None:
    def at(batch: int, allocator: str) -> dict[str, Any]:
        return {**entry(allocator, 1, 1), "cell": cell_of(HOST, batch, allocator)}

    found = build(at(8, "bfc"), at(16, "bfc"), without_room(at(32, "bfc")), at(32, "caching"))
    assert found.limits.largest_batch is not None
    rows = {row[2].text: (row[3].text, row[4].text) for row in found.limits.largest_batch.rows}
    assert rows == {"bfc": ("16", "32"), "caching": ("32", "none that was tried")}
    assert build(at(8, "bfc"), at(16, "bfc")).limits.largest_batch is None


def test_the_smallest_device_is_told_in_bytes() -> None:
    def on(capacity: str, allocator: str) -> dict[str, Any]:
        return {**entry(allocator, 1, 1), "cell": cell_of(f"host(capacity={capacity})", 8, allocator)}

    found = build(on("1GiB", "bfc"), on("512MiB", "bfc"), without_room(on("256MiB", "bfc")))
    assert found.limits.smallest_device is not None
    ((*_, fitted, failed),) = found.limits.smallest_device.rows
    assert (fitted.sort, failed.sort) == (512 * 2**20, 256 * 2**20)
