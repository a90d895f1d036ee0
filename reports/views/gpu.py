"""A program on a virtual GPU as plain data for its page."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.gpu import device_chart
from reports.charts.style import Chart, Datum, Table, bytes_datum
from reports.data import units
from reports.data.glossary import Word
from reports.data.gpu import GpuData

_VERDICTS = {
    "fits": Word("FITS", "good", "check", "The program ran with the memory of this card."),
    "does not fit": Word("DOES NOT FIT", "bad", "cross", "The framework ended the program because memory ran out."),
    "captured": Word("CAPTURED", "none", "check", "The program ran on this machine, and its memory was recorded."),
    "out of memory": Word("OUT OF MEMORY", "bad", "cross", "The framework ended the program because memory ran out."),
    "over budget": Word("OVER BUDGET", "bad", "up", "It fits on the card, but reserved more than was allowed."),
}
_MOST_DEVICES = 8
_MOST_MODULES = 200


@dataclass(frozen=True)
class Device:
    title: str
    chart: Chart | None
    tables: Sequence[tuple[str, Table, str]]  # heading, table, note


@dataclass(frozen=True)
class Gpu:
    title: str  # the card, or what the program was captured on
    virtual: bool
    verdict: Word
    headline: str
    message: str
    facts: Sequence[tuple[str, Datum]]
    devices: Sequence[Device]
    devices_note: str
    variants: Sequence[tuple[str, Table]]
    sources: Table


def build_gpu(data: GpuData) -> Gpu:
    figures = data.figures
    failed = Word(figures["verdict"].upper(), "none", "question", "The program did not run to its end.")
    uses = _alike_together(figures["frameworks"])
    devices = [_device(number, data, alike) for number, alike in enumerate(uses[:_MOST_DEVICES])]
    more = f"{_MOST_DEVICES} of {len(uses)} GPUs are shown; gpu.json has all." if len(uses) > _MOST_DEVICES else ""
    return Gpu(
        figures.get("captured_on") or figures["card"],
        "captured_on" not in figures,
        _VERDICTS.get(figures["verdict"], failed),
        _headline(figures),
        _message(figures),
        _facts(figures),
        devices,
        more,
        _variants(figures),
        _sources(figures),
    )


def _headline(figures: dict[str, Any]) -> str:
    if place := figures.get("captured_on"):
        return f"It held {units.bytes_(figures['peak_bytes'])} at the peak, on {place}."
    peak, memory, card = figures["peak_bytes"], figures["memory_bytes"], figures["card"]
    of = f"{units.bytes_(peak)} of {card}'s {units.bytes_(memory)}"
    words = {
        "fits": f"It fits: {of} at the peak, {units.bytes_(memory - peak)} to spare.",
        "does not fit": f"It does not fit on {card}, which has {units.bytes_(memory)}.",
        "over budget": f"It is over budget: {of} at the peak, {units.bytes_(figures.get('budget_bytes'))} allowed.",
        "not supported": f"It stopped at {', '.join(figures['not_supported'])}, which the virtual GPU does not have.",
        "no GPU used": "It never allocated memory on a CUDA device.",
    }
    return words.get(figures["verdict"], f"It failed with status {figures['exit_status']}; {of} at the peak.")


def _message(figures: dict[str, Any]) -> str:
    for framework in figures["frameworks"]:
        if framework["error"]:
            lines = [event["line"] for event in framework["out_of_memory"] if event["line"]]
            return framework["error"] + (f" At {lines[-1]}." if lines else "")
    return ""


def _facts(figures: dict[str, Any]) -> list[tuple[str, Datum]]:
    if place := figures.get("captured_on"):
        facts = [("Captured on", Datum(place)), ("Peak", bytes_datum(figures["peak_bytes"]))]
    else:
        facts = [
            ("Card", Datum(figures["card"])),
            ("Memory for the program", bytes_datum(figures["memory_bytes"])),
            ("Peak of reserved memory", bytes_datum(figures["peak_bytes"])),
        ]
    if figures["frameworks"]:
        first = figures["frameworks"][0]
        facts.append(("Framework", Datum(first["name"])))
        facts.append(("Optimizer steps", Datum(f"{first['steps']:,}")))
        facts.append(("Processes", Datum(str(len(figures["frameworks"])))))
    return facts


def _alike_together(frameworks: list[dict[str, Any]]) -> list[list[tuple[int, dict[str, Any]]]]:
    """Returns (process, device) of every use of a device; those with the same figures stand in one list."""
    groups: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for framework in frameworks:
        for device in framework["devices"]:
            figures = json.dumps(device | {"device": None}, sort_keys=True)
            groups.setdefault(figures, []).append((framework["pid"], device))
    return list(groups.values())


def _name(alike: list[tuple[int, dict[str, Any]]], processes: int) -> str:
    process, device = alike[0]
    of = f" of process {process}" if processes > 1 else ""
    if device.get("kind") == "cpu":
        return f"CPU memory{of}"
    if len(alike) == 1:
        return f"GPU {device['device']}{of}"
    numbers = sorted({device["device"] for _, device in alike})
    if len(numbers) == 1:
        return f"GPU {numbers[0]}, each of {len(alike)} processes"
    return f"GPUs {', '.join(map(str, numbers))}, each"


def _device(number: int, data: GpuData, alike: list[tuple[int, dict[str, Any]]]) -> Device:
    process, device = alike[0]
    curve = data.curves.get((process, device["device"]))
    chart = device_chart(f"memory-{number}", curve, data.figures.get("memory_bytes")) if curve else None
    whole = device["peak_allocated_bytes"]
    phases = sorted(device["phase_peak_bytes"].items(), key=lambda item: -item[1])
    tables = [
        ("By role", _shares("role", [(s["name"], s["bytes"]) for s in device["roles"]], whole), ""),
        ("By phase", Table(("phase", "most allocated in it"), [(Datum(n), bytes_datum(b)) for n, b in phases]), ""),
        ("By line of the program", _shares("line", [(s["name"], s["bytes"]) for s in device["lines"]], whole), ""),
        ("By module", *_modules(device.get("modules", []))),
    ]
    return Device(_name(alike, len(data.figures["frameworks"])), chart, [table for table in tables if table[1].rows])


def _shares(what: str, shares: list[tuple[str, int]], whole: int) -> Table:
    rows = [
        (Datum(name), bytes_datum(held), Datum(units.percent(held / whole) if whole else units.DASH, sort=held))
        for name, held in shares
    ]
    return Table((what, "at the peak", "share"), rows)


def _modules(modules: list[dict[str, Any]]) -> tuple[Table, str]:
    """Returns a row for each group of modules whose paths differ in numbers only, and a note."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for module in modules:
        groups.setdefault(module["pattern"], []).append(module)
    totals = [(_name_of_modules(path, alike), _held(alike)) for path, alike in groups.items()]
    totals.sort(key=lambda total: -total[1].total())
    roles = [role for role, _ in _held(modules).most_common()]
    rows = [
        (
            Datum(name),
            bytes_datum(held.total()),
            *(bytes_datum(held[role]) if role in held else Datum(units.DASH, sort=0) for role in roles),
        )
        for name, held in totals[:_MOST_MODULES]
    ]
    more = f"{_MOST_MODULES} of {len(totals):,} are shown; gpu.json has all." if len(totals) > _MOST_MODULES else ""
    return Table(("module", "at the peak", *roles), rows), more


