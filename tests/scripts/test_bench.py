"""scripts/bench in a copy of the scripts, with stand-ins for the package list and the build."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
STAND_INS = {
    "dpkg-query": "echo installed",
    "apt-get": "echo apt-get",
    "meson": "echo meson; mkdir build; touch build/build.ninja; cp {0}/headroom build/",
    "ninja": "echo ninja",
    "headroom": 'for word in headroom "$@"; do echo "[$word]"; done; exit ${{EXIT:-0}}',
}


@pytest.fixture
def bench(tmp_path):
    shutil.copytree(SCRIPTS, tmp_path / "clone" / "scripts")
    for name, body in STAND_INS.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body.format(tmp_path)}\n")
        program.chmod(0o755)

    def run(*arguments, **environment):
        return subprocess.run(
            [tmp_path / "clone" / "scripts" / "bench", *arguments],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    return run


def test_the_first_call_configures_builds_and_measures(bench):
    result = bench()
    assert result.stdout.split() == ["meson", "ninja", "[headroom]", "[run]"]


def test_the_second_call_configures_nothing_and_measures_afresh(bench):
    bench()
    result = bench()
    assert result.stdout.split() == ["ninja", "[headroom]", "[run]"]


def test_options_reach_headroom_as_they_were_given(bench):
    result = bench("--filter", "workload=resnet,allocator=bfc *")
    assert "[--filter]\n[workload=resnet,allocator=bfc *]\n" in result.stdout


def test_the_exit_code_is_that_of_the_run(bench):
    assert bench(EXIT="4").returncode == 4
