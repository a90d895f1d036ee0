#!/usr/bin/python3
"""Counts what `meson test` ran in a build directory: prints "PASSED FAILED SKIPPED".

Reads meson-logs/testlog.json (one line per test program), testlog.junit.xml (the single tests of
GoogleTest programs) and NAME.pytest.xml (those of the pytest program NAME). A program that
reports no single tests counts as one test. A program that failed without a failed test (a crash,
a timeout, a leak found at exit) counts as one more failure. Failures are named on stderr.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

PROGRAM_OUTCOME = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def outcome(case):
    """passed, failed or skipped: what a JUnit <testcase> element says."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "passed"


def single_tests(logs, name):
    """(name, outcome) of the tests inside the program `name` of testlog.json; empty when it does
    not report them."""
    pytest_xml = logs / f"{name.split(' / ')[-1]}.pytest.xml"
    if pytest_xml.exists():
        suites = ElementTree.parse(pytest_xml).getroot().iter("testsuite")
    else:
        root = ElementTree.parse(logs / "testlog.junit.xml").getroot()
        # Meson names them PROJECT.PROGRAM.SUITE.
        suites = [
            suite
            for suite in root.iter("testsuite")
            if suite.get("name").partition(".")[2].startswith(f"{name}.")
        ]
    return [
        (f"{case.get('classname')}.{case.get('name')}", outcome(case))
        for suite in suites
        for case in suite.iter("testcase")
    ]


def count(build):
    """Counts the outcomes of all tests that the last `meson test` ran in `build`."""
    logs = Path(build) / "meson-logs"
    total = Counter()
    for line in (logs / "testlog.json").read_text().splitlines():
        record = json.loads(line)
        program_outcome = PROGRAM_OUTCOME.get(record["result"], "failed")
        tests = single_tests(logs, record["name"]) if program_outcome != "skipped" else []
        counted = Counter(result for _, result in tests)
        if program_outcome == "failed":
            failed = [name for name, result in tests if result == "failed"]
            for name in failed or [f"the program as a whole ({record['result']})"]:
                print(f"failed: {record['name']}: {name}", file=sys.stderr)
            counted["failed"] = max(counted["failed"], 1)
        total += counted if tests else Counter({program_outcome: 1})
    return total


if __name__ == "__main__":
    try:
        result = count(sys.argv[1])
    except FileNotFoundError as error:
        sys.exit(f"no test ran: there is no {error.filename}")
    print(result["passed"], result["failed"], result["skipped"])
