"""Samples without a result, each reason once, because a configuration that cannot run fails in every block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from reports.data import units


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
    return [Failed(*key, _ranges(sorted(blocks)), len(blocks)) for key, blocks in groups.items()]


def _ranges(blocks: Sequence[int]) -> str:
    ranges: list[list[int]] = []
    for block in blocks:
        if ranges and block == ranges[-1][-1] + 1:
            ranges[-1].append(block)
        else:
            ranges.append([block])
    return units.listed(
        word for of in ranges for word in ([f"{of[0]} to {of[-1]}"] if len(of) > 2 else map(str, of))
    )
