"""bench/micro/growth.py, with a program in place of the micro-benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "bench" / "micro"))

import growth  # noqa: E402
import growth_page  # noqa: E402

FAST = {"tcmalloc": 70.0, "caching": 48.0, "expandable": 60.0, "bfc(growth=on)": 34.0, "pool": 30.0, "planned": 13.0}


def check(build: Path, nanoseconds: dict[str, float]) -> subprocess.CompletedProcess[str]:
    found = [
        {"run_name": f"allocators/training_step/{name}", "aggregate_name": "median", "s_per_pair": value * 1e-9}
        for name, value in nanoseconds.items()
    ]
    program = build / "bench" / "micro" / "micro_benchmarks"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "out = next(word for word in sys.argv if word.startswith('--benchmark_out=')).partition('=')[2]\n"
        f"open(out, 'w').write({json.dumps({'benchmarks': found})!r})\n"
    )
    program.chmod(0o755)
    return subprocess.run(
        [sys.executable, SOURCE / "bench/micro/growth.py", "check", "--build", build], capture_output=True, text=True
    )


def test_allocators_within_their_limits_are_accepted(tmp_path: Path) -> None:
    answered = check(tmp_path, FAST)
    assert answered.returncode == 0 and "caching: 0.69 of tcmalloc's time, at most 1.3" in answered.stdout


@pytest.mark.parametrize("name, nanoseconds", [("caching", 92.0), ("bfc(growth=on)", 71.0)])
def test_an_allocator_above_its_limit_is_told_by_the_exit_code(tmp_path: Path, name: str, nanoseconds: float) -> None:
    assert check(tmp_path, FAST | {name: nanoseconds}).returncode == 1


def test_without_tcmalloc_nothing_is_compared(tmp_path: Path) -> None:
    answered = check(tmp_path, {name: value for name, value in FAST.items() if name != "tcmalloc"})
    assert answered.returncode == 2 and "apt-get install libtcmalloc-minimal4" in answered.stderr


def test_the_slope_is_the_exponent_of_growth() -> None:
    rows = [{"size": size, "seconds": 3e-9 * size**1.5} for size in (100, 1_000, 10_000)]
    assert growth_page.slope(rows) == pytest.approx(1.5)


def test_a_history_has_about_the_events_that_were_asked_for_and_frees_only_what_lives(tmp_path: Path) -> None:
    growth.history_of(15_500, tmp_path / "log.csv")
    live: set[str] = set()
    lines = (tmp_path / "log.csv").read_text().splitlines()[1:]
    for line in lines:
        _, _, action, block, _, _ = line.split(",")
        assert (block in live) == (action == "free")
        live ^= {block}
    assert 15_500 <= len(lines) <= 15_500 + 6_200


def test_the_processor_time_of_a_command_has_that_of_the_processes_that_it_starts() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    assert growth.processor_time([sys.executable, "-c", starts]) > 0.25


def test_the_record_becomes_a_figure_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"processor": "a processor", "date": "2001-01-01", "commit": "0000000", "load": 0.1}
    steps = [{"what": name, "size": 0, "seconds": value * 1e-9} for name, value in FAST.items()]
    rows = [{"what": "report", "size": size, "seconds": size / 100, "html_bytes": 4e6} for size in (300, 1_000, 3_000)]
    record, page, figure = tmp_path / "record.json", tmp_path / "page.md", tmp_path / "growth.svg"
    record.write_text(json.dumps({"report": about | {"rows": rows}, "allocators": about | {"rows": steps}}))
    page.write_text(f"before\n{growth_page.BEGIN}\nold\n{growth_page.END}\nafter\n")
    monkeypatch.setattr(growth, "RECORD", record)
    for name, path in (("PAGE", page), ("FIGURE", figure)):
        monkeypatch.setattr(growth_page, name, path)
    monkeypatch.setattr(sys, "argv", ["growth.py", "draw"])
    assert growth.main() == 0
    text = page.read_text()
    assert "| report | report | configurations | 300: 3 s; 1,000: 10 s; 3,000: 30 s | 1.00 | 4.0 MB |" in text
    assert "| caching | 0.69 | 1.3 |" in text and "commit 0000000" in text
    assert "old" not in text and text.startswith("before") and text.endswith("after\n")
    assert figure.read_text().lstrip().startswith("<?xml")
