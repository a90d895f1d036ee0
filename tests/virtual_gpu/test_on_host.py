"""Cells that train in PyTorch on the machine's own processor, with one of Headroom's allocators in place of
PyTorch's own. They need the environment of `scripts/setup --with pytorch`."""

import json
import subprocess

import pytest
from conftest import HEADROOM, MIB

SUITE = """
name = "on-host"
description = "One network under some allocators"
[[experiment]]
id = "cell"
device = "{device}"
{arms}
scenario = "framework_on_host(framework=pytorch,{parameters})"
warmup_steps = 2
measured_steps = 6
blocks = 1
"""
MLP = "batch=8,network=mlp,width=512"


@pytest.fixture
def train(tmp_path):
    """train(*allocators, parameters, device) returns the samples by allocator."""

    def run(*allocators, parameters=MLP, device="host(capacity=256MiB)", **options):
        suite, out = tmp_path / "on-host.toml", tmp_path / "run"
        arms = f"allocator = {json.dumps(allocators)}" if allocators else 'arms = "scenario"'
        suite.write_text(SUITE.format(arms=arms, parameters=parameters, device=device))
        done = subprocess.run([HEADROOM, "run", str(suite), "--samples-only", "--out", str(out)],
                              capture_output=True, text=True, timeout=600, **options)
        assert done.returncode == 0, done.stderr
        samples = [json.loads(line) for line in next(out.rglob("samples.jsonl")).read_text().splitlines()]
        return {sample["cell"]["allocator"]: sample for sample in samples}

    return run


def test_an_allocator_serves_pytorch_and_counts_what_it_asks_the_device_for(train, pytorch):
    samples = train("malloc", "bfc(growth=on)", "bfc(growth=off)")
    figures = {name: sample["figures"] for name, sample in samples.items()}
    assert {sample["status"] for sample in samples.values()} == {"ok"}
    assert all(sample["engine"].startswith("PyTorch ") for sample in samples.values())
    assert len({given["requested_bytes.overall_peak"] for given in figures.values()}) == 1, "one program"
    # Four layers of 512 × 512 with gradients and two states for each weight are 16 MiB.
    assert figures["malloc"]["requested_bytes.overall_peak"] > 16 * MIB
    asked = {name: given["steady_device_allocations_per_step"] for name, given in figures.items()}
    assert asked["malloc"] > 20 and asked["bfc(growth=on)"] == asked["bfc(growth=off)"] == 0
    assert figures["bfc(growth=off)"]["reserved_bytes.overall_peak"] == 256 * MIB


def test_each_step_is_timed_and_the_variants_take_turns(train, pytorch):
    samples = train("bfc(growth=on)", "bfc(growth=off)").values()
    assert [len(sample["step_time_ns"]) for sample in samples] == [8, 8]
    assert all(time > 0 for sample in samples for time in sample["step_time_ns"])
    turns = [sample["turns"]["numbers"] for sample in samples]
    assert all(turns) and sorted(sum(turns, [])) == list(range(len(sum(turns, []))))


def test_without_an_allocator_pytorch_keeps_its_own(train, pytorch):
    (sample,) = train().values()
    assert sample["status"] == "ok" and len(sample["step_time_ns"]) == 8
    assert set(sample["figures"]) == {"trained", "process_bytes.overall_peak"}


def test_what_does_not_fit_is_an_answer(train, pytorch):
    (sample,) = train("bfc(growth=on)", device="host(capacity=8MiB)").values()
    assert sample["status"] == "ok" and sample["figures"]["trained"] == 0
    assert "It ran out of memory" in sample["note"] and sample["step_time_ns"] == []


@pytest.mark.parametrize("allocator, device, said", [
    ("planned", "host(capacity=256MiB)", "which blocks outlast a step"),
    ("malloc", "meta(capacity=256MiB)", "needs device=host"),
])
def test_what_cannot_be_served_says_why(train, pytorch, allocator, device, said):
    (sample,) = train(allocator, device=device).values()
    assert sample["status"] == "unsupported" and said in sample["reason"]


def test_the_number_of_steps_is_the_experiments_to_choose(tmp_path):
    suite = tmp_path / "on-host.toml"
    suite.write_text(SUITE.format(arms='arms = "scenario"', parameters="network=mlp,steps=9", device="host"))
    done = subprocess.run([HEADROOM, "run", str(suite), "--dry-run"], capture_output=True, text=True)
    assert done.returncode == 2 and "measured_steps" in done.stderr


def test_without_the_environment_the_cell_says_how_to_make_it(train, tmp_path):
    (sample,) = train("malloc", env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}).values()
    assert sample["status"] == "unsupported"
    assert "scripts/setup --with pytorch" in sample["reason"]
