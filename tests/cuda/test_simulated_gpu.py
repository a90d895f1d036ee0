"""The program on a simulated GPU: what the one command for a rented GPU does, in small. The bytes and
losses are those of the module's own code; its times mean nothing."""

import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

PROGRAM = os.environ["HEADROOM"]
MODULE = os.environ["SIMULATED_CUDA_MODULE"]
SUITE = Path(os.environ["HEADROOM_SOURCE"], "bench", "suites", "gpu.toml")
SEED = os.environ.get("HEADROOM_TEST_SEED") or str(int.from_bytes(os.urandom(4), "little"))

pytestmark = pytest.mark.skipif(not MODULE, reason="this build has no CUDA module to simulate")


def run(*arguments):
    # One seed for all processes, so that all of them add up sums in the same order.
    print(f"HEADROOM_TEST_SEED={SEED}")
    environment = {**os.environ, "HEADROOM_CUDA_MODULE": MODULE, "HEADROOM_TEST_SEED": SEED}
    return subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, text=True)


def suite_in_small():
    """The experiments of the suite `gpu` on networks that a CPU trains in no time, each cell once."""
    text = SUITE.read_text()
    text = re.sub(r'"resnet\(batch=256[^"]*"', '"resnet(batch=2,preset=tiny)"', text)
    text = re.sub(r'"(resnet|bert|gan)\((?!batch=2,)[^"]*"', r'"\1(preset=tiny)"', text)
    text = re.sub(r"^claims = .*$", "claims = []", text, flags=re.M)
    return re.sub(r"^(blocks|warmup_steps|measured_steps) = \d+$", r"\1 = 1", text, flags=re.M)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    place = tmp_path_factory.mktemp("gpu")
    (place / "gpu.toml").write_text(suite_in_small())
    result = run("run", place / "gpu.toml", "--samples-only", "--out", place, "--progress", "none")
    assert result.returncode == 0, result.stderr
    lines = next(place.glob("*/samples.jsonl")).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_doctor_says_that_the_gpu_is_simulated():
    assert "GPU: simulated on the CPU" in run("doctor").stdout


def test_a_run_there_ends_without_verdicts_and_report(tmp_path):
    arguments = ["--filter", "experiment=gpu/staging*", "--out", tmp_path, "--progress", "none"]
    (tmp_path / "gpu.toml").write_text(suite_in_small())
    result = run("run", tmp_path / "gpu.toml", *arguments)
    assert result.returncode == 0, result.stderr
    assert "The GPU is simulated" in result.stdout
    assert not list(tmp_path.glob("*/verdicts.json")) + list(tmp_path.glob("*/report.html"))


def test_the_check_of_the_device_finds_nothing_and_skips_nothing():
    result = run("check", "cuda", "--json")
    findings = json.loads(result.stdout)["findings"]
    assert len(findings) > 5
    assert [finding for finding in findings if finding["outcome"] != "passed"] == []
    assert result.returncode == 0


def test_a_gpu_that_fails_the_check_is_not_measured_but_can_be(tmp_path):
    source = Path(os.environ["HEADROOM_SOURCE"])
    if Path(os.environ["HEADROOM_BUILD"]) != source / "build":
        pytest.skip("scripts/bench runs what is in build/")
    result = subprocess.run(
        [source / "scripts" / "bench", "--no-setup", "gpu", "--out", tmp_path],
        env={**os.environ, "HEADROOM_CUDA_MODULE": MODULE, "HEADROOM_SIMULATED_GPU_REFUSES": "300+"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 12
    assert "FAIL  cuda" in result.stdout
    assert f"build/headroom run gpu '--out' '{tmp_path}' '--filter' 'device=cuda*'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_every_cell_of_the_suite_for_a_gpu_runs(samples):
    assert len(samples) > 50
    assert {(sample["status"], sample["reason"]) for sample in samples} == {("ok", None)}


def test_losses_are_those_of_every_allocator_and_way_to_step(samples):
    # Other precisions round otherwise; so may another of cuDNN's algorithms, though not the simulated.
    arms = defaultdict(dict)
    for sample in samples:
        if not {"precision", "workspace"} & set(sample["experiment"].split("/")):
            arms[sample["experiment"]][sample["arm"]] = sample["loss"]
    assert len(arms) > 5
    for experiment, losses in arms.items():
        assert len(losses) > 1, experiment
        assert len({tuple(loss) for loss in losses.values()}) == 1, (experiment, losses)
