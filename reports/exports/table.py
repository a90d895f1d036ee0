"""Every sample as a row of CSV. Columns are the fields of the schema, dotted; units are in their
names. A list (one figure per step) stands in one field, separated by spaces."""

from __future__ import annotations

import csv
import io
from typing import Any, Iterator

from reports.data.read import Changes, RunData


def write(data: RunData, _changes: Changes | None = None) -> str:
    rows = [dict(_flatten(sample)) for sample in data.samples]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        yield name, " ".join(_text(item) for item in value)
    else:
        yield name, _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)
