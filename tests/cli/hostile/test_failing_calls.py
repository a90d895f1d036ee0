"""A system call that fails once, because a preloaded library makes it fail."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import COUNTING, SOURCE, Headroom, suite_of


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("failing") / "fail_call.so"
    source = SOURCE / "tests" / "robustness" / "fail_call.c"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library, source,
                    "-ldl"], check=True)  # fmt: skip
    return str(library)


def test_a_signal_while_a_file_is_read_is_no_error(headroom: Headroom, counting: str, failing: str) -> None:
    count = headroom.place / "count"
    words = ["run", counting, "--dry-run"]
    whole = headroom(*words, LD_PRELOAD=failing, FAIL_COUNT=str(count))
    calls = int(count.read_text())
    assert whole.code == 0 and calls > 0
    for call in range(1, calls + 1):
        interrupted = headroom(*words, LD_PRELOAD=failing, FAIL_AT=str(call), FAIL_WITH=str(errno.EINTR))
        assert interrupted == whole, f"call {call} of {calls}"


def test_a_signal_while_a_run_is_written_is_no_error(headroom: Headroom, failing: str) -> None:
    count = headroom.place / "count"
    words = ["run", headroom.write("small.toml", suite_of("small", COUNTING)), "--samples-only", "--budget", "1ms", "--out"]
    assert headroom(*words, "whole", LD_PRELOAD=failing, FAIL_COUNT=str(count)).code == 0
    for call in range(1, int(count.read_text()) + 1):
        interrupted = headroom(*words, str(call), LD_PRELOAD=failing, FAIL_AT=str(call), FAIL_WITH=str(errno.EINTR))
        assert interrupted.code == 0, (call, interrupted.errors)


def test_a_run_begins_only_if_the_machine_it_names_can_be_read(headroom: Headroom, counting: str, failing: str) -> None:
    """With another name of the processor, or other settings, the run could not be resumed."""
    words = ["run", counting, "--samples-only", "--budget", "1ms", "--out"]
    assert headroom(*words, "whole").code == 0
    named = [machine_of(headroom.place / "whole")]
    for call in range(1, 1000):
        failed = headroom(*words, str(call), LD_PRELOAD=failing, FAIL_AT=str(call), FAIL_WITH=str(errno.EIO))
        if "run.json" in failed.errors:
            break  # the machine was read
        if failed.code == 0:
            named.append(machine_of(headroom.place / str(call)))
    assert len(named) > 1 and "run.json" in failed.errors
    assert all(machine == named[0] for machine in named)


def machine_of(runs: Path) -> list[str]:
    (record,) = runs.glob("*/run.json")
    machine = json.loads(record.read_text())["machine"]
    return [machine[fact] for fact in ("cpu", "os", "governor", "transparent_hugepages")]
