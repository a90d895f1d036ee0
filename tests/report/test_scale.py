"""A run of many cells has a page of bounded size, which says what it leaves out."""

from __future__ import annotations

import json
import re

import pytest
from fixture import write_fixture

from reports.data.read import read_run
from reports.render import render
from reports.views import cells as view_cells, compare as view_compare, matrix as view_matrix


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = write_fixture(tmp_path_factory.mktemp("run"), batches=(1, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_cells, "_MANY_CELLS", 3)
        patch.setattr(view_cells, "_CHARTED", (40, 2))
        patch.setattr(view_cells, "_DETAILED", (120, 4))
        patch.setattr(view_compare, "MAXIMUM_CELLS", 3)
        patch.setattr(view_matrix, "_MAXIMUM_ROWS", 5)
        patch.setattr(view_matrix, "_MAXIMUM_LISTED", 30)
        return render(read_run(directory))


def test_measured_cells_keep_their_charts_and_the_page_counts_them(page: str) -> None:
    cells = page.split('<details class="cell"')[1:]
    charted = [cell for cell in cells if 'class="chart"' in cell]
    assert len(charted) == 2 and all("host" in cell.split("</summary>")[0] for cell in charted)
    assert f"2 of {len(cells)} configurations have charts and 4 have tables of memory and samples" in page


def test_cells_beyond_that_keep_their_name_and_their_peaks_or_why_they_have_none(page: str) -> None:
    cells = page.split('<details class="cell"')[1:]
    assert sum('class="ladder"' in cell for cell in cells) == 4 < len(cells)
    for cell in cells:
        assert re.search(r'class="note name">rules \w+, \d+ warm-up and [^<]+<code>[^<]+ \[[^<]+\]</code>', cell)
        assert re.search(r"At the peak .* requested, .* allocated, .* reserved", cell) or 'class="reason"' in cell


def test_lists_and_selectors_say_how_much_they_show(page: str) -> None:
    entries = re.search(r"All figures as a list \(5 of (\d+) entries\)", page)
    assert entries is not None
    assert re.search(rf"5 of {entries[1]} entries and 6 of \d+ figures shown", page)
    assert len(re.findall("<tr>", page[page.index('id="matrix-data"') :].split("</tbody>")[0])) == 6
    assert re.search(r"3 of \d+ configurations can be chosen here", page)


def test_however_many_cells_the_matrix_offers_every_figure(page: str) -> None:
    offered = re.findall(r'<option value="([^"]+)"', page[page.index('id="matrix-metric"') :].split("</select>")[0])
    packed = json.loads(re.search(r'id="matrix-figures">(.*?)</script>', page)[1])
    assert list(packed["metrics"]) == offered and len(offered) > 5
    slots = page.count('class="m heat-')
    assert {len(figures) for figures in packed["metrics"].values()} == {slots}
