"""Programs of bench/scenarios/programs: their meter, and that each prints what a scenario reads.

No test here says what a claim's verdict is; those that start a framework are left to the suites.
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
SCENARIOS = BENCH / "scenarios" / "programs"
sys.path.insert(0, str(SCENARIOS))

import meter  # noqa: E402

MEBIBYTE = 1 << 20


def run(program, *arguments):
    return subprocess.run(
        ["/usr/bin/python3", SCENARIOS / f"{program}.py", *arguments],
        capture_output=True,
        text=True,
    )


def figures_that_scenarios_read():
    source = (BENCH / "scenarios" / "script.cpp").read_text()
    return set(re.findall(r'\.name = "(\w+)",\s*\.unit', source))


@pytest.mark.parametrize(
    "program, arguments",
    [
        ("free_memory", ["--case", "cycles", "--trim", "on"]),
        ("data_generator", ["--case", "stream"]),
        ("guard", ["--policy", "end", "--block", "sound"]),
        ("guard", ["--policy", "slope", "--block", "slow_leak"]),
        ("leak_monitor", ["--meter", "shares", "--leak", "worker"]),
        ("log_lines", ["--sink", "pipe"]),
        ("forked_readers", ["--data", "objects", "--workers", "1"]),
        ("forked_readers", ["--data", "array", "--start", "spawn"]),
    ],
)
def test_a_program_prints_figures_that_its_scenario_reads(program, arguments):
    result = run(program, *arguments)
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout.splitlines()[-1])
    assert said["why_not_engaged"] == ""
    assert said["figures"]
    assert set(said["figures"]) <= figures_that_scenarios_read()


def test_an_unknown_parameter_is_named():
    result = run("free_memory", "--cse", "large")
    assert result.returncode != 0
    assert "unknown parameter 'cse'" in result.stderr


def test_resident_memory_rises_by_what_is_touched_and_falls_when_it_goes():
    before = meter.resident()
    block = bytearray(b"x") * (64 * MEBIBYTE)
    full = meter.resident()
    assert 60 * MEBIBYTE < full - before < 70 * MEBIBYTE
    del block
    assert meter.resident() < full - 60 * MEBIBYTE


def test_the_peak_remembers_what_is_gone_until_it_is_restarted():
    meter.restart_peak()
    before = meter.peak()
    del_me = bytearray(b"x") * (64 * MEBIBYTE)
    del del_me
    assert meter.peak() - before > 60 * MEBIBYTE
    meter.restart_peak()
    assert meter.peak() - before < 10 * MEBIBYTE


def test_a_page_is_shared_with_a_child_until_one_of_them_writes_to_it():
    block = bytearray(b"x") * (64 * MEBIBYTE)
    begin, child_waits = os.pipe()
    answer, child_answers = os.pipe()
    child = os.fork()
    if child == 0:
        for _ in range(2):
            os.write(child_answers, str(meter.unshared()).encode().ljust(20))
            os.read(begin, 1)
            block[:: 4096] = b"y" * (len(block) // 4096)
        os._exit(0)
    sharing = int(os.read(answer, 20))
    proportional = meter.proportional()
    os.write(child_waits, b".")
    copied = int(os.read(answer, 20))
    alone = meter.proportional()
    os.write(child_waits, b".")
    os.waitpid(child, 0)
    assert sharing < 32 * MEBIBYTE
    assert copied - sharing > 60 * MEBIBYTE
    assert 25 * MEBIBYTE < alone - proportional < 40 * MEBIBYTE


def test_a_slope_is_that_of_the_line_the_values_lie_on():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    rise, start = chance.uniform(-1e6, 1e6), chance.uniform(0, 1e9)
    count = chance.randrange(2, 40)
    values = [start + rise * i for i in range(count)]
    assert meter.slope(values) == pytest.approx(rise, abs=1e-3)
    # Noise that is the same forwards and backwards has no slope.
    noise = [chance.uniform(-1e6, 1e6) for _ in range(count)]
    even = [a + b for a, b in zip(noise, reversed(noise))]
    assert meter.slope([v + n for v, n in zip(values, even)]) == pytest.approx(rise, abs=1e-3)


def test_recorded_facts_answer_every_probe_and_say_where_they_are_from():
    facts = json.loads((BENCH / "probes" / "tensorflow.json").read_text())
    source = (BENCH / "probes" / "ask_tensorflow.py").read_text()
    probes = set(re.findall(r"@probe\ndef (\w+)", source))
    assert {fact["name"] for fact in facts["facts"]} == probes
    assert re.fullmatch(r"TensorFlow \d+\.\d+\.\d+", facts["version"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", facts["recorded"])
    for fact in facts["facts"]:
        assert isinstance(fact["works"], bool)
        assert fact["says"]


def test_claims_ask_only_what_is_recorded():
    facts = json.loads((BENCH / "probes" / "tensorflow.json").read_text())
    known = {fact["name"] for fact in facts["facts"]}
    for claim in (BENCH / "claims").glob("*.toml"):
        assert set(re.findall(r"interface\(name=(\w+)\)", claim.read_text())) <= known, claim
