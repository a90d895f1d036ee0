"""scripts/count_tests.py against logs laid out as `meson test` writes them."""

import json
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "count_tests.py"
PASSED = '<testcase classname="{0}" name="passes" status="run"/>'
FAILED = '<testcase classname="{0}" name="fails" status="run"><failure/></testcase>'
SKIPPED = '<testcase classname="{0}" name="waits" status="run"><skipped/></testcase>'


@pytest.fixture
def logs(tmp_path):
    """Writes the logs of a test run and returns what the script prints for them."""
    folder = tmp_path / "meson-logs"
    folder.mkdir()

    def run(programs, junit=None, pytest_xml=None):
        lines = [json.dumps({"name": name, "result": result}) for name, result in programs]
        (folder / "testlog.json").write_text("\n".join(lines))
        suites = "".join(
            f'<testsuite name="headroom.{name}">{"".join(cases).format(name)}</testsuite>'
            for name, cases in (junit or {}).items()
        )
        (folder / "testlog.junit.xml").write_text(f"<testsuites>{suites}</testsuites>")
        for program, cases in (pytest_xml or {}).items():
            (folder / f"{program}.pytest.xml").write_text(
                f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"
            )
        return subprocess.run([SCRIPT, tmp_path], capture_output=True, text=True)

    return run


def test_single_tests_of_a_googletest_program_are_counted(logs):
    result = logs(
        [("headroom:unit / unit", "OK")],
        junit={
            "headroom:unit / unit.Spec": [PASSED] * 3,
            "headroom:unit / unit.Bfc": [PASSED, SKIPPED],
        },
    )
    assert result.stdout.split() == ["4", "0", "1"]


def test_single_tests_of_a_pytest_program_are_counted(logs):
    result = logs(
        [("headroom:report / report", "OK")], pytest_xml={"report": [PASSED, PASSED, SKIPPED]}
    )
    assert result.stdout.split() == ["2", "0", "1"]


def test_a_program_without_single_tests_counts_once(logs):
    result = logs([("cli", "OK"), ("cuda", "SKIP")], junit={"": [PASSED]})
    assert result.stdout.split() == ["1", "0", "1"]


def test_failed_tests_are_counted_and_named(logs):
    result = logs([("unit", "FAIL")], junit={"unit.Spec": [PASSED, FAILED, FAILED]})
    assert result.stdout.split() == ["1", "2", "0"]
    assert "unit.Spec.fails" in result.stderr


@pytest.mark.parametrize("how", ["FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"])
def test_a_program_that_fails_without_a_failed_test_is_a_failure(logs, how):
    result = logs([("unit", how)], junit={"unit.Spec": [PASSED, PASSED]})
    assert result.stdout.split() == ["2", "1", "0"]
    assert how in result.stderr


def test_programs_whose_names_begin_alike_are_kept_apart(logs):
    result = logs(
        [("unit", "OK"), ("unit2", "OK")], junit={"unit.A": [PASSED], "unit2.A": [PASSED] * 2}
    )
    assert result.stdout.split() == ["3", "0", "0"]


def test_no_log_is_an_error(tmp_path):
    result = subprocess.run([SCRIPT, tmp_path], capture_output=True, text=True)
    assert result.returncode != 0
    assert "no test ran" in result.stderr
