"""Samples without a result, each reason once, because a configuration that cannot run fails in every block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence


@dataclass(frozen=True)
class Failed:
    experiment: str
    arm: str
    status: str
    reason: str
    blocks: str  # "0 to 9", "0, 2 and 5"
    samples: int


def build_failures(failures: Sequence[dict[str, Any]]) -> list[Failed]:
    groups: dict[tuple[str, str, str, str], set[int]] = {}
    for item in failures:
        key = item["experiment"], item["arm"], item["status"], item["reason"] or ""
        groups.setdefault(key, set()).add(item["block"])
    return [Failed(*key, _enumerate(sorted(blocks)), len(blocks)) for key, blocks in groups.items()]


def _enumerate(blocks: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for block in blocks:
        if runs and block == runs[-1][-1] + 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    words = []
    for run in runs:
        words += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(block) for block in run]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
