"""Runs that ran out of memory: the failed request, the blocks that prevented it, and the strategies that served it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from reports.charts.palette import AllocatorLooks, Look, SpecText, readable, role_name, split_spec
from reports.charts.segments import segments_chart
from reports.charts.style import Chart, Datum, Table, bytes_datum
from reports.data import trace, units
from reports.data.axes import differing, strategy_label
from reports.data.failure import Failure, Obstacle
from reports.data.slug import slug
from reports.views.cell_tables import oom_facts
from reports.views.page import Page, Section

MAXIMUM_TOLD = 6  # failures with a map; others have a row
MAXIMUM_ROWS = 200
_STRIPES = 300
_NAMED = 4  # strategies, and blocks that prevented the request


@dataclass(frozen=True)
class OutOfMemory:
    anchor: str
    cell_anchor: str
    problem: str
    strategy: SpecText
    look: Look
    sentence: str
    cause: str
    in_the_way: str
    served: str
    facts: Sequence[tuple[str, Datum]]
    chart: Chart | None
    command: str


@dataclass(frozen=True)
class OutOfMemories:
    told: Sequence[OutOfMemory]
    rest: Table | None
    count: int


def build_oom(
    directory: Path, samples: Sequence[dict[str, Any]], entries: Sequence[dict[str, Any]], looks: AllocatorLooks
) -> OutOfMemories:
    failed: dict[str, dict[str, Any]] = {}
    for sample in samples:
        if sample["oom"]:
            known = failed.setdefault(sample["cell"]["cell_id"], sample)
            if sample["trace_file"] and not known["trace_file"]:
                failed[sample["cell"]["cell_id"]] = sample
    # Failures with enough memory, but in pieces, come first, because the strategy caused them.
    ranked = sorted(failed.values(), key=lambda sample: not _in_pieces(sample["oom"]))
    fates = _fates(samples, entries)
    told = [_tell(directory, sample, fates[_problem(sample["cell"])], looks) for sample in ranked[:MAXIMUM_TOLD]]
    rest = [
        _row(sample, fates[_problem(sample["cell"])])
        for sample in ranked[MAXIMUM_TOLD : MAXIMUM_TOLD + MAXIMUM_ROWS]
    ]
    headers = ("workload", "device", "strategy", "asked for", "free", "largest hole", "held by")
    return OutOfMemories(told, Table(headers, rest) if rest else None, len(failed))


def _in_pieces(report: dict[str, Any]) -> bool:
    return bool(report["free_bytes"] >= report["requested_bytes"])


def _problem(cell: dict[str, Any]) -> tuple[str, str, str]:
    return cell["workload"], cell["device"], cell["rules"]


@dataclass(frozen=True)
class Fate:
    cell_id: str
    label: str
    status: str


def _fates(
    samples: Sequence[dict[str, Any]], entries: Sequence[dict[str, Any]]
) -> dict[tuple[str, str, str], list[Fate]]:
    """The outcome of each strategy, by the problem that it had to solve."""
    found: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for record in (*samples, *entries):
        found.setdefault(_problem(record["cell"]), {})[record["cell"]["cell_id"]] = record
    fates = {}
    for problem, records in found.items():
        varied = differing([record["cell"] for record in records.values()])
        fates[problem] = [
            Fate(cell_id, strategy_label(record["cell"], varied), record["status"])
            for cell_id, record in records.items()
        ]
    return fates


def _others(sample: dict[str, Any], fates: Sequence[Fate], status: str) -> list[str]:
    own = sample["cell"]["cell_id"]
    return list(dict.fromkeys(fate.label for fate in fates if fate.status == status and fate.cell_id != own))


def _label(sample: dict[str, Any], fates: Sequence[Fate]) -> str:
    return next(fate.label for fate in fates if fate.cell_id == sample["cell"]["cell_id"])


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _tell(directory: Path, sample: dict[str, Any], fates: Sequence[Fate], looks: AllocatorLooks) -> OutOfMemory:
    cell, report = sample["cell"], sample["oom"]
    anchor = "oom-" + slug(cell["cell_id"])
    failure = _failure(directory, sample)
    chart = None
    if failure and failure.layout and len(failure.layout.blocks) > 1:
        chart = segments_chart(f"{anchor}-map", failure.layout, budget=_STRIPES, when="when it failed")
    return OutOfMemory(
        anchor=anchor,
        cell_anchor="cell-" + slug(cell["cell_id"]),
        problem=f"{readable(cell['workload'])} on {readable(cell['device'])}",
        strategy=split_spec(_label(sample, fates)),
        look=looks[cell["allocator"]],
        sentence=_sentence(report, failure),
        cause=_cause(report, failure),
        in_the_way=_in_the_way(report, failure),
        served=_served(sample, fates),
        facts=oom_facts(report),
        chart=chart,
        command=_command(sample) if failure else "",
    )


def _failure(directory: Path, sample: dict[str, Any]) -> Failure | None:
    if not sample["trace_file"]:
        return None
    try:
        return trace.load(directory, sample["trace_file"]).failure
    except trace.TraceError:
        return None  # the configuration's own section says why


def _sentence(report: dict[str, Any], failure: Failure | None) -> str:
    what = f"A request for {units.bytes_(report['requested_bytes'])} failed"
    if failure is None:
        return what + "."
    who = f"{failure.op} ({role_name(failure.role)})" if failure.op else role_name(failure.role)
    when = f"{failure.phase} of step {failure.step}" if failure.step else "before the first step"
    return f"{what}: {who}, {when}."


def _cause(report: dict[str, Any], failure: Failure | None) -> str:
    """Whether memory was too small or too fragmented."""
    free, hole = report["free_bytes"], report["largest_free_bytes"]
    if failure and failure.live + report["requested_bytes"] > report["capacity_bytes"]:
        short = failure.live + report["requested_bytes"] - report["capacity_bytes"]
        return (
            f"There was too little memory: live tensors ({units.bytes_(failure.live)}) and this request exceed the capacity by "
            f"{units.bytes_(short)}. No allocator could have served it at this moment."
        )
    if _in_pieces(report):
        return (
            f"Free memory was too fragmented: {units.bytes_(free)} of the reserved memory were free, "
            + (f"but the largest hole was {units.bytes_(hole)}." if hole else "but none of it was in a hole that could be used.")
        )  # fmt: skip
    if failure:
        return (
            f"The memory beside the tensors was too much: live tensors had requested {units.bytes_(failure.live)} of "
            f"{units.bytes_(report['capacity_bytes'])}; rounding of blocks added "
            f"{units.bytes_(max(0, report['allocated_bytes'] - failure.live))}, {units.bytes_(free)} were free but "
            f"unusable, and {units.bytes_(max(0, report['capacity_bytes'] - report['reserved_bytes']))} were not "
            f"reserved."
        )
    return f"{units.bytes_(free)} of the reserved memory were free but unusable."


def _in_the_way(report: dict[str, Any], failure: Failure | None) -> str:
    if failure is None or not failure.in_the_way or not report["largest_free_bytes"]:
        return ""
    blocks = sorted(failure.in_the_way, key=lambda block: -block.size)
    named = "; ".join(_obstacle(block, failure.step) for block in blocks[:_NAMED])
    if len(blocks) == 1:
        return f"The smallest obstacle was {named}."
    total = units.bytes_(sum(block.size for block in blocks))
    return f"The smallest obstacle was {total} in {len(blocks)} blocks: {named}{'; …' if len(blocks) > _NAMED else '.'}"


def _obstacle(block: Obstacle, now: int) -> str:
    words = [role_name(block.role)] if block.op else []
    if block.step != now:
        words.append(f"since step {block.step}" if block.step else "since set-up")
    text = f"{units.bytes_(block.size)} {block.op or role_name(block.role)}"
    return f"{text} ({', '.join(words)})" if words else text


def _served(sample: dict[str, Any], fates: Sequence[Fate]) -> str:
    ran, out = (_others(sample, fates, status) for status in ("ok", "oom"))
    if not ran and not out:
        return "This run tried no other strategy for the same steps."
    words = [f"The same steps ran on this device with {_list(ran)}." if ran else "No strategy in this run could serve these steps."]
    if out:
        words.append(f"Also out of memory: {_list(out)}.")
    return " ".join(words)


def _command(sample: dict[str, Any]) -> str:
    capacity = str(sample["oom"]["capacity_bytes"])
    return shlex.join(["headroom", "replay", sample["trace_file"], "--capacity", capacity])


def _row(sample: dict[str, Any], fates: Sequence[Fate]) -> Sequence[Datum]:
    cell, report = sample["cell"], sample["oom"]
    names = (cell["workload"], cell["device"], _label(sample, fates))
    figures = ("requested_bytes", "free_bytes", "largest_free_bytes")
    held = _list(_others(sample, fates, "ok")) or "none that was tried"
    return (*map(Datum, names), *(bytes_datum(report[name]) for name in figures), Datum(held))


def _of_page(page: Page) -> OutOfMemories | None:
    found = build_oom(page.data.directory, page.measured, page.entries, page.looks)
    return found if found.count else None


SECTION = Section(
    address="oom",
    title="Out of memory",
    about="what failed, why, and what would have fitted",
    place=50,
    build=_of_page,
    count=lambda found: found.count,
)
