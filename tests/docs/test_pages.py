"""What the documentation says to type is typed here, and its links lead somewhere.

Blocks marked `bash` are commands. Those that no test can run stand below `<!-- not run: REASON -->`;
`pytest -rs` lists them with their reasons. The commands of a page must print the lines
of its blocks below `<!-- output -->`, in any order and with any spaces.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from pages import GUIDES, PAGES, SOURCE, anchors, blocks, files, links, script_of

PROGRAM = os.environ.get("HEADROOM", "")
TRAIN = """
kept = [bytearray(2**20) for _ in range(8)]
print(len(kept), "MiB")
"""


def name(page: Path) -> str:
    return page.relative_to(SOURCE).as_posix()


def run_bash(script: str, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Stops at the first command that fails and says in which line it stands."""
    environment = os.environ | variables | {
        "HOME": str(place), "XDG_STATE_HOME": str(place / "state"), "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    guarded = "set -Eeuo pipefail; trap 'echo line $LINENO: $BASH_COMMAND >&2' ERR; " + script
    return subprocess.run(["bash", "-c", guarded], cwd=place, env=environment, capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip


@pytest.fixture(scope="session")
def belongings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files that a reader has: two runs, snapshots of allocation histories, and a program to watch."""
    place = tmp_path_factory.mktemp("reader")
    made = run_bash("headroom run smoke --seed 1 --filter device=meta* --out earlier\n"
                    "headroom run smoke --seed 1 --out runs\n"
                    "headroom export $(ls runs/*/traces/*.hrtrace | head -n 1) --to pytorch -o snapshot.pickle\n"
                    "cp snapshot.pickle before.pickle\n"
                    "headroom export $(ls runs/*/traces/*.hrtrace | tail -n 1) --to pytorch -o after.pickle\n", place)
    assert made.returncode == 0, made.stderr
    (place / "train.py").write_text(TRAIN)
    (earlier,), (run,) = (place / "earlier").iterdir(), (place / "runs").iterdir()
    return {"EARLIER": str(earlier), "RUN": str(run), "PLACE": str(place)}


@pytest.mark.parametrize("page", [page for page in GUIDES if script_of(page.read_text()).strip()], ids=name)
def test_commands_do_as_the_page_says(page: Path, belongings: dict[str, str], tmp_path: Path) -> None:
    for file in ("snapshot.pickle", "before.pickle", "after.pickle", "train.py"):
        (tmp_path / file).symlink_to(Path(belongings["PLACE"]) / file)
    text = page.read_text()
    done = run_bash(script_of(text), tmp_path, RUN=belongings["RUN"], EARLIER=belongings["EARLIER"])
    assert done.returncode == 0, done.stderr
    printed = {" ".join(line.split()) for line in (done.stdout + done.stderr).splitlines()}
    promised = [line for block in blocks(text) if block.marker == "output" for line in block.code.splitlines()]
    assert [line for line in promised if " ".join(line.split()) not in printed] == [], done.stdout + done.stderr


@pytest.mark.parametrize(
    "reason",
    [pytest.param(block.detail, id=f"{name(page)}:{block.line}")
     for page in GUIDES for block in blocks(page.read_text()) if block.marker == "not run"],
)  # fmt: skip
def test_commands_no_test_can_run(reason: str | None) -> None:
    assert reason, "say why, as in <!-- not run: needs a GPU -->"
    pytest.skip(reason)


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_commands_stand_in_blocks_that_are_run(page: Path) -> None:
    others = [block for block in blocks(page.read_text()) if block.language != "bash"]
    assert [block.line for block in others if re.search(r"^(\$ |headroom \w|scripts/\w)", block.code, re.MULTILINE)] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page.read_text()):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_it_names_are_there(page: Path) -> None:
    assert [file for file in files(page.read_text()) if not (SOURCE / file).exists()] == []


def test_every_guide_is_in_the_navigation_of_the_site() -> None:
    def listed(entry: object) -> set[str]:
        if isinstance(entry, str):
            return {entry}
        return set().union(*map(listed, entry.values() if isinstance(entry, dict) else entry))  # type: ignore[attr-defined]

    navigation = yaml.safe_load((SOURCE / "docs" / "mkdocs.yml").read_text())["nav"]
    assert {name(page) for page in GUIDES} <= listed(navigation)
