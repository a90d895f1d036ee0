"""The page of a watched process tree."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from test_page import HOSTILE, Page

from reports.__main__ import main
from reports.data.read import InputError
from reports.data.watch import read_watch

MIB = 2**20


def process(pid: int, resident: int, command: str = "python3") -> dict[str, Any]:
    return {
        "pid": pid, "command": command, "resident_bytes": resident, "high_water_mark_bytes": resident + MIB,
        "swapped_bytes": 0, "proportional_bytes": None,
    }


def sample(time_s: float, *processes: dict[str, Any], proportional: int | None = None) -> dict[str, Any]:
    return {
        "schema_version": "1.0", "kind": "watch_sample", "time_s": time_s,
        "resident_bytes": sum(one["resident_bytes"] for one in processes), "swapped_bytes": 0,
        "proportional_bytes": proportional, "gpu_used_bytes": None, "gpu_tree_bytes": None,
        "processes": list(processes),
    }


def summary() -> dict[str, Any]:
    return {
        "end": {"words": "exit status 0", "exit_status": 0, "signal": None}, "duration_s": 12.5, "own_cpu_s": 0.1,
        "longest_gap_s": 0.13, "processes_seen": 2,
        "resident_peak": {"bytes": 900 * MIB, "time_s": 3.5, "processes": 2}, "proportional_peak": None,
        "swapped_peak_bytes": 0, "gpu_peak": None, "gpu_is_of_the_tree": False, "no_gpu_reason": "no NVML",
        "highest_process": process(7, 800 * MIB),
        "growth": [
            {"metric": "RSS of the tree", "verdict": "leak", "slope_bytes_per_min": 5.0 * MIB,
             "low_bytes_per_min": 4.0 * MIB, "high_bytes_per_min": 6.0 * MIB, "detectable_bytes_per_min": 2.0 * MIB,
             "warmup_growth_bytes": 0.0, "more_needed_min": None}
        ],
        "breach": None, "left_behind": [],
    }


def write(directory: Path, samples: list[dict[str, Any]], **changes: Any) -> Path:
    directory.mkdir()
    watch = {
        "schema_version": "1.0", "kind": "watch", "command": ["python", "train.py"], "pid": 7,
        "started": "2026-11-21T10:00:00Z", "interval_ms": 100, "budget_bytes": None,
        "harmless_bytes_per_min": 1.0 * MIB, "interval_level": 0.95, "summary": summary(),
    }
    (directory / "watch.json").write_text(json.dumps(watch | changes))
    (directory / "timeline.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    return directory


def page_of(directory: Path) -> Page:
    assert main(["watch", str(directory)]) == 0
    return Page((directory / "report.html").read_text())


def words(page: Page) -> str:
    return " ".join(" ".join(page.text).replace("\u202f", " ").split())


TWO = [sample(0.1 * i, process(7, 800 * MIB + i), process(8, 100 * MIB)) for i in range(20)]


def test_it_says_the_peak_the_verdict_and_what_is_not_known(tmp_path: Path) -> None:
    text = words(page_of(write(tmp_path / "w", TWO)))
    assert "It leaks 5 MiB a minute. It held 900 MiB at the peak." in text
    assert "5 MiB per minute" in text and "1 MiB per minute counts as harmless" in text
    assert "not watched: no NVML" in text
    assert "polled" in text


@pytest.mark.parametrize(
    ("growth", "answer"),
    [
        ({"verdict": "no leak"}, "No leak was seen; a leak of less than 2 MiB a minute would not have shown."),
        ({"verdict": "levels off"}, "It grew and levelled off; a leak of less than 2 MiB a minute would not have shown."),
        ({"verdict": "levels off", "detectable_bytes_per_min": None}, "It was watched too briefly to tell any leak."),
        ({"verdict": "undecided", "more_needed_min": 3.5}, "Whether it leaks is undecided: watch it 3.50 minutes longer."),
        ({"verdict": "undecided"}, "Whether it leaks is undecided; a leak of less than 2 MiB a minute would not have shown."),
    ],
)
def test_the_answer_says_what_could_not_have_been_seen(tmp_path: Path, growth: dict[str, Any], answer: str) -> None:
    found = [summary()["growth"][0] | growth]
    assert answer in words(page_of(write(tmp_path / "w", TWO, summary=summary() | {"growth": found})))


def test_it_asks_the_network_for_nothing_and_carries_its_own_style_and_script(tmp_path: Path) -> None:
    page = page_of(write(tmp_path / "w", TWO))
    for tag, attributes in page.elements:
        for name in ("src", "href", "action"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith("#"), (tag, value)
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes)
    assert sum(1 for tag, _ in page.elements if tag == "style") == 1


def test_what_a_command_is_called_cannot_become_markup(tmp_path: Path) -> None:
    samples = [sample(0.1 * i, process(7, MIB, HOSTILE), process(8, MIB, HOSTILE)) for i in range(3)]
    directory = write(tmp_path / "w", samples, command=[HOSTILE])
    page = page_of(directory)
    assert "img" not in [tag for tag, _ in page.elements]
    assert not re.search(r"<script>alert", (directory / "report.html").read_text())


def test_the_highest_look_is_drawn_however_many_there_are(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    spike = random.Random(seed).randrange(100, 9900)
    samples = [sample(0.1 * i, process(7, 10 * MIB if i != spike else 777 * MIB)) for i in range(10_000)]
    directory = write(tmp_path / "w", samples)
    page = page_of(directory)
    assert f"{len(samples):,} samples are drawn; every peak is kept" in words(page), seed
    hover = re.search(r'<script type="application/json">(\{"x".*?)</script>', (directory / "report.html").read_text())
    assert hover is not None
    assert max(json.loads(hover[1])["series"][0]["values"]) == 777, seed
    assert (directory / "report.html").stat().st_size < 2 * MIB


def test_a_long_watch_says_for_how_many_samples_a_point_stands(tmp_path: Path) -> None:
    page = page_of(write(tmp_path / "w", TWO, summary=summary() | {"samples_per_line": 64}))
    assert "of each 64 samples the one with the most memory" in words(page)


def test_one_look_or_a_watch_cut_short_still_make_a_page(tmp_path: Path) -> None:
    assert "cut short" in words(page_of(write(tmp_path / "a", TWO[:1], summary=None)))


def test_a_torn_last_line_is_left_out_and_told(tmp_path: Path) -> None:
    directory = write(tmp_path / "w", TWO)
    timeline = directory / "timeline.jsonl"
    timeline.write_text(timeline.read_text()[:-30])
    assert len(read_watch(directory).samples) == len(TWO) - 1
    assert "incomplete" in words(page_of(directory))


def test_a_passed_budget_is_the_first_thing_told(tmp_path: Path) -> None:
    breach = {"time_s": 1.5, "held_bytes": 900 * MIB, "by_high_water_mark": False, "process": process(7, 800 * MIB)}
    directory = write(tmp_path / "w", TWO, budget_bytes=512 * MIB, summary=summary() | {"breach": breach})
    assert "Over budget at 1.50 s: 900 MiB of 512 MiB" in words(page_of(directory))


@pytest.mark.parametrize("broken", ["{", '{"kind": "watch"}', '{"schema_version": "1.0", "kind": "run"}'])
def test_what_is_no_watched_tree_is_refused_by_name(tmp_path: Path, broken: str) -> None:
    directory = write(tmp_path / "w", TWO)
    (directory / "watch.json").write_text(broken)
    with pytest.raises(InputError, match="watch.json"):
        read_watch(directory)
    assert main(["watch", str(directory)]) == 2
