"""The tutorial of the virtual GPU shows what its commands print."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import HEADROOM

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "virtual-gpu.md"
TEXT = PAGE.read_text()
SCRIPT = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1]
RUN = re.compile(r"```bash\n(headroom .*?)\n```\n\n```text\n(.*?)```", re.DOTALL)
SECTIONS = [section for section in TEXT.split("\n## ") if RUN.search(section)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tutorial")
    (directory / "train.py").write_text(SCRIPT)
    return directory


@pytest.mark.parametrize("section", SECTIONS, ids=[section.splitlines()[0] for section in SECTIONS])
def test_a_command_prints_what_the_page_shows(pytorch, place, section):
    command, shown = RUN.search(section).groups()
    path = f"{Path(HEADROOM).parent}:{pytorch.parent}:{os.environ['PATH']}"
    done = subprocess.run(command.split(), cwd=place, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    if (version := re.search(r"PyTorch (\d[\w.+]*)", done.stdout)[1]) not in TEXT:
        pytest.skip(f"the page shows another version than PyTorch {version}")
    printed = done.stdout.replace(str(place), "/home/me")
    for part in shown.split("…\n"):
        assert part in printed
    status = re.search(r"exit status is (\d+)", section)
    assert done.returncode == int(status[1] if status else 0)