def _name_of_modules(path: str, alike: list[dict[str, Any]]) -> str:
    return alike[0]["name"] if len(alike) == 1 else f"{path} ({len(alike)} alike)"


def _held(modules: list[dict[str, Any]]) -> Counter[str]:
    """Returns the bytes of each role."""
    held: Counter[str] = Counter()
    for module in modules:
        held.update(module["roles"])
    return held


def _variants(figures: dict[str, Any]) -> list[tuple[str, Table]]:
    found = []
    search = figures.get("largest_batch")
    for title, kind, rows in (
        (f"Other batches, by {search['name']}" if search else "", "batch", search["tried"] if search else []),
        ("Other settings of PyTorch's allocator", "setting", figures.get("settings", [])),
    ):
        if rows:
            cells = [(Datum(row[kind]), Datum(row["verdict"]), bytes_datum(row["peak_bytes"])) for row in rows]
            found.append((title, Table((kind, "verdict", "peak"), cells)))
    return found


def _sources(figures: dict[str, Any]) -> Table:
    own = [
        ("allocated and reserved memory, the message", "the framework's own", "its allocator ran; exact"),
        ("roles, modules, lines", "the framework's own history", "combined with what its hooks recorded"),
    ]
    if "captured_on" in figures:
        return _source_table(own)
    context = figures["context_bytes"]
    rows = [
        *own,
        ("workspaces of convolutions", figures["cudnn_workspaces"], "for this card, without it"),
        (
            "CUDA context and loaded kernels",
            "estimated" if figures.get("context_is_estimated") else "as given" if context else "not counted",
            units.bytes_(context) if context else "--context BYTES leaves room",
        ),
        ("buffers of NCCL, time", "not known", "no figure is made up"),
    ]
    if managed := figures.get("managed_bytes"):
        rows.append(("managed memory", "not counted", f"{units.bytes_(managed)}; the driver moves it as there is room"))
    rows += [
        (f"size of {name}", "not known", f"counted as 0 bytes, called {calls:,} times")
        for name, calls in figures["sizes_not_known"].items()
    ]
    rows += [
        (f"size of {name}", "estimated", f"by a rule of Headroom's, called {calls:,} times")
        for name, calls in figures.get("sizes_estimated", {}).items()
    ]
    return _source_table(rows)


def _source_table(rows: Sequence[tuple[str, str, str]]) -> Table:
    return Table(("figure", "source", "remark"), [tuple(Datum(cell) for cell in row) for row in rows])
