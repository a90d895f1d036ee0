"""Reads what `headroom watch` wrote, against the schema that the program and the report share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.data.read import InputError, check_record, parse_json, read_lines, read_text


@dataclass(frozen=True)
class WatchData:
    """`watch["summary"]` is None if watching was interrupted."""

    watch: dict[str, Any]
    samples: list[dict[str, Any]]
    cut_off: bool = False  # the last line is incomplete and left out


def read_watch(directory: Path) -> WatchData:
    """Loads watch.json and timeline.jsonl. Raises InputError."""
    file = directory / "watch.json"
    if not file.is_file():
        raise InputError(f"{directory}: this is not a directory of `headroom watch`: watch.json is missing.")
    watch = check_record(parse_json(read_text(file), file), "watch", str(file))
    timeline = directory / "timeline.jsonl"
    samples, torn = read_lines(timeline, "watch_sample")
    if not samples:
        raise InputError(f"{timeline}: no sample was recorded. Watch again with a shorter --interval.")
    return WatchData(watch, samples, torn is not None)
