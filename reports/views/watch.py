"""A watched process tree as plain data for its page."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.style import Chart, Datum, Table, bytes_datum
from reports.charts.watch import processes_chart, tree_chart
from reports.data import units
from reports.data.glossary import Word
from reports.data.watch import WatchData

_VERDICTS = {
    "leak": Word("LEAK", "bad", "up", "It grew by more than is harmless over the whole time."),
    "no leak": Word("NO LEAK", "good", "check", "It stayed within what is harmless."),
    "levels off": Word("LEVELS OFF", "good", "equal", "It grew and then stopped, as with a warm-up or a cache."),
    "undecided": Word("UNDECIDED", "none", "question", "Noise, slowing growth or too short a time leave it open."),
}
_NOT_LEAKING = {
    "no leak": "No leak was seen",
    "levels off": "It grew and levelled off",
    "undecided": "Whether it leaks is undecided",
}
_MOST_PROCESSES = 50  # rows of the table


@dataclass(frozen=True)
class Growth:
    metric: str
    word: Word
    sentence: str


@dataclass(frozen=True)
class Watch:
    title: str
    headline: str
    warnings: Sequence[str]
    growth: Sequence[Growth]
    facts: Sequence[tuple[str, Datum]]
    charts: Sequence[Chart]
    processes: Table
    processes_note: str


def build_watch(data: WatchData) -> Watch:
    watch, summary = data.watch, data.watch["summary"]
    title = shlex.join(watch["command"]) or f"process {watch['pid']}"
    growth = [_growth(entry, watch) for entry in summary["growth"]] if summary else []
    charts = [tree_chart(data), *([chart] if (chart := processes_chart(data)) else [])]
    table, note = _process_table(data)
    return Watch(title, _headline(data), _warnings(data), growth, _facts(data), charts, table, note)


def _headline(data: WatchData) -> str:
    summary = data.watch["summary"]
    if summary is None:
        return "Watching was cut short. This is what had been seen until then."
    peak = summary["proportional_peak"] or summary["resident_peak"]
    return f"{_leaks(summary['growth'][0])} It held {units.bytes_(peak['bytes'])} at the peak."


def _leaks(growth: dict[str, Any]) -> str:
    """Does it leak? With the growth that would not have shown: a short watch excludes little."""
    if growth["verdict"] == "leak":
        return f"It leaks {units.bytes_(growth['slope_bytes_per_min'])} a minute."
    found = _NOT_LEAKING[growth["verdict"]]
    if growth["more_needed_min"] is not None:
        return f"{found}: watch it {units.plain(growth['more_needed_min'])} minutes longer."
    if growth["detectable_bytes_per_min"] is None:
        return "It was watched too briefly to tell any leak."
    return f"{found}; a leak of less than {units.bytes_(growth['detectable_bytes_per_min'])} a minute would not have shown."


def _growth(entry: dict[str, Any], watch: dict[str, Any]) -> Growth:
    low, high = entry["low_bytes_per_min"], entry["high_bytes_per_min"]
    sentence = "there are too few samples for a slope"
    if low is not None and high is not None:
        sentence = (
            f"{units.bytes_(entry['slope_bytes_per_min'])} per minute, {units.percent(watch['interval_level'])} "
            f"interval {units.bytes_(low)} … {units.bytes_(high)}; "
            f"{units.bytes_(watch['harmless_bytes_per_min'])} per minute counts as harmless"
        )
    if entry["more_needed_min"] is not None:
        sentence += f"; about {units.plain(entry['more_needed_min'])} more minutes would decide it"
    return Growth(entry["metric"], _VERDICTS[entry["verdict"]], sentence + ".")


def _warnings(data: WatchData) -> list[str]:
    watch, summary = data.watch, data.watch["summary"]
    warnings = []
    if data.cut_off:
        warnings.append("The last line of timeline.jsonl was incomplete and is left out.")
    if summary is None:
        return warnings
    if breach := summary["breach"]:
        process = breach["process"]
        how = "between two polls, by process" if breach["by_high_water_mark"] else "together; the largest was"
        warnings.append(
            f"Over budget at {units.plain(breach['time_s'])} s: {units.bytes_(breach['held_bytes'])} of "
            f"{units.bytes_(watch['budget_bytes'])}, {how} {process['pid']} ({process['command']})."
        )
    if left := summary["left_behind"]:
        held = units.bytes_(sum(process["resident_bytes"] for process in left))
        warnings.append(f"Outlived the command: {len(left)} of its processes, which hold {held} RSS.")
    return warnings


def _facts(data: WatchData) -> list[tuple[str, Datum]]:
    watch, summary = data.watch, data.watch["summary"]
    facts = [("Started", Datum(watch["started"])), ("Sampled every", Datum(f"{watch['interval_ms']} ms"))]
    if summary and (samples := summary.get("samples_per_line", 1)) > 1:
        facts.append(("Drawn", Datum(f"of each {samples} samples the one with the most memory")))
    if watch["budget_bytes"] is not None:
        facts.append(("Budget", bytes_datum(watch["budget_bytes"])))
    if summary is None:
        return facts
    facts.append(("Ended", Datum(f"{summary['end']['words']}, after {units.plain(summary['duration_s'])} s")))
    facts.append(("Longest gap between samples", Datum(f"{units.plain(1e3 * summary['longest_gap_s'])} ms")))
    if peak := summary["proportional_peak"]:
        facts.append(("Peak PSS of the tree, polled", bytes_datum(peak["bytes"])))
    facts.append(("Peak RSS of the tree, polled", bytes_datum(summary["resident_peak"]["bytes"])))
    if process := summary["highest_process"]:
        name = f"High-water mark of {process['pid']} ({process['command']}), by the kernel"
        facts.append((name, bytes_datum(process["high_water_mark_bytes"])))
    facts.append(("Peak swap, polled", bytes_datum(summary["swapped_peak_bytes"])))
    if peak := summary["gpu_peak"]:
        whose = "of the tree" if summary["gpu_is_of_the_tree"] else "of the devices, by all processes"
        facts.append((f"Peak GPU memory {whose}, polled", bytes_datum(peak["bytes"])))
    else:
        facts.append(("GPU memory", Datum("not watched: " + (summary["no_gpu_reason"] or "unknown"))))
    share = summary["own_cpu_s"] / max(summary["duration_s"], 1e-3)
    facts.append(("Watching took", Datum(f"{units.percent(share)} of one core")))
    return facts


def _process_table(data: WatchData) -> tuple[Table, str]:
    last: dict[tuple[int, str], dict[str, Any]] = {}
    highest: dict[tuple[int, str], int] = {}
    for sample in data.samples:
        for process in sample["processes"]:
            key = (process["pid"], process["command"])
            last[key] = process
            highest[key] = max(highest.get(key, 0), process["high_water_mark_bytes"])
    ordered = sorted(last, key=lambda key: (-highest[key], key))
    rows = [
        (
            Datum(str(pid), sort=pid),
            Datum(command),
            bytes_datum(highest[pid, command]),
            bytes_datum(last[pid, command]["resident_bytes"]),
        )
        for pid, command in ordered[:_MOST_PROCESSES]
    ]
    note = f"{len(rows)} of {len(ordered)} shown, the largest. " if len(rows) < len(ordered) else ""
    return Table(("process", "command", "high-water mark (kernel)", "RSS when last seen"), rows), note
