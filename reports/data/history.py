"""Reads the check of a night: check.json of the run directory, and the nights that it compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.data.read import read_record


@dataclass(frozen=True)
class History:
    """`nights` are in order of time, the run's own last. Nights that the store no longer has are left out."""

    check: dict[str, Any]
    nights: list[dict[str, Any]]


def read_check(directory: Path) -> dict[str, Any] | None:
    """The check of the night, as `headroom history check` wrote it. Raises InputError."""
    file = directory / "check.json"
    return read_record(file, "check") if file.is_file() else None


def read_history(directory: Path) -> History | None:
    """None for a run without a `headroom history check`. Raises InputError."""
    check = read_check(directory)
    if check is None:
        return None
    nights = []
    for night_id in check["night_ids"]:
        night = Path(check["store"]) / "nights" / f"{night_id}.json"
        if night.is_file():
            nights.append(read_record(night, "night"))
    return History(check, nights)
