"""What the reader accepts, and how it refuses the rest."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable

import pytest

from reports.__main__ import main
from reports.data.read import InputError, read_run

Change = Callable[[dict[str, Any]], None]


def rewrite(file: Path, change: Change) -> None:
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))


def rewrite_line(file: Path, number: int, line: str) -> None:
    lines = file.read_text().split("\n")
    lines[number - 1] = line
    file.write_text("\n".join(lines))


def test_reads_a_whole_run(synthetic_run: Path) -> None:
    data = read_run(synthetic_run)
    assert data.run["suite"] == "synthetic"
    assert len(data.samples) == data.run["planned_samples"]
    assert data.verdicts is not None and not data.notes


def test_a_run_without_verdicts_is_read_and_says_so(small_run: Path) -> None:
    data = read_run(small_run)
    assert data.verdicts is None
    assert any("judged" in note for note in data.notes)


def test_a_record_cut_off_at_the_end_is_left_out_and_named(small_run: Path) -> None:
    file = small_run / "samples.jsonl"
    whole = len(read_run(small_run).samples)
    file.write_text(file.read_text()[:-40])
    data = read_run(small_run)
    assert len(data.samples) == whole - 1
    assert any("incomplete" in note for note in data.notes)


def test_a_broken_record_in_the_middle_is_refused_with_its_line(small_run: Path) -> None:
    rewrite_line(small_run / "samples.jsonl", 2, '{"kind": "sample",')
    with pytest.raises(InputError, match=r"samples\.jsonl, line 2"):
        read_run(small_run)


def test_of_many_records_the_one_that_does_not_fit_is_named(small_run: Path) -> None:
    file = small_run / "samples.jsonl"
    lines = file.read_text().splitlines() * 40
    wrong = json.loads(lines[0]) | {"block": "first"}
    file.write_text("\n".join([*lines, json.dumps(wrong), *lines]) + "\n")
    assert len(lines) > 1000
    with pytest.raises(InputError, match=rf"samples\.jsonl, line {len(lines) + 1}: .* at block"):
        read_run(small_run)


def test_a_field_of_the_wrong_kind_is_refused_with_line_and_place(small_run: Path) -> None:
    file = small_run / "samples.jsonl"
    record = json.loads(file.read_text().split("\n")[2])
    record["memory"]["reserved_bytes"]["initial"] = -5
    rewrite_line(file, 3, json.dumps(record))
    with pytest.raises(InputError, match=r"line 3.*memory.reserved_bytes.initial") as refused:
        read_run(small_run)
    assert "-5" in str(refused.value)


def test_a_missing_field_is_named(small_run: Path) -> None:
    rewrite(small_run / "run.json", lambda run: run.pop("machine"))
    with pytest.raises(InputError, match=r"run\.json.*'machine' is a required property"):
        read_run(small_run)


def test_not_a_number_is_refused(small_run: Path) -> None:
    file = small_run / "run.json"
    file.write_text(file.read_text().replace("501.0", "NaN"))
    with pytest.raises(InputError, match="NaN"):
        read_run(small_run)


def test_unknown_fields_and_newer_minor_versions_are_accepted(small_run: Path) -> None:
    rewrite(small_run / "run.json", lambda run: run.update(schema_version="1.7", tomorrow={"a": 1}))
    assert read_run(small_run).run["tomorrow"] == {"a": 1}


def test_another_major_version_is_refused_and_named(small_run: Path) -> None:
    rewrite(small_run / "run.json", lambda run: run.update(schema_version="2.0"))
    with pytest.raises(InputError, match=r"2\.0.*reads version 1"):
        read_run(small_run)


@pytest.mark.parametrize(
    "text", ["[1, 2]", '"run"', '{"benchmarks": []}', '{"kind": "sample", "schema_version": "1.0"}']
)
def test_foreign_files_are_refused(small_run: Path, text: str) -> None:
    (small_run / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run\.json"):
        read_run(small_run)


def test_bytes_that_are_no_text_are_refused(small_run: Path) -> None:
    (small_run / "run.json").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_run(small_run)


def test_of_two_records_of_one_sample_the_later_counts(small_run: Path) -> None:
    file = small_run / "samples.jsonl"
    first = json.loads(file.read_text().split("\n")[0])
    with file.open("a") as stream:
        stream.write(json.dumps({**first, "seed": 4711}) + "\n")
    seeds = [sample["seed"] for sample in read_run(small_run).samples]
    assert seeds.count(4711) == 1 and first["seed"] != seeds[0]


def test_a_folder_that_is_no_run_ends_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "run.json is missing" in capsys.readouterr().err


def test_a_missing_folder_ends_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_ends_with_exit_code_2(
    small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = small_run / "absent" / "report.html"
    assert main([str(small_run), "--html", str(target)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_failed_write_keeps_the_older_report(
    small_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = small_run / "report.html"
    report.write_text("older")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert main([str(small_run)]) == 2
    assert "No space left" in capsys.readouterr().err
    assert report.read_text() == "older"
    assert not list(small_run.glob(".report-*"))
