"""A system call that fails once, because a preloaded library makes it fail."""

from __future__ import annotations

import errno
import os
import subprocess

import pytest
from conftest import SOURCE, Headroom


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
