"""Exports that a browser reads: recorded traces in chrome://tracing, by the importer it has built in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chromium import needs_chromium

from reports.exports import perfetto
from reports.read import read_run

if TYPE_CHECKING:
    from selenium import webdriver

# What the viewer makes of the trace it is given.
TRACE_VIEWER = """
const model = new tr.Model();
const options = new tr.importer.ImportOptions();
options.shiftWorldToZero = false;
new tr.importer.Import(model, options).importTraces([arguments[0]]);
return {
  warnings: model.importWarnings.map(warning => warning.message),
  processes: model.getAllProcesses().map(process => ({
    name: process.name,
    instants: process.instantEvents.map(instant => instant.title),
    counters: Object.fromEntries(Object.values(process.counters).map(
        counter => [counter.name, counter.series[0].samples.map(sample => sample.value)])),
    slices: Object.values(process.threads).flatMap(thread => thread.sliceGroup.slices.map(slice => ({
      category: slice.category, title: slice.title, start: slice.start, duration: slice.duration,
      parent: slice.parentSlice ? slice.parentSlice.category : null,
    }))),
  })),
};
"""
NESTING = {("step", None), ("phase", "step"), ("op", "phase")}


@needs_chromium
def test_chromes_own_viewer_reads_every_slice_and_counter(browser: webdriver.Chrome, synthetic_run: Path) -> None:
    written = json.loads(perfetto.write(read_run(synthetic_run)))
    browser.get("chrome://tracing")
    read = browser.execute_script(TRACE_VIEWER, json.dumps(written))
    assert read["warnings"] == []
    events = written["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(process["name"] for process in read["processes"]) == sorted(names.values())
    for pid, name in names.items():
        (process,) = [process for process in read["processes"] if process["name"] == name]
        own = [event for event in events if event["pid"] == pid]
        slices = sorted((s["category"], s["title"], s["start"], s["duration"]) for s in process["slices"])
        wanted = sorted((e["cat"], e["name"], e["ts"] / 1000, e["dur"] / 1000) for e in own if e["ph"] == "X")
        assert [found[:2] for found in slices] == [event[:2] for event in wanted]
        assert [found[2:] for found in slices] == [pytest.approx(event[2:]) for event in wanted]
        assert {(s["category"], s["parent"]) for s in process["slices"]} <= NESTING
        for counter, values in process["counters"].items():
            assert values == [e["args"]["bytes"] for e in own if e["ph"] == "C" and e["name"] == counter]
        assert process["counters"].keys() == {"requested", "allocated", "reserved"}
        assert process["instants"] == [e["name"] for e in own if e["ph"] == "i"]
