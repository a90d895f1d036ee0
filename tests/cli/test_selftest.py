"""headroom selftest: it measures known effects, and the exit code says whether it detected them."""

from __future__ import annotations

from pathlib import Path

from conftest import SOURCE, Headroom, record_of

HEAD = 'name = "selftest"\ndescription = "for tests"\n'
EXPERIMENT = """
[[experiment]]
id = "{id}"
kind = "control"
workload = "resnet(batch=16,depth=18,width=16)"
device = "{device}(capacity=256MiB)"
allocator = "{allocator}"
inject = {inject}
warmup_steps = 1
measured_steps = 2
blocks = 6
"""
BYTES = EXPERIMENT.format(id="bytes", device="meta", allocator="bfc(growth=on)", inject='["none", "leak"]')
SMALL = EXPERIMENT.replace("batch=16,depth=18,width=16", "batch=2,depth=18,width=8")
# Four times as slow: seen on any machine.
TIME = SMALL.format(
    id="time", device="host", allocator="bfc(growth=on)", inject='["none", "none", "slowdown(share=3)"]'
)
# Two arms that are the same.
ALIKE = SMALL.format(id="alike", device="host", allocator="bfc(growth=on)", inject='["none", "none"]')
# An allocator that gives everything back at once cannot be fragmented.
UNSEEN = EXPERIMENT.format(id="unseen", device="meta", allocator="malloc", inject='["none", "fragmentation"]')


def home(place: Path, *experiments: str) -> str:
    suites = place / "home" / "bench" / "suites"
    suites.mkdir(parents=True)
    (suites / "selftest.toml").write_text(HEAD + "".join(experiments))
    return str(place / "home")


def test_the_instrument_tells_in_plain_words_what_it_saw(headroom: Headroom, tmp_path: Path) -> None:
    outcome = headroom("selftest", HEADROOM_HOME=home(tmp_path, BYTES, TIME))
    assert "pass  leak" in outcome.output
    assert "Injected: a block of 64.00 KiB that each step keeps. Detected in" in outcome.output
    assert "Injected: a wait of 300.0 % of the step's own time." in outcome.output
    assert "Simulated over 2000 rounds of 10 pairs" in outcome.output
    # On a machine that is disturbed during every pair, no slowdown can be detected.
    seen = "pass  slowdown(share=3)" in outcome.output
    assert outcome.code == (0 if seen else 12), outcome.output
    assert outcome.last_line.startswith("Passed:" if seen else "Failed: slowdown(share=3)")


def test_it_adds_to_the_calibration_of_the_machine(headroom: Headroom, tmp_path: Path) -> None:
    place = home(tmp_path, BYTES, ALIKE)
    first, second = (
        record_of(headroom("selftest", "--json", "--progress", "none", HEADROOM_HOME=place).output)["calibration"]
        for _ in range(2)
    )
    assert first["aa_comparisons"] == len(first["comparisons"])
    assert second["aa_comparisons"] == first["aa_comparisons"] + len(second["comparisons"])


def test_the_design_is_simulated_where_it_is_told(headroom: Headroom, tmp_path: Path) -> None:
    told = record_of(headroom("selftest", "--json", HEADROOM_HOME=home(tmp_path, BYTES)).output)
    assert {control["arm"]: control["outcome"] for control in told["controls"]} == {"leak": "seen"}
    rates = told["design"]
    assert rates["false_alarms_of_pairs"] < 0.07 < 0.25 < rates["false_alarms_of_one_after_the_other"]
    assert rates["simulated"] is True


def test_what_is_there_and_not_seen_ends_in_exit_code_12(headroom: Headroom, tmp_path: Path) -> None:
    outcome = headroom("selftest", HEADROOM_HOME=home(tmp_path, BYTES, UNSEEN))
    assert outcome.code == 12
    assert "FAIL  fragmentation" in outcome.output
    assert outcome.last_line.startswith("Failed:")


def test_the_suite_of_the_selftest_asks_for_every_kind_of_effect() -> None:
    text = (SOURCE / "bench" / "suites" / "selftest.toml").read_text()
    for effect in ("slowdown", "leak", "fragmentation"):
        assert f'"{effect}"' in text
