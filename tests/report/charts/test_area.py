"""The area of a chart: where things are drawn in it."""

from __future__ import annotations

import re

from reports.charts.area import Area
from reports.charts.style import Drawing
from reports.charts.svg import to_svg
from reports.render import stylesheet


def drawn(area: Area) -> str:
    return to_svg(area.drawing, "chart", "title", "description")


def texts(svg: str) -> dict[str, tuple[float, float]]:
    """Text → its place in the viewBox."""
    found = re.findall(r'<text[^>]*x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<', svg)
    return {text: (float(x), float(y)) for x, y, text in found}


def area_of(height: float = 100) -> Area:
    return Area(Drawing(height, 200), 50, 10, 30, 20)


def test_data_are_where_the_limits_say_also_if_these_are_set_afterwards() -> None:
    area = area_of()
    area.text(5, 2, "here", "ink")
    area.bars([(0, 0, 5, 2)], "a0")
    area.set_xlim(0, 10)
    area.set_ylim(0, 4)
    svg = drawn(area)
    assert texts(svg)["here"] == (110, 45)
    assert 'd="M50 80H110V45H50' in svg


def test_events_of_one_moment_are_drawn_in_the_middle() -> None:
    area = area_of()
    area.set_xlim(7, 7)
    area.text(7, 0, "here", "ink")
    assert texts(drawn(area))["here"] == (110, 80)
    assert '"x":[110]' in area.hover([7], ["moment"], [])


def test_a_value_of_zero_has_no_unit_and_its_label_ends_left_of_the_area() -> None:
    area = area_of()
    area.set_ylim(0, 2)
    area.yticks([0, 1, 2], lambda value: f"{value} MiB")
    places = texts(drawn(area))
    assert set(places) == {"0", "1 MiB", "2 MiB"}
    assert {x for x, _ in places.values()} == {44} and places["0"][1] > places["1 MiB"][1] > places["2 MiB"][1]


def test_what_runs_across_is_told_below_the_labels_of_ticks() -> None:
    area = area_of()
    area.xticks([0, 1], ["first", "last"])
    area.caption("step", pad=2)
    places = texts(drawn(area))
    assert places["first"][1] == places["last"][1] < places["step"][1] - 10


def test_text_over_curves_has_a_halo_that_the_style_sheet_draws() -> None:
    area = area_of()
    area.text(0.5, 0.5, "peak", "ink", halo=True)
    area.text(0.5, 0.5, "beside", "ink")
    assert re.findall(r'class="halo"[^>]*>(\w+)<', drawn(area)) == ["peak"]
    assert ".chart .halo {" in stylesheet()
