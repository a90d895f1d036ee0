"""Completion in bash offers what the program itself names."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conftest import PROGRAM

ROOT = Path(__file__).resolve().parents[2]


def offered(*words: str) -> set[str]:
    """What completion offers for `headroom WORDS` when the last word is being typed."""
    script = (
        f"source {ROOT}/scripts/completion/headroom; COMP_WORDS=(headroom \"$@\"); COMP_CWORD=$#; "
        f"_headroom {PROGRAM} \"${{@: -1}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_commands_are_completed() -> None:
    assert offered("re") == {"replay", "report"}
    assert {"run", "history", "doctor"} <= offered("")


def test_commands_of_a_command_are_completed() -> None:
    assert {"add", "check", "accept", "merge"} <= offered("history", "")


def test_options_are_those_of_the_command() -> None:
    assert {"--resume", "--rerun"} == offered("run", "--re")
    assert "--resume" not in offered("replay", "--")
    assert "--capacity" in offered("replay", "--")


def test_suites_claims_and_workloads_are_completed_by_name() -> None:
    assert "smoke" in offered("run", "sm")
    assert "S03" in offered("verify", "S0")
    assert "resnet" in offered("plan", "res")


def test_what_nobody_knows_is_left_to_the_names_of_files() -> None:
    assert offered("run", "--resume", "runs/no-such") == set()
