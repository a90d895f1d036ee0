"""Each export, read by a reader of its format."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fixture import run_of, write_files, write_fixture
from fixture_history import write_history

from reports.__main__ import main
from reports.data.read import Changes, RunData, read_run
from reports.exports import google_benchmark, junit, markdown, perfetto, table

COMPARE = Path("/usr/share/benchmark/compare.py")


@pytest.fixture(scope="module")
def data(synthetic_run: Path) -> RunData:
    return read_run(synthetic_run)


def altered(data: RunData, tmp_path: Path, *, status: str = "", verdict: str = "", name: str = "") -> RunData:
    """A copy of the run with another status of the first sample, or another verdict or title of the first claim."""
    samples, verdicts = json.loads(json.dumps([data.samples, data.verdicts]))
    if status:
        samples[0].update(status=status, reason="made up")
    if verdict:
        verdicts["claims"][0]["verdict"] = verdict
    if name:
        verdicts["claims"][0]["title"] = name
    write_files(tmp_path / "altered", data.run, samples, verdicts)
    return read_run(tmp_path / "altered")


def changes_from(before: RunData, cells: list[dict[str, Any]]) -> Changes:
    return Changes(before, cells, ["only/before [a]"], ["only/after [b]"], [], "Times are not compared.")


def test_several_exports_are_written_at_once_and_the_page_only_when_asked(tmp_path: Path) -> None:
    directory = write_fixture(tmp_path / "run", batches=(4,))
    names = {"--md": "s.md", "--junit": "j.xml", "--csv": "s.csv"}
    arguments = [word for option, name in names.items() for word in (option, str(tmp_path / name))]
    assert main([str(directory), *arguments]) == 0
    assert all((tmp_path / name).stat().st_size > 0 for name in names.values())
    assert not (directory / "report.html").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = write_fixture(tmp_path / "run", batches=(4,))
    assert main([str(directory), "--csv", str(tmp_path / "nowhere" / "s.csv")]) == 2
    assert "nowhere/s.csv: cannot be written" in capsys.readouterr().err


class TestCsv:
    def test_there_is_a_row_for_every_sample_with_its_figures(self, data: RunData) -> None:
        rows = list(csv.DictReader(table.write(data).splitlines()))
        assert len(rows) == len(data.samples)
        for row, sample in zip(rows, data.samples):
            assert row["cell.cell_id"] == sample["cell"]["cell_id"]
            assert [int(time) for time in row["step_time_ns"].split()] == sample["step_time_ns"]
            if sample["memory"]:
                peak = sample["memory"]["reserved_bytes"]["overall_peak"]
                assert int(row["memory.reserved_bytes.overall_peak"]) == peak

    def test_an_axis_this_report_does_not_know_has_its_column(self, data: RunData, tmp_path: Path) -> None:
        samples = json.loads(json.dumps(data.samples))
        for sample in samples:
            sample["cell"]["accumulation"] = "micro_batches(k=4)"
        write_files(tmp_path, data.run, samples, None)
        rows = csv.DictReader(table.write(read_run(tmp_path)).splitlines())
        assert {row["cell.accumulation"] for row in rows} == {"micro_batches(k=4)"}


class TestJUnit:
    def cases(self, text: str) -> dict[str, Any]:
        junitparser = pytest.importorskip("junitparser", reason="python3-junitparser is not installed")
        parsed = junitparser.JUnitXml.fromstring(text.encode())
        for suite in parsed:
            results = [case.result for case in suite]
            assert suite.tests == len(results)
            for kind, count in ((junitparser.Failure, suite.failures), (junitparser.Error, suite.errors)):
                assert sum(any(isinstance(result, kind) for result in found) for found in results) == count
        return {case.name: [type(result).__name__ for result in case.result] for suite in parsed for case in suite}

    def test_results_pass_and_what_cannot_be_tested_is_skipped(self, data: RunData) -> None:
        cases = self.cases(junit.write(data))
        assert cases["limits [small]"] == []  # out of memory is a result
        assert cases["limits [gpu]"] == ["Skipped"]
        claims = {claim["id"]: claim["verdict"] for claim in data.verdicts["claims"]}
        for name, results in cases.items():
            verdict = claims.get(name.split(":")[0], "")
            if verdict:
                assert results == (["Skipped"] if verdict.startswith("NOT-TESTABLE") else [])

    def test_a_crash_is_an_error(self, data: RunData, tmp_path: Path) -> None:
        cases = self.cases(junit.write(altered(data, tmp_path, status="crash")))
        assert [results for results in cases.values() if "Error" in results] == [["Error"]]

    def test_a_verdict_that_changed_and_a_cell_that_got_worse_are_failures(self, data: RunData, tmp_path: Path) -> None:
        cell = {"experiment": "S03/host", "arm": "malloc", "outcome": "worse", "sentence": "twice", "changes": []}
        changes = changes_from(altered(data, tmp_path, verdict="REPRODUCED"), [cell])
        cases = self.cases(junit.write(data, changes))
        failed = [name for name, results in cases.items() if results == ["Failure"]]
        assert sorted(name.split(":")[0] for name in failed) == ["S02", "S03/host [malloc]"]

    def test_what_xml_has_no_place_for_is_replaced(self, data: RunData, tmp_path: Path) -> None:
        assert any("a\ufffdb<&>" in name for name in self.cases(junit.write(altered(data, tmp_path, name="a\0b<&>"))))


class TestGoogleBenchmark:
    def test_every_timed_sample_is_a_repetition_and_simulated_ones_are_counted_out(self, data: RunData) -> None:
        written = json.loads(google_benchmark.write(data))
        host = [s for s in data.samples if s["cell"]["device_class"] == "host" and s["status"] == "ok"]
        assert len(written["benchmarks"]) == len(host)
        assert written["context"]["headroom_samples_without_times"] == len(data.samples) - len(host)
        for record, sample in zip(written["benchmarks"], host):
            steady = sample["step_time_ns"][sample["warmup_steps"] :]
            assert record["real_time"] * record["iterations"] == pytest.approx(sum(steady))

    @pytest.mark.skipif(not COMPARE.exists(), reason="libbenchmark-tools is not installed")
    def test_its_own_tool_compares_two_exports(self, data: RunData, tmp_path: Path) -> None:
        pytest.importorskip("scipy", reason="compare.py needs python3-scipy")
        slower = json.loads(google_benchmark.write(data))
        (tmp_path / "a.json").write_text(json.dumps(slower))
        for record in slower["benchmarks"]:
            record["real_time"] *= 2
        (tmp_path / "b.json").write_text(json.dumps(slower))
        files = [str(tmp_path / name) for name in ("a.json", "b.json")]
        command = [sys.executable, str(COMPARE), "--no-color", "benchmarks", *files]
        said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert said.returncode == 0, said.stderr
        lines = [line for line in said.stdout.splitlines() if line.startswith("S03/host/malloc")]
        assert any("+1.0000" in line for line in lines)
        assert any("_pvalue" in line for line in lines)


class TestPerfetto:
    @pytest.fixture(scope="class")
    def written(self, data: RunData) -> dict[str, Any]:
        return json.loads(perfetto.write(data))

    def test_slices_of_a_process_nest(self, written: dict[str, Any]) -> None:
        slices = [event for event in written["traceEvents"] if event["ph"] == "X"]
        assert {event["cat"] for event in slices} == {"step", "phase", "op"}
        for pid in {event["pid"] for event in slices}:
            own = [event for event in slices if event["pid"] == pid]
            open_until: list[float] = []
            for event in sorted(own, key=lambda event: (event["ts"], -event["dur"])):
                while open_until and open_until[-1] <= event["ts"] + 1e-9:
                    open_until.pop()
                end = event["ts"] + event["dur"]
                assert event["dur"] > 0 and all(end <= outer + 1e-6 for outer in open_until)
                open_until.append(end)

    def test_counters_rise_in_time_and_reach_the_recorded_peak(self, written: dict[str, Any], data: RunData) -> None:
        names = {e["pid"]: e["args"]["name"] for e in written["traceEvents"] if e["name"] == "process_name"}
        assert len(names) == written["otherData"]["cells_shown"] > 3
        for pid, name in names.items():
            sample = next(s for s in data.samples if name.startswith(f"{s['experiment']} [{s['arm']}]:"))
            for counter in ("requested", "allocated", "reserved"):
                series = [e for e in written["traceEvents"] if e["ph"] == "C" and (e["pid"], e["name"]) == (pid, counter)]
                times = [event["ts"] for event in series]
                assert times == sorted(set(times))
                peak = max(event["args"]["bytes"] for event in series)
                assert peak == sample["memory"][f"{counter}_bytes"]["overall_peak"]

    def test_a_trace_too_many_is_named_and_not_cut(self, data: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(perfetto, "MAXIMUM_EVENTS", 1)
        written = json.loads(perfetto.write(data))
        assert written["otherData"]["cells_shown"] == 1
        assert len(written["otherData"]["cells_left_out"]) > 3
        assert "S03/host" in written["traceEvents"][0]["args"]["name"]


class Rendered(HTMLParser):
    """A summary as GitHub's renderer shows it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        cmarkgfm = pytest.importorskip("cmarkgfm", reason="python3-cmarkgfm is not installed")
        self.tables: list[list[list[str]]] = []  # rows of cells, the header first
        self.folded: list[str] = []  # what is inside <details>
        self.strong: list[str] = []
        self._open: list[str] = []
        self.feed(cmarkgfm.github_flavored_markdown_to_html(text, options=cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE))
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass  # holds no text

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, text: str) -> None:
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += text
        if "details" in self._open:
            self.folded.append(text)
        if "strong" in self._open:
            self.strong.append(text)

    def table(self, first_header: str) -> list[list[str]]:
        (found,) = [rows for rows in self.tables if rows[0][0] == first_header]
        return found


