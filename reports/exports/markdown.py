"""A job summary in Markdown, as CI systems show it beside a job: below 900 KiB, whatever the run.
It begins with verdicts, changes and failures; configurations are folded away.
Long tables lose rows, whose number is stated."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Sequence

from reports.data import glossary, units
from reports.data.devices import basis
from reports.data.history import read_check
from reports.data.read import Changes, RunData
from reports.views.failures import build_failures
from reports.views.first_screen.findings import build_findings
from reports.views.page import page_of

MAXIMUM_BYTES = 900 * 1024
_MATRIX_METRICS = ("reserved_bytes.overall_peak", "allocated_bytes.overall_peak", "steady_step_time_ns")
_NAMED = 10  # missing and new configurations
_ROWS = 2000  # rows of one table, before the size of the whole page is checked


def write(data: RunData, changes: Changes | None = None) -> str:
    rows = _ROWS
    while True:
        text = "\n".join(_sections(data, changes, rows)) + "\n"
        if len(text.encode()) < MAXIMUM_BYTES:
            return text
        if rows == 0:  # texts in files may have any length
            return text.encode()[: MAXIMUM_BYTES - 64].decode(errors="ignore") + "\n\n(cut off here)\n"
        rows //= 2


def _sections(data: RunData, changes: Changes | None, rows: int) -> list[str]:
    run, verdicts = data.run, data.verdicts or {}
    lines = [f"# {_text(verdicts.get('headline') or 'This run has not been judged yet.')}", ""]
    lines += [f"> {_text(note)}\n" for note in data.notes]
    lines.append(
        f"Run `{_code(run['run_id'])}` of suite {_text(run['suite'])}, {_text(run['started'])}, "
        f"on {_text(run['machine']['cpu'])}, {run['machine']['cores']} cores; "
        f"commit `{_code((run['headroom']['commit'] or 'not known')[:12])}`; {len(data.samples)} samples, "
        f"{run['status']}."
    )
    lines += _held_to(data, rows)
    if changes:
        lines += _changes(changes, rows)
    if verdicts:
        lines += ["", "## Claims", ""]
        found = {finding.id: finding.told for finding in build_findings(page_of(data))}
        claims = [
            (_text(claim["id"]), _text(claim["title"]), f"**{_text(claim['verdict'])}**", _text(found[claim["id"]]))
            for claim in verdicts["claims"]
        ]
        lines += _table(("claim", "", "verdict", "what was found"), claims, rows)
        lines += ["", "## Instrument", ""]
        for state in (verdicts.get("sensitivity"), verdicts["calibration"]):
            if state:
                lines.append(f"- **{_text(state['status'])}**: {_text(state['why'])}")
        lines += _cells(verdicts, data.controls, rows)
    return lines


def _held_to(data: RunData, rows: int) -> list[str]:
    """The result of `headroom history check` for this night, if there is one."""
    check = read_check(data.directory)
    if check is None:
        return []
    lines = ["", "## Against what was accepted", "", _text(check["headline"])]
    for name, findings in (("Worse", check["failures"]), ("Noted, without failing", check["notes"])):
        if findings:
            lines += ["", f"### {name}", ""]
            body = [(_text(item["what"]), _words(item["sentence"]), _text(item["since"])) for item in findings]
            lines += _table(("what", "change", "since"), body, rows)
    for name, items in (("Missing", check["missing"]), ("New", check["new"])):
        if items:
            lines += ["", f"{name} ({len(items)}): " + "; ".join(_text(item) for item in items[:_NAMED])]
            lines[-1] += "." if len(items) <= _NAMED else f" and {len(items) - _NAMED} more."
    return lines


def _changes(changes: Changes, rows: int) -> list[str]:
    lines = ["", f"## Since `{_code(changes.before.run['run_id'])}`", ""]
    told = [cell for cell in changes.cells if cell["outcome"] != "same"]
    same = len(changes.cells) - len(told)
    lines.append(f"{same} of {len(changes.cells)} configurations in both runs are the same to the last bit. Only bytes and counts are compared.")
    lines.append("")
    if told:
        cells = [
            (f"**{cell['outcome']}**", _text(cell["experiment"]), _text(cell["arm"]), _text(cell["sentence"]))
            for cell in told
        ]
        lines += _table(("outcome", "experiment", "variant", "what"), cells, rows)
    for name, items in (("Missing", changes.missing), ("New", changes.added)):
        if items:
            lines += ["", f"{name}: " + "; ".join(_text(item) for item in items[: rows + 1]) + "."]
    return lines


def _cells(verdicts: dict[str, Any], controls: set[str], rows: int) -> list[str]:
    shown = [entry for entry in verdicts["matrix"] if entry["experiment"] not in controls]
    counts = ", ".join(f"{count} {_text(status)}" for status, count in Counter(e["status"] for e in shown).most_common())
    lines = ["", "## Configurations", "", f"{len(shown)} configurations: {counts}." if shown else "No configuration."]
    failed = [
        (_text(item.experiment), _text(item.arm), item.blocks, item.status, _text(item.reason))
        for item in build_failures(verdicts["failures"])
    ]
    if failed:
        lines += ["", "### Without a result", ""]
        lines += _table(("experiment", "variant", "blocks", "status", "reason"), failed, rows)
    if shown:
        # Inside <details>, GitHub renders Markdown only between empty lines.
        lines += ["", "<details>", f"<summary>Every configuration ({len(shown)})</summary>", ""]
        lines += [*_table_of_cells(shown, rows), "", "</details>"]
    return lines


def _table_of_cells(shown: Sequence[dict[str, Any]], rows: int) -> list[str]:
    metrics = [name for name in _MATRIX_METRICS if any(entry["values"].get(name) is not None for entry in shown)]
    body = []
    for entry in shown:
        figures = [units.value_in(entry["values"].get(metric), units.unit_of(metric)) for metric in metrics]
        status = entry["status"] if entry["status"] == "ok" else f"{entry['status']}: {entry['reason'] or ''}"
        cell = entry["cell"]
        kind = basis(cell)
        body.append(
            (
                _text(cell["workload"]),
                _text(cell["allocator"]),
                f"{_text(cell['device'])}, {kind}",
                _text(status),
                *figures,
            )
        )
    headers = ("workload", "allocator", "device", "status", *(glossary.metric(metric) for metric in metrics))
    return _table(headers, body, rows)


def _table(headers: Sequence[str], body: Sequence[Sequence[str]], rows: int) -> list[str]:
    lines = ["| " + " | ".join(headers) + " |", "|" + " --- |" * len(headers)]
    lines += ["| " + " | ".join(row) + " |" for row in body[:rows]]
    if len(body) > rows:
        lines += ["", f"{rows} of {len(body)} rows shown."]
    return lines


def _words(sentence: str) -> str:
    return _text(glossary.in_words(sentence))


def _text(text: str) -> str:
    """Escapes names from files, so that they do not become markup."""
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return " ".join(re.sub(r"[\\`*_~\[\]<>|#&]", lambda found: entities.get(found[0], "\\" + found[0]), text).split())


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").replace("|", "/").split())
