"""The differences from the run before: the last run of the same suite beside this one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Sequence

from reports.data import glossary, units
from reports.data.glossary import Word
from reports.data.read import InputError, RunData, read_record

# Facts that always differ, or follow from others that are listed.
_NOT_TOLD = {"load_average_1m", "executable_sha256"}
_WORDS = {
    "cpu": "processor",
    "ram_bytes": "memory",
    "os": "system",
    "transparent_hugepages": "huge pages",
    "hostname_hash": "host, hashed",
    "gpu": "GPU",
    "gpu_driver": "GPU driver",
    "dirty": "uncommitted changes",
    "build_type": "build",
    "cuda": "CUDA module",
    "version": "Headroom",
}


@dataclass(frozen=True)
class Before:
    run_id: str
    started: str
    differences: Sequence[tuple[str, str, str]]  # what, before, now
    verdicts: Sequence[tuple[str, str, Word, Word]]  # claim, its title, before, now
    command: str


def build_before(data: RunData) -> Before | None:
    """None if there is no such run, or none that can be read."""
    run = data.run
    earlier: dict[str, Any] | None = None
    place = data.directory
    for file in sorted(data.directory.absolute().parent.glob("*/run.json")):
        if file.parent.is_symlink() or file.parent.name == data.directory.absolute().name:
            continue
        try:
            other = read_record(file, "run")
        except InputError:
            continue  # another schema, or incomplete: not a problem of this run
        if other["suite"] == run["suite"] and other["started"] < run["started"]:
            if earlier is None or other["started"] >= earlier["started"]:
                earlier, place = other, file.parent
    if earlier is None:
        return None
    return Before(
        earlier["run_id"],
        earlier["started"],
        _differences(earlier, run),
        _verdicts(place, data),
        f"headroom compare ../{place.name} .",
    )


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, str, str]]:
    was, now_ = dict(_facts(before)), dict(_facts(now))
    return [
        (name, was.get(name, units.DASH), now_.get(name, units.DASH))
        for name in dict.fromkeys((*was, *now_))
        if was.get(name) != now_.get(name)
    ]


def _facts(run: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for record in (run["machine"], run["headroom"]):
        for name, value in record.items():
            if name not in _NOT_TOLD:
                yield _WORDS.get(name, name.replace("_", " ")), _text(name, value)
    yield from run["libraries"].items()
    yield from run["environment"].items()
    yield "command", " ".join(run["argv"][1:])


def _text(name: str, value: Any) -> str:
    if name.endswith("_bytes"):
        return units.bytes_(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not known" if value is None else str(value)


def _verdicts(before: Path, data: RunData) -> list[tuple[str, str, Word, Word]]:
    file = before / "verdicts.json"
    if data.verdicts is None or not file.is_file():
        return []
    try:
        was = {claim["id"]: claim["verdict"] for claim in read_record(file, "verdicts")["claims"]}
    except InputError:
        return []
    return [
        (claim["id"], claim["title"], glossary.verdict(was[claim["id"]]), glossary.verdict(claim["verdict"]))
        for claim in data.verdicts["claims"]
        if was.get(claim["id"], claim["verdict"]) != claim["verdict"]
    ]
