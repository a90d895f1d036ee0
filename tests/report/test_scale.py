"""A run of many cells has a page of bounded size, which says what it leaves out."""

from __future__ import annotations

import re

import pytest
from fixture import write_fixture

from reports import view_cells, view_compare, view_matrix
from reports.read import read_run
from reports.render import render


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = write_fixture(tmp_path_factory.mktemp("run"), batches=(1, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_cells, "_MANY_CELLS", 3)
        patch.setattr(view_cells, "_CHARTED", (40, 2))
        patch.setattr(view_cells, "_DETAILED", (120, 4))
        patch.setattr(view_compare, "MAXIMUM_CELLS", 3)
        patch.setattr(view_matrix, "_MAXIMUM_ROWS", 5)
        patch.setattr(view_matrix, "_MAXIMUM_FIGURES", 30)
        return render(read_run(directory))


def test_measured_cells_keep_their_charts_and_the_page_counts_them(page: str) -> None:
    cells = page.split('<details class="cell"')[1:]
    charted = [cell for cell in cells if 'class="chart"' in cell]
    assert len(charted) == 2 and all("host" in cell.split("</summary>")[0] for cell in charted)
    assert f"2 of {len(cells)} cells have charts." in page


def test_cells_beyond_that_keep_ladder_or_line_and_say_so(page: str) -> None:
    cells = page.split('<details class="cell"')[1:]
    assert sum('class="ladder"' in cell for cell in cells) <= 4
    for cell in cells:
        assert 'class="ladder"' in cell or "this is not among them" in cell or "<b>" in cell


def test_lists_and_selectors_say_how_much_they_show(page: str) -> None:
    entries = re.search(r"All figures as a list \(5 of (\d+) entries\)", page)
    assert entries is not None and f"5 of {entries[1]} shown" in page
    assert len(re.findall("<tr>", page[page.index('id="matrix-data"') :].split("</tbody>")[0])) == 6
    assert re.search(r"3 of \d+ cells can be chosen here", page)
    assert re.search(r"3 of \d+ figures can be chosen here", page)
