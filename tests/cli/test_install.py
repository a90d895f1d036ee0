"""An installed program finds what was installed beside it, wherever that is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import conftest
import pytest
from conftest import COUNTING, COUNTING_SUITE, Headroom, suite_of

BUILD = os.environ["HEADROOM_BUILD"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program below a staging directory, as packagers make one."""
    stage = tmp_path_factory.mktemp("stage")
    subprocess.run(
        ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", str(stage)],
        check=True, capture_output=True, timeout=120,
    )
    (program,) = stage.rglob("bin/headroom")
    return program


def test_it_lists_its_own_suites_and_claims(headroom: Headroom, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "PROGRAM", str(installed))
    own = installed.parent.parent / "share" / "headroom"
    (own / "bench" / "suites" / "added.toml").write_text(COUNTING_SUITE)
    listed = headroom("list", "suites")
    assert listed.code == 0, listed.errors
    assert "headroom run smoke" in listed.output
    assert "headroom run added" in listed.output
    assert "S02" in headroom("list", "claims").output


def test_it_runs_and_writes_its_report(headroom: Headroom, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "PROGRAM", str(installed))
    outcome = headroom("run", headroom.write("small.toml", suite_of("small", COUNTING)), "--max-pairs", "1")
    assert outcome.code == 0, outcome.errors
    assert Path(outcome.last_line) == headroom.only_run() / "report.html"
    assert "share/headroom" in headroom("doctor").output


def test_it_brings_its_completion(installed: Path) -> None:
    completion = installed.parent.parent / "share" / "bash-completion" / "completions" / "headroom"
    assert "complete -o default -F _headroom headroom" in completion.read_text()
