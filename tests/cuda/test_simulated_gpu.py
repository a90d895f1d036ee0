"""The program on a simulated GPU: a small version of the one command for a rented GPU. Bytes and losses are
those of the module's own code; times mean nothing."""

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


def environment(**faults):
    # All processes use one seed, so that they add up sums in the same order.
    print(f"HEADROOM_TEST_SEED={SEED}")
    return {**os.environ, "HEADROOM_CUDA_MODULE": MODULE, "HEADROOM_TEST_SEED": SEED, **faults}


def run(*arguments, **faults):
    return subprocess.run(
        [PROGRAM, *arguments], env=environment(**faults), capture_output=True, text=True
    )


def suite_in_small():
    """The experiments of the suite `gpu` on networks that a CPU trains quickly, with one sample of each
    cell. Its two steps are too few for fp16 to find a loss scale; it starts from a small one."""
    text = SUITE.read_text()
    text = re.sub(r'"resnet\(batch=256[^"]*"', '"resnet(batch=2,preset=tiny)"', text)
    text = re.sub(r'"(resnet|bert|gan)\((?!batch=2,)[^"]*"', r'"\1(preset=tiny)"', text)
    text = re.sub(r"^claims = .*$", "claims = []", text, flags=re.M)
    text = text.replace('"fp16"', '"fp16(initial_scale=1024)"')
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


def test_a_check_that_fails_ends_no_other():
    lost = run("check", "cuda", "--json", HEADROOM_SIMULATED_GPU_REFUSES="300+")
    assert lost.returncode == 12
    findings = json.loads(lost.stdout)["findings"]
    outcomes = [finding["outcome"] for finding in findings]
    assert outcomes[0] == "passed", "a start makes fewer calls"
    assert outcomes.count("failed") > 1
    assert all("refused" in one["why"] for one in findings if one["outcome"] == "failed")
    one = run("check", "cuda", "--json", "--only", "1")
    assert [finding["what"] for finding in json.loads(one.stdout)["findings"]] == [
        findings[0]["what"]
    ]


def test_a_check_of_a_number_that_there_is_not_is_refused():
    assert run("check", "cuda", "--only", "99").returncode == 2


def test_a_search_for_a_batch_ends_where_images_are_too_many_for_one_call():
    """The largest image of a tiny network has some tens of thousands of elements here."""
    searched = run(
        "search", "resnet(preset=tiny)", "--device", "cuda(capacity=512MiB)",
        "-a", "allocator=caching", HEADROOM_SIMULATED_GPU_MOST_ELEMENTS="10",
    )  # fmt: skip
    assert searched.returncode != 70, searched.stderr
    assert "one image of" in searched.stderr


FIRST_CONTACT = Path(os.environ["HEADROOM_SOURCE"], "scripts", "first-contact")


def first_contact(place, *stages, **faults):
    """Runs the stages of the script with tiny networks; returns the exit code and what the stages
    recorded."""
    done = subprocess.run(
        [FIRST_CONTACT, "--small", "--out", place, *stages],
        env=environment(HEADROOM_BUILD=os.environ["HEADROOM_BUILD"], **faults),
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    records = {}
    for stage in stages:
        lines = (place / stage / "summary.jsonl").read_text().splitlines()
        records[stage] = {record["name"]: record for record in map(json.loads, lines)}
        for name in records[stage]:
            assert " 0 tests " not in (place / stage / f"{name}.txt").read_text()
    return done.returncode, records


@pytest.mark.parametrize("stage", ["life", "memory", "numbers", "time", "suite"])
def test_every_stage_of_the_first_contact_succeeds(stage, tmp_path):
    code, records = first_contact(tmp_path, stage)
    outcomes = {name: record["outcome"] for name, record in records[stage].items()}
    assert set(outcomes.values()) == {0}, outcomes
    assert code == 0


def test_a_first_contact_that_fails_looks_again_and_leaves_the_logs(tmp_path):
    code, records = first_contact(tmp_path, "life", HEADROOM_SIMULATED_GPU_REFUSES="300+")
    assert code == 1
    assert records["life"]["doctor"]["outcome"] == 0
    assert records["life"]["check"]["outcome"] == 12
    again = records["life"]["check-with-logs"]
    assert again["environment"]["CUDA_LAUNCH_BLOCKING"] == "1"
    assert "FAIL  cuda" in (tmp_path / "life" / "check-with-logs.txt").read_text()


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
    # Other precisions round differently. Another algorithm of cuDNN may, too, but not a simulated one.
    arms = defaultdict(dict)
    for sample in samples:
        if not {"precision", "workspace"} & set(sample["experiment"].split("/")):
            arms[sample["experiment"]][sample["arm"]] = sample["loss"]
    assert len(arms) > 5
    for experiment, losses in arms.items():
        assert len(losses) > 1, experiment
        assert len({tuple(loss) for loss in losses.values()}) == 1, (experiment, losses)
