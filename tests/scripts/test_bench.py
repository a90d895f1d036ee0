"""scripts/bench in a copy of the scripts, with stand-ins for the package list and the build."""

import re
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

    run.place = tmp_path
    return run


def test_the_first_call_configures_builds_and_measures(bench):
    result = bench()
    assert result.stdout.split() == ["meson", "ninja", "[headroom]", "[run]"]


def test_the_first_call_says_what_will_happen_and_how_long_it_takes(bench):
    said = bench().stderr
    assert re.search(r"packages \(about \d+ s\), builds \(about \d+ s on \d+ cores\), then runs", said)


def test_a_later_call_announces_no_build(bench):
    bench()
    assert "builds" not in bench().stderr


def test_the_build_shows_its_seconds_against_those_expected(bench):
    stand_in = bench.place / "ninja"
    stand_in.write_text('#!/bin/sh\necho "$NINJA_STATUS"\n')
    assert "%e s of about" in bench().stdout


def test_the_second_call_configures_nothing_and_measures_afresh(bench):
    bench()
    result = bench()
    assert result.stdout.split() == ["ninja", "[headroom]", "[run]"]


def test_options_reach_headroom_as_they_were_given(bench):
    result = bench("--filter", "workload=resnet,allocator=bfc *")
    assert "[--filter]\n[workload=resnet,allocator=bfc *]\n" in result.stdout


def test_without_set_up_what_is_built_measures(bench):
    bench()
    result = bench("--no-setup", "--suite", "smoke", "--budget", "1m")
    assert result.stdout.split() == ["[headroom]", "[run]", "[smoke]", "[--budget]", "[1m]"]


def test_without_set_up_and_without_a_build_the_mend_is_named(bench):
    result = bench("--no-setup")
    assert result.returncode == 2
    assert "scripts/pack-gpu" in result.stderr


@pytest.mark.parametrize("words", [["gpu"], ["--suite", "gpu"], ["--suite=gpu"]])
def test_a_gpu_is_checked_before_it_is_measured(bench, words):
    result = bench(*words, "--budget", "10m")
    assert result.stdout.split()[2:] == [
        *("[headroom]", "[check]", "[cuda]"),
        *("[headroom]", "[run]", "[gpu]", "[--budget]", "[10m]", "[--filter]", "[device=cuda*]"),
    ]


def test_a_gpu_that_fails_its_check_is_not_measured(bench):
    result = bench("gpu", EXIT="12")
    assert result.returncode == 12
    assert "[run]" not in result.stdout


def test_the_exit_code_is_that_of_the_run(bench):
    assert bench(EXIT="4").returncode == 4
