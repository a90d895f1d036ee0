"""The output of --json is JSON, follows reports/schema.json and states the same facts as the text."""

from __future__ import annotations

import json
import re
from pathlib import Path

from conftest import TIMING, Headroom, record_of, suite_of

# Makes every machine behave like one without the CUDA module.
NO_CUDA = {"HEADROOM_CUDA_MODULE": "/nowhere/libheadroom_cuda.so"}


def test_doctor_tells_of_machine_and_program_what_it_tells_people(headroom: Headroom) -> None:
    found, told = record_of(headroom("doctor", "--json").output), headroom("doctor").output
    assert found["kind"] == "doctor"
    assert f"{found['machine']['cpu']}, {found['machine']['cores']} cores, {found['instruction_set']}" in told
    assert 0 < found["available_bytes"] <= found["machine"]["ram_bytes"]
    assert found["probe_gflops"] > 0
    for name, version in (found["libraries"] | {"files": found["files"]}).items():
        assert re.search(rf"^  {re.escape(name)} +{re.escape(version)}$", told, re.MULTILINE)


def test_doctor_says_which_devices_are_ready_and_why_the_others_are_not(headroom: Headroom) -> None:
    found, told = record_of(headroom("doctor", "--json").output), headroom("doctor").output
    devices = {device["name"]: device for device in found["devices"]}
    assert devices["host"]["ready"] and devices["meta"]["ready"]
    assert devices.keys() == {entry["name"] for entry in json.loads(headroom("list", "devices", "--json").output)["devices"]}
    for name, device in devices.items():
        assert device["ready"] == (device["reason"] is None)
        word = f"ready: {device['summary']}" if device["ready"] else f"not available here: {device['reason']}"
        assert re.search(rf"^  {name} +{re.escape(word)}$", told, re.MULTILINE)
    assert (found["nvml"] is None) == (found["why_no_nvml"] is not None)


def test_doctor_names_interpreters_that_are_there(headroom: Headroom) -> None:
    found, told = record_of(headroom("doctor", "--json").output), headroom("doctor").output
    assert found["frameworks"].keys() == {"torch", "tensorflow", "jax"}
    for name, python in found["frameworks"].items():
        assert re.search(rf"^  {name} +not installed", told, re.MULTILINE) if python is None else python.startswith("/")
    assert found["report_python"] is None or f" {found['report_python']}\n" in told


def test_check_tells_each_finding(headroom: Headroom) -> None:
    outcome = headroom("check", "host(capacity=1GiB)", "--json")
    found = record_of(outcome.output)
    assert outcome.code == 0 and found["checked"] and found["reason"] is None
    assert found["device"] == "host(capacity=1GiB)"
    assert len(found["findings"]) > 5
    assert {finding["outcome"] for finding in found["findings"]} <= {"passed", "skipped"}
    assert all((finding["why"] is None) == (finding["outcome"] == "passed") for finding in found["findings"])


def test_check_says_why_it_checks_nothing(headroom: Headroom) -> None:
    outcome = headroom("check", "cuda", "--json", **NO_CUDA)
    found = record_of(outcome.output)
    assert outcome.code == 0 and not found["checked"] and found["findings"] == []
    assert "CUDA module" in found["reason"]


def test_a_dry_run_tells_cells_samples_and_an_estimate(headroom: Headroom, counting: str) -> None:
    told = headroom("run", counting, "--dry-run").output
    plan = record_of(headroom("run", counting, "--dry-run", "--json").output)
    assert headroom.runs() == []
    assert plan["suite"] == "counting" and plan["claims"] == []
    cells = [arm["cell"] for experiment in plan["experiments"] for arm in experiment["arms"]]
    assert plan["cells"] == len(cells) == 12
    assert plan["samples"] == sum(e["blocks"] * len(e["arms"]) for e in plan["experiments"])
    assert f"12 configurations in {len(plan['experiments'])} experiments, {plan['samples']} samples" in told
    assert 0 <= plan["estimated_s"] <= plan["estimated_longest_s"]
    assert all(arm["not_here"] is None for experiment in plan["experiments"] for arm in experiment["arms"])


def test_a_dry_run_says_why_a_cell_cannot_run_here(headroom: Headroom, counting: str) -> None:
    arguments = ("run", counting, "-a", "device=cuda", "-a", "rules=cudnn", "--dry-run")
    plan, told = record_of(headroom(*arguments, "--json", **NO_CUDA).output), headroom(*arguments, **NO_CUDA).output
    reasons = [arm["not_here"] for experiment in plan["experiments"] for arm in experiment["arms"]]
    assert len(reasons) == 12
    assert all(f"[not available here: {reason}]" in told for reason in reasons)


def test_a_dry_run_says_which_framework_is_missing_and_expects_no_time_for_it(headroom: Headroom, tmp_path: Path) -> None:
    experiment = TIMING | {
        "allocator": "malloc", "scenario": "script(file=tensorflow_data,python=tensorflow)", "blocks": 6,
        "estimated_seconds": 1000,
    }
    suite = headroom.write("frameworks.toml", suite_of("frameworks", experiment))
    plan = record_of(headroom("run", suite, "--dry-run", "--json", XDG_CACHE_HOME=str(tmp_path)).output)
    (experiment,) = plan["experiments"]
    assert "tensorflow is not set up: scripts/setup --with tensorflow" in experiment["arms"][0]["not_here"]
    assert experiment["blocks"] == 1 and plan["estimated_s"] < 1000



def test_a_run_itself_prints_no_json(headroom: Headroom, counting: str) -> None:
    outcome = headroom("run", counting, "--json")
    assert outcome.code == 2
    assert "--json requires --dry-run" in outcome.errors
    assert headroom.runs() == []


def test_a_file_name_that_is_no_utf_8_is_told_all_the_same(headroom: Headroom) -> None:
    buffers = headroom.write("buffers-\udcff.csv", "id,lower,upper,size\n1,0,2,4096\n2,1,3,8192\n")
    outcome = headroom("replay", buffers, "--capacity", "1MiB", "--allocator", "malloc", "--json")
    assert outcome.code == 0, outcome.errors
    assert json.loads(outcome.output)["file"] == "buffers-\ufffd.csv"
