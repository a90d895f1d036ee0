"""The folder to publish: a page and a preview image for each finding."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from test_page import Page

from reports.__main__ import main

ADDRESS = "https://example.org/run"


@pytest.fixture(scope="module")
def folder(synthetic_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("share") / "public"
    assert main([str(synthetic_run), "--share", str(target), "--address", ADDRESS]) == 0
    return target


def pages(folder: Path) -> list[Path]:
    return [file for file in folder.glob("*.html") if file.name != "report.html"]


def test_every_finding_has_a_page_whose_preview_is_an_image_beside_it(folder: Path) -> None:
    assert len(pages(folder)) > 1
    for page in pages(folder):
        properties = {attributes.get("property"): attributes.get("content") for _, attributes in Page(page.read_text()).elements}
        assert properties["og:image"] == f"{ADDRESS}/{page.stem}.png"
        assert properties["og:title"] and properties["og:description"]
        image = page.with_suffix(".png").read_bytes()
        assert image.startswith(b"\x89PNG") and struct.unpack(">II", image[16:24]) == (1200, 630)


def test_the_page_of_a_finding_leads_to_an_address_that_the_report_has(folder: Path) -> None:
    ids = {attributes.get("id") for _, attributes in Page((folder / "report.html").read_text()).elements}
    for page in pages(folder):
        links = [attributes.get("href") or "" for _, attributes in Page(page.read_text()).elements]
        targets = [link.partition("#")[2] for link in links if link.startswith("report.html#")]
        assert targets and set(targets) <= ids


def test_an_address_without_a_folder_is_refused(synthetic_run: Path) -> None:
    with pytest.raises(SystemExit):
        main([str(synthetic_run), "--address", ADDRESS])


def test_a_folder_that_cannot_be_made_is_an_error_with_its_name(
    synthetic_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main([str(synthetic_run), "--share", str(tmp_path / "file" / "public")]) == 2
    assert "file/public: cannot be created" in capsys.readouterr().err
