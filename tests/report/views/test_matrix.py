"""The matrix: what stands side by side, and what is compared with what."""

from __future__ import annotations

import json
import re
from typing import Any

from fixture import cell_of
from fixture_verdicts import comparison_of

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
    assert ratios(table) == [["2× best", "best"]]


def test_where_there_is_one_allocator_the_axis_of_most_choices_stands_side_by_side() -> None:
    cells = [
        entry("bfc", 8 >> place, f"{checkpointing}-{optimizer}", checkpointing=checkpointing, optimizer=optimizer)
        for place, checkpointing in enumerate((None, "sqrt", "recursive"))
        for optimizer in ("sgd", "adam")
    ]
    (table,) = build(*cells).tables
    assert headers(table) == ["none", "sqrt", "recursive"]
    assert [row.extra for row in table.rows] == ["optimizer sgd", "optimizer adam"]
    assert ratios(table) == [["4× best", "2× best", "best"]] * 2
    assert "allocator bfc" in table.shared and "checkpointing side by side" in table.shared


def test_of_a_single_figure_there_is_no_best() -> None:
    assert ratios(build(entry("bfc", 1)).tables[0]) == [[""]]
    assert ratios(build(entry("bfc", 1), entry("malloc", None)).tables[0])[0] == ["", ""]


def test_what_the_script_shows_is_what_the_page_shows() -> None:
    worse = {**entry("malloc", 2**30), "comparisons": {PEAK: comparison_of(0.5, 0.0)}, "baseline_arm": "bfc"}
    matrix = build(entry("bfc", 2**29), worse, entry("caching", None))
    packed = json.loads(matrix.data)
    figures = [cell.figures[0] for table in matrix.tables for cell in table.known_cells]
    assert len(packed["metrics"][PEAK]) == len(figures) == 3
    for shown, (text, exact, heat, ratio, *rest) in zip(figures[:2], packed["metrics"][PEAK]):
        assert (text, exact, heat, ratio) == (shown.text, shown.exact, shown.heat, shown.ratio)
        assert rest == (["", shown.word.word, shown.effect] if shown.word else [])
    assert packed["metrics"][PEAK][2] == 0
    assert set(packed["words"]) == {figure.word.word for figure in figures if figure.word}


def test_names_cannot_end_the_element_the_figures_lie_in() -> None:
    hostile = {**entry("malloc", 1), "comparisons": {PEAK: {**comparison_of(0.5, 0.0), "verdict": "</script>"}}}
    data = build(entry("bfc", 1), hostile).data
    assert "</script>" in json.loads(data)["words"] and not re.search("</script", data)
