"""Shared by the report's tests: one synthetic run, a browser, and the skip code Meson understands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "browser")]

from chromium import browser, page  # noqa: E402
from fixture import write_fixture  # noqa: E402

from reports.__main__ import main  # noqa: E402
from reports.views.page import Page, sections  # noqa: E402

__all__ = ["browser", "page"]
MESON_SKIP = 77


@pytest.fixture(scope="session")
def synthetic_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole synthetic run with its report. Read only."""
    directory = write_fixture(tmp_path_factory.mktemp("run"))
    assert main([str(directory)]) == 0
    return directory


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    """A small run without verdicts, to be damaged."""
    return write_fixture(tmp_path / "run", batches=(4,), judged=False)


@pytest.fixture
def charts_only_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """charts_only_in(address) leaves other sections with charts out of pages, because drawing them takes long."""
    content = Page.__getitem__

    def leave(address: str) -> None:
        without = {section.address for section in sections() if section.charts} - {address}
        monkeypatch.setattr(Page, "draw", lambda page: None)
        monkeypatch.setattr(Page, "__getitem__", lambda page, one: None if one in without else content(page, one))

    return leave


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    ran = {key for key in ("passed", "failed", "error") if reporter.stats.get(key)}
    if exitstatus == 0 and not ran and reporter.stats.get("skipped"):
        session.exitstatus = MESON_SKIP