class TestMarkdown:
    def test_it_tells_each_claim_with_its_verdict(self, data: RunData) -> None:
        text = markdown.write(data)
        for claim in data.verdicts["claims"]:
            (line,) = [line for line in text.splitlines() if line.startswith(f"| {claim['id']} ")]
            assert f"**{claim['verdict']}**" in line

    def test_a_large_run_stays_below_the_limit_and_counts_what_is_left_out(self, data: RunData, tmp_path: Path) -> None:
        verdicts = json.loads(json.dumps(data.verdicts))
        verdicts["matrix"] *= 1 + 20_000 // len(verdicts["matrix"])
        for entry in verdicts["matrix"]:
            entry["cell"] = entry["cell"] | {"workload": "resnet(" + "x" * 900 + ")"}
        write_files(tmp_path, run_of(1), data.samples, verdicts)
        text = markdown.write(read_run(tmp_path))
        assert len(text.encode()) < 900 * 1024
        assert f"of {len(verdicts['matrix'])} rows shown" in text

    def test_the_cells_are_folded_away_after_all_that_is_read_first(self, data: RunData) -> None:
        lines = markdown.write(data).splitlines()
        fold, end = lines.index("<details>"), lines.index("</details>")
        assert lines[fold + 2] == "" and lines[fold + 3].startswith("| workload |")  # or GitHub shows bars
        shown = [line for line in lines[fold + 5 : end] if line]
        assert len(shown) == len(data.verdicts["matrix"])
        assert f"{len(shown)} configurations: " in "\n".join(lines[:fold])
        assert not any(line for line in lines[end + 1 :])

    def test_what_failed_in_every_block_is_one_line(self, data: RunData, tmp_path: Path) -> None:
        verdicts = json.loads(json.dumps(data.verdicts))
        verdicts["failures"] = [
            {"experiment": "made/up", "arm": "bfc", "block": block, "status": "invalid", "reason": reason}
            for block, reason in ((0, "it did nothing"), (1, "it did nothing"), (2, "it did nothing"), (4, "it did nothing"), (3, "a"))
        ]
        write_files(tmp_path, data.run, data.samples, verdicts)
        told = [line for line in markdown.write(read_run(tmp_path)).splitlines() if line.startswith("| made/up")]
        assert told == ["| made/up | bfc | 0 to 2 and 4 | invalid | it did nothing |", "| made/up | bfc | 3 | invalid | a |"]

    def test_a_night_says_what_is_worse_than_accepted_before_its_claims(self, tmp_path: Path) -> None:
        run = write_fixture(tmp_path / "run", batches=(4,))
        check = write_history(run)
        text = markdown.write(read_run(run))
        assert check["headline"] in text[: text.index("## Claims")]
        for finding in check["failures"]:
            assert f"| {markdown._text(finding['what'])} |" in text[: text.index("## Claims")]
        assert "Missing (1): synthetic/&lt;gone&gt;" in text

    def test_a_renderer_shows_a_row_for_each_claim_with_its_verdict_in_bold(self, data: RunData) -> None:
        shown = Rendered(markdown.write(data))
        _header, *rows = shown.table("claim")
        claims = data.verdicts["claims"]
        assert [(row[0], row[2]) for row in rows] == [(claim["id"], claim["verdict"]) for claim in claims]
        assert [claim["verdict"] for claim in claims] == shown.strong[: len(claims)]

    def test_a_renderer_shows_the_cells_as_a_table_that_is_folded_away(self, data: RunData) -> None:
        shown = Rendered(markdown.write(data))
        rows = shown.table("workload")
        assert len(rows) == 1 + len(data.verdicts["matrix"])
        assert {len(row) for row in rows} == {len(rows[0])}
        assert rows[1][0] in shown.folded

    @pytest.mark.parametrize("name", ["a | <b> `c` [d](e)", "**a** __b__ ~~c~~", "![a](b)", "<!-- a", "a\\| b", "a\n\nb"])
    def test_a_renderer_shows_names_from_files_as_they_are(self, data: RunData, tmp_path: Path, name: str) -> None:
        shown = Rendered(markdown.write(altered(data, tmp_path, name=name)))
        assert shown.table("claim")[1][1] == " ".join(name.split())

    def test_names_from_files_are_not_markup(self, data: RunData, tmp_path: Path) -> None:
        text = markdown.write(altered(data, tmp_path, name="a | <b> `c` [d](e)"))
        assert r"a \| &lt;b&gt; \`c\` \[d\](e)" in text

    def test_what_changed_since_another_run_is_told(self, data: RunData) -> None:
        cell = {"experiment": "S03/host", "arm": "malloc", "outcome": "worse", "sentence": "twice", "changes": []}
        text = markdown.write(data, changes_from(data, [cell]))
        assert "| **worse** | S03/host | malloc | twice |" in text
        assert "Missing: only/before" in text
