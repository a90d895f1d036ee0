"""Reads what `headroom watch` wrote, against the schema both sides share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.data.read import InputError, check_record, parse_json, read_text


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
    lines = read_text(timeline).split("\n")
    samples = []
    cut_off = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line, timeline, first_line=number)
        except InputError:
            if number < len(lines):
                raise
            cut_off = True  # lines are flushed one by one, so only the last can be incomplete
            break
        samples.append(check_record(record, "watch_sample", f"{timeline}, line {number}"))
    if not samples:
        raise InputError(f"{timeline}: no sample was recorded. Watch again with a shorter --interval.")
    return WatchData(watch, samples, cut_off)
