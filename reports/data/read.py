"""Reads a run directory and checks it against the schema that the program and the report share.

Every defect of the files ends in an InputError that names file and line.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, NoReturn, Sequence

from reports.data.spread import spread

try:
    import fastjsonschema  # checks twenty times as fast as jsonschema, whose messages name the place better
except ImportError:
    fastjsonschema = None

SCHEMA_FILE = Path(__file__).parents[1] / "schema.json"
SCHEMA_MAJOR = 1
_CHECKED_TOGETHER = 500  # records that one process checks before it takes more


class InputError(Exception):
    """An error of the user: the message says where it is and how to fix it."""


@dataclass(frozen=True, eq=False)
class RunData:
    """One run directory, validated. `verdicts` is None when nothing was judged yet."""

    directory: Path
    run: dict[str, Any]
    samples: list[dict[str, Any]]
    verdicts: dict[str, Any] | None
    notes: list[str] = field(default_factory=list)

    @property
    def controls(self) -> set[str]:
        """Experiments about the instrument, not about the configurations that they use."""
        return {item["id"] for item in self.run.get("experiments", []) if item.get("kind") == "control"}


@dataclass(frozen=True)
class Changes:
    """What `headroom compare --json` found between two runs, and the earlier of them."""

    before: RunData
    cells: list[dict[str, Any]]
    missing: list[str]
    added: list[str]
    environment: list[dict[str, str]]
    not_compared: str

    def worse(self) -> list[dict[str, Any]]:
        return [cell for cell in self.cells if cell["outcome"] == "worse"]

    def verdicts_before(self) -> dict[str, str]:
        """Claim → verdict."""
        return {claim["id"]: claim["verdict"] for claim in (self.before.verdicts or {"claims": []})["claims"]}


def read_changes(file: Path, before: Path) -> Changes:
    """`file` is what `headroom compare BEFORE AFTER --json` printed. Raises InputError."""
    record = check_record(parse_json(read_text(file), file), "changes", str(file))
    return Changes(
        read_run(before),
        record["cells"],
        record["missing"],
        record["new"],
        record["environment"],
        record["not_compared"],
    )


def read_run(directory: Path) -> RunData:
    """Loads run.json, samples.jsonl and, where present, verdicts.json. Raises InputError."""
    if not directory.is_dir():
        raise InputError(f"{directory}: there is no such run directory. `headroom run` prints its path at the end.")
    run_file = directory / "run.json"
    if not run_file.is_file():
        raise InputError(f"{directory}: this is not a run directory: run.json is missing.")
    notes: list[str] = []
    run = read_record(run_file, "run")
    samples = _read_samples(directory / "samples.jsonl", notes)
    verdicts_file = directory / "verdicts.json"
    verdicts = None
    if verdicts_file.is_file():
        verdicts = read_record(verdicts_file, "verdicts")
    else:
        notes.append("This run has not been judged yet: there is no verdicts.json.")
    return RunData(directory, run, samples, verdicts, notes)


def read_record(file: Path, kind: str) -> dict[str, Any]:
    """A file that is one record. Raises InputError."""
    return check_record(parse_json(read_text(file), file), kind, str(file))


def _read_samples(file: Path, notes: list[str]) -> list[dict[str, Any]]:
    if not file.is_file():
        notes.append("No sample was recorded: there is no samples.jsonl.")
        return []
    records, torn = read_lines(file, "sample")
    if torn:
        notes.append(f"The last record of {file.name} (line {torn}) is incomplete and is left out.")
    # A resumed run may repeat an unfinished sample; the later record counts.
    return list({(one["experiment"], one["arm"], one["block"]): one for one in records}.values())


def read_lines(file: Path, kind: str) -> tuple[list[dict[str, Any]], int | None]:
    """The records of a file that has one in each line, and the number of the last line if it is torn."""
    records: dict[int, Any] = {}  # by the number of the line
    torn = None
    lines = read_text(file).split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            records[number] = parse_json(line, file, first_line=number)
        except InputError:
            # Records are flushed one by one: only the last can be torn, and it lacks its newline.
            if number < len(lines):
                raise
            torn = number
    if not _all_fit(list(records.values()), kind):
        for number, record in records.items():
            check_record(record, kind, f"{file}, line {number}")
    return list(records.values()), torn


def _all_fit(records: Sequence[Any], kind: str) -> bool:
    fits = _quick_check(kind)
    parts = [records[first : first + _CHECKED_TOGETHER] for first in range(0, len(records), _CHECKED_TOGETHER)]
    return all(spread(lambda part: all(map(fits, part)), parts))


def read_text(file: Path) -> str:
    if file.exists() and not file.is_file():  # reading a pipe or a device may never end
        raise InputError(f"{file}: is not a file.")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: this is not a text file (byte {error.start} is not UTF-8).") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}.") from None


def parse_json(text: str, file: Path, first_line: int = 1) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise InputError(f"{file}, line {first_line}: {constant} is not a JSON number; unknown values are null.")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise InputError(f"{file}, line {line}, column {error.colno}: not valid JSON: {error.msg}.") from None
    except RecursionError:
        raise InputError(f"{file}, line {first_line}: nested too deep for a file of Headroom's.") from None


def check_record(record: Any, kind: str, where: str) -> dict[str, Any]:
    if not isinstance(record, dict) or "kind" not in record or "schema_version" not in record:
        raise InputError(f"{where}: this is not a Headroom result file: it has no kind and no schema_version.")
    if record["kind"] != kind:
        raise InputError(f"{where}: expected a record of kind '{kind}', found '{record['kind']}'.")
    if _major(record) != str(SCHEMA_MAJOR):
        raise InputError(
            f"{where}: written in schema version {record['schema_version']}; this report reads version "
            f"{SCHEMA_MAJOR}.x. Use the report that came with the program that wrote it."
        )
    if _quick_check(kind)(record):
        return record
    import jsonschema  # takes a while to import, and few runs have errors

    error = jsonschema.exceptions.best_match(_validator(kind).iter_errors(record))
    if error is not None:
        place = ".".join(str(step) for step in error.absolute_path) or "top level"
        message = error.message if len(error.message) < 200 else error.message[:197] + "…"
        raise InputError(f"{where}: does not fit the schema at {place}: {message}.")
    return record


def _major(record: dict[str, Any]) -> str:
    return str(record["schema_version"]).split(".")[0]


@functools.cache
def _quick_check(kind: str) -> Callable[[Any], bool]:
    """Whether a record certainly fits the schema. False also where fastjsonschema is not installed."""
    if fastjsonschema is None:
        return lambda record: False
    check = fastjsonschema.compile(_schema(kind))

    def fits(record: Any) -> bool:
        try:
            check(record)
        except fastjsonschema.JsonSchemaException:
            return False
        return _major(record) == str(SCHEMA_MAJOR)

    return fits


@functools.cache
def _validator(kind: str) -> Any:
    import jsonschema

    return jsonschema.Draft4Validator(_schema(kind))


def _schema(kind: str) -> dict[str, Any]:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return {
        "$schema": schema["$schema"],
        "definitions": schema["definitions"],
        "allOf": [{"$ref": f"#/definitions/{kind}"}],
    }
