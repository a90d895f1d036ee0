"""The matrix: what stands side by side, and what is compared with what."""

from __future__ import annotations

import json
from typing import Any

from fixture import cell_of

from reports.charts.palette import AllocatorLooks
from reports.views.matrix import DeviceTable, Matrix, build_matrix

PEAK = "reserved_bytes.overall_peak"


def entry(allocator: str, bytes_: int | None, arm: str = "", **cell: Any) -> dict[str, Any]:
    made = cell_of("meta(card=v100)", 16, allocator, **cell)
    made["cell_id"] += repr(cell)
    return {
        "experiment": "made/up", "arm": arm or allocator, "cell": made, "status": "ok", "reason": None, "samples": 2,
        "values": {} if bytes_ is None else {PEAK: bytes_}, "intervals": {}, "baseline_arm": None, "comparisons": {},
    }  # fmt: skip


def build(*entries: dict[str, Any]) -> Matrix:
    return build_matrix(entries, AllocatorLooks({item["cell"]["allocator"] for item in entries}))


def headers(table: DeviceTable) -> list[str]:
    return [name.text for name, _ in table.columns]


def ratios(table: DeviceTable) -> list[list[str]]:
    return [[cell.figures[0].ratio if cell else "" for cell in row.cells] for row in table.rows]


def test_allocators_stand_side_by_side() -> None:
    (table,) = build(entry("malloc", 2, optimizer="adam"), entry("caching", 1, optimizer="adam")).tables
    assert headers(table) == ["malloc", "caching"]
    assert ratios(table) == [["2×", ""]]


def test_where_there_is_one_allocator_the_axis_of_most_choices_stands_side_by_side() -> None:
    cells = [
        entry("bfc", 8 >> place, f"{checkpointing}-{optimizer}", checkpointing=checkpointing, optimizer=optimizer)
        for place, checkpointing in enumerate((None, "sqrt", "recursive"))
        for optimizer in ("sgd", "adam")
    ]
    (table,) = build(*cells).tables
    assert headers(table) == ["none", "sqrt", "recursive"]
    assert [row.extra for row in table.rows] == ["optimizer sgd", "optimizer adam"]
    assert ratios(table) == [["", "0.5×", "0.25×"]] * 2
    assert "allocator bfc" in table.shared and "checkpointing side by side" in table.shared


def test_a_single_figure_has_no_ratio() -> None:
    assert ratios(build(entry("bfc", 1)).tables[0]) == [[""]]
    assert ratios(build(entry("bfc", 1), entry("malloc", None)).tables[0])[0] == ["", ""]


def test_what_the_script_shows_is_what_the_page_shows() -> None:
    matrix = build(entry("bfc", 2**29), entry("malloc", 2**30), entry("caching", None))
    packed = json.loads(matrix.data)
    figures = [cell.figures[0] for table in matrix.tables for cell in table.known_cells]
    assert len(packed["metrics"][PEAK]) == len(figures) == 3
    for shown, fields in zip(figures[:2], packed["metrics"][PEAK]):
        assert (*fields, None, "", "")[:4] == (shown.text, shown.exact, shown.heat, shown.ratio)
    assert packed["metrics"][PEAK][2] == 0


def test_the_ratio_is_to_the_default_of_a_framework_and_not_to_the_best() -> None:
    (table,) = build(entry("malloc", 1), entry("bfc(growth=off,reserve=1050MiB)", 8), entry("caching", 2)).tables
    assert (table.reference, table.whose) == ("caching", "PyTorch's default")
    assert dict(zip(headers(table), ratios(table)[0])) == {"malloc": "0.5×", "bfc(growth=off,reserve=1050MiB)": "4×", "caching": ""}
    (table,) = build(entry("malloc", 1), entry("bfc(growth=off,reserve=1050MiB)", 8)).tables
    assert table.whose == "TensorFlow's default"


def test_without_a_default_the_ratio_is_to_the_baseline_of_the_experiment() -> None:
    cells = [{**entry("pool", 2), "baseline_arm": "malloc"}, {**entry("malloc", 4), "baseline_arm": "malloc"}]
    (table,) = build(*cells).tables
    assert table.reference == "malloc"
    assert dict(zip(headers(table), ratios(table)[0])) == {"malloc": "", "pool": "0.5×"}


def test_only_what_ran_out_of_memory_is_marked_so() -> None:
    failed = [{**entry(name, None), "status": status} for name, status in (("bfc", "oom"), ("malloc", "timeout"))]
    (table,) = build(*failed, entry("caching", 1)).tables
    cells = dict(zip(headers(table), table.rows[0].cells))
    assert [name for name, cell in cells.items() if cell and cell.oom] == ["bfc"]
