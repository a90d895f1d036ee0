"""What a run leaves on disk and prints."""

from __future__ import annotations

import hashlib
import json
import random
import resource
import shutil
import signal
from pathlib import Path

import pytest
from conftest import SOURCE, Headroom, Outcome, record_of, run_info, samples

# A cell that computes for much longer than any limit below.
LONG_SUITE = """
name = "long"
description = "for tests"
[[experiment]]
id = "steps"
workload = "resnet(batch=16,depth=18,width=64)"
device = "host(capacity=1GiB)"
allocator = ["malloc", "bfc(growth=on)"]
measured_steps = 100000
blocks = 1
timeout_s = 1
"""


def test_the_smoke_suite_records_every_kind_of_outcome(smoke: tuple[Outcome, Path]) -> None:
    outcome, run = smoke
    assert outcome.code == 0, outcome.errors
    statuses: dict[str, set[str]] = {}
    for sample in samples(run):
        statuses.setdefault(sample["experiment"], set()).add(sample["status"])
    assert statuses["smoke/trains"] == {"ok"}
    assert statuses["smoke/counts"] == {"ok"}
    assert statuses["smoke/too-small"] == {"oom"}
    assert "smoke/elsewhere" in statuses  # unsupported, or ok on a machine with a GPU


def test_the_smoke_suite_sees_what_is_put_in_on_purpose(smoke: tuple[Outcome, Path]) -> None:
    _, run = smoke
    verdicts = json.loads((run / "verdicts.json").read_text())
    assert {control["arm"]: control["outcome"] for control in verdicts["controls"]} == {
        "leak": "seen", "fragmentation": "seen",
    }
    assert not any(entry["experiment"].startswith("smoke/control") for entry in verdicts["matrix"])


@pytest.fixture
def blind(headroom: Headroom, smoke: tuple[Outcome, Path]) -> Path:
    """The smoke run, as if the injected leak had not been detected."""
    run = headroom.place / "blind"
    run.mkdir()
    (run / "run.json").write_text((smoke[1] / "run.json").read_text())
    with (run / "samples.jsonl").open("w") as file:
        for sample in samples(smoke[1]):
            if sample["arm"] == "leak":  # as if nothing had leaked
                sample["memory"]["allocated_bytes_after_step"] = [1000] * 7
            file.write(json.dumps(sample) + "\n")
    return run


def test_an_effect_that_was_added_and_not_detected_is_told_and_is_no_failure(headroom: Headroom, blind: Path) -> None:
    outcome = headroom("verify", "blind")
    assert outcome.code == 0
    assert "1 of 2 injected effects was not detected: a block of 64.00 KiB" in outcome.errors
    assert "headroom selftest" in outcome.errors
    assert (blind / "verdicts.json").exists()


def test_strict_makes_an_effect_that_was_not_detected_exit_code_12(headroom: Headroom, blind: Path) -> None:
    assert headroom("verify", "blind", "--strict").code == 12


def test_the_last_screen_says_what_was_found_how_sure_it_is_and_what_to_do(smoke: tuple[Outcome, Path]) -> None:
    outcome, _ = smoke
    headings = [line for line in outcome.output.splitlines() if line in ("What was found", "How sure is it", "What to do next")]
    assert headings == ["What was found", "How sure is it", "What to do next"]


def test_the_last_line_is_the_path_of_the_report(smoke: tuple[Outcome, Path]) -> None:
    outcome, run = smoke
    assert Path(outcome.last_line) == run / "report.html"
    assert "smoke/trains" in (run / "report.html").read_text()


def test_every_record_keeps_to_the_schema_and_carries_no_nan(smoke: tuple[Outcome, Path]) -> None:
    _, run = smoke
    whole = [(run / name).read_text() for name in ("run.json", "verdicts.json")]
    for text in [*whole, *(run / "samples.jsonl").read_text().splitlines()]:
        record_of(text)


def test_the_report_can_be_written_again(headroom: Headroom, smoke: tuple[Outcome, Path]) -> None:
    _, run = smoke
    (run / "report.html").unlink()
    outcome = headroom("report", str(run))
    assert outcome.code == 0, outcome.errors
    assert Path(outcome.last_line) == run / "report.html"
    assert (run / "report.html").exists()


def test_without_what_reports_need_the_results_are_kept_and_the_way_on_is_told(
    headroom: Headroom, counting: str, tmp_path: Path
) -> None:
    # A home that holds suites and no reports.
    (tmp_path / "home" / "bench" / "suites").mkdir(parents=True)
    outcome = headroom("run", counting, HEADROOM_HOME=str(tmp_path / "home"))
    assert outcome.code == 70
    assert f"headroom report runs/{headroom.only_run().name}" in outcome.errors
    assert len(samples(headroom.only_run())) == 24


def test_run_json_says_what_a_result_depends_on(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only", "--seed", "5", SECRET_TOKEN="x").code == 0
    info = run_info(headroom.only_run())
    assert info["seed"] == 5
    assert info["argv"] == ["run", counting, "--samples-only", "--seed", "5"]
    assert info["status"] == "finished"
    assert info["planned_samples"] == len(samples(headroom.only_run())) == 24
    assert info["environment"]["OMP_NUM_THREADS"] == "1"
    assert "SECRET_TOKEN" not in info["environment"]
    assert {"onednn", "glibc", "zstd"} <= info["libraries"].keys()
    assert [file["path"] for file in info["data"]] == [counting]  # meta reads no training data


def test_run_json_names_the_data_that_was_trained_on(smoke: tuple[Outcome, Path]) -> None:
    _, run = smoke
    trained_on = [file for file in run_info(run)["data"] if file["origin"] == "training data"]
    assert [Path(file["path"]).name for file in trained_on] == ["data_batch_1.bin", "test_batch.bin"]
    for file in trained_on:
        assert file["sha256"] == hashlib.sha256(Path(file["path"]).read_bytes()).hexdigest()
        assert file["bytes"] == Path(file["path"]).stat().st_size


def test_exact_samples_of_two_processes_agree_bit_for_bit(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    ladders: dict[tuple[str, str], list] = {}
    for sample in samples(headroom.only_run()):
        memory = sample["memory"]
        ladders.setdefault((sample["experiment"], sample["arm"]), []).append(
            [memory[kind] for kind in ("requested_bytes", "allocated_bytes", "reserved_bytes")]
        )
    assert len(ladders) == 12
    for first, second in ladders.values():
        assert first == second


def test_a_cell_this_machine_has_no_room_for_is_recorded_with_the_reason(headroom: Headroom, counting: str) -> None:
    outcome = headroom("run", counting, "--samples-only", "-a", "device=host(capacity=900TiB)", "--max-pairs", "1")
    assert outcome.code == 0, outcome.errors
    recorded = samples(headroom.only_run())
    assert len(recorded) == 12
    for sample in recorded:
        assert sample["status"] == "unsupported"
        assert "this machine has" in sample["reason"]


def test_a_strategy_with_no_room_on_the_device_is_recorded_with_the_reason(headroom: Headroom, counting: str) -> None:
    outcome = headroom("run", counting, "--samples-only", "-a", "allocator=bfc(reserve=1GiB)", "--max-pairs", "1")
    assert outcome.code == 0, outcome.errors
    for sample in samples(headroom.only_run()):
        assert sample["status"] == "unsupported"
        assert "leaves less than" in sample["reason"]


def test_a_sample_that_takes_too_long_is_recorded_as_a_timeout(headroom: Headroom) -> None:
    outcome = headroom("run", headroom.write("long.toml", LONG_SUITE), "--samples-only")
    assert outcome.code == 0, outcome.errors
    recorded = samples(headroom.only_run())
    assert [sample["status"] for sample in recorded] == ["timeout", "timeout"]  # and no second try
    assert "within 1 s" in recorded[0]["reason"]


def test_a_crash_is_recorded_with_the_signal_that_caused_it(headroom: Headroom) -> None:
    suite = headroom.write("long.toml", LONG_SUITE.replace("timeout_s = 1", "timeout_s = 120"))
    outcome = headroom(
        "run", suite, "--samples-only",
        # The system ends every process that has computed for a second.
        before=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, resource.RLIM_INFINITY)),
    )
    assert outcome.code == 0, outcome.errors
    recorded = samples(headroom.only_run())
    assert [sample["status"] for sample in recorded] == ["crash", "crash"]
    assert signal.SIGXCPU.name in recorded[0]["reason"]


def test_a_dry_run_prints_cells_and_an_estimate_and_writes_nothing(headroom: Headroom, counting: str) -> None:
    outcome = headroom("run", counting, "--dry-run")
    assert outcome.code == 0
    assert "12 configurations in 4 experiments, 24 samples. It takes about" in outcome.output
    assert "(an estimate)" in outcome.output
    assert headroom.runs() == []


def test_a_claim_that_is_filtered_away_is_not_judged(headroom: Headroom) -> None:
    suite = headroom.write("claims.toml", 'name = "claims"\ndescription = "for tests"\nclaims = ["S02", "S03"]\nleave_out = ["virtual"]\n')
    everything = headroom("run", suite, "--dry-run")
    assert "S02/" in everything.output
    assert "S03/" in everything.output
    only = ["--filter", "claim=S02,experiment=*v100-16gb/batch=1"]
    assert headroom("run", suite, "--samples-only", *only).code == 0
    assert run_info(headroom.only_run())["claims"] == ["S02"]


def test_a_suite_leaves_out_device_classes_and_scenarios(headroom: Headroom) -> None:
    head = 'name = "claims"\ndescription = "for tests"\nclaims = ["S03"]\nleave_out = '
    planned = headroom("run", headroom.write("all.toml", head + '["virtual"]\n'), "--dry-run").output
    assert "S03/host\n" in planned and "S03/host-pytorch\n" in planned and "S03/cuda\n" in planned
    fewer = headroom.write("fewer.toml", head + '["cuda", "framework_on_host"]\n')
    planned = headroom("run", fewer, "--dry-run").output
    assert "S03/host\n" in planned and "S03/host-pytorch" not in planned and "S03/cuda" not in planned
    refused = headroom("run", headroom.write("unknown.toml", head + '["framework"]\n'), "--dry-run")
    assert refused.code == 2 and "unknown device class or scenario 'framework'" in refused.errors


def test_the_suite_of_claims_takes_up_a_new_one_without_being_told(headroom: Headroom, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(SOURCE / "bench", home / "bench")
    claim = (home / "bench" / "claims" / "s01_prealloc_takes_all.toml").read_text()
    (home / "bench" / "claims" / "another.toml").write_text(claim.replace('id = "S01"', 'id = "ANOTHER"'))
    planned = headroom("run", "claims", "--dry-run", HEADROOM_HOME=str(home)).output
    assert all(f"{claim}/" in planned for claim in ("S01", "S28", "ANOTHER"))
    only = headroom("run", "claims", "--dry-run", "--filter", "claim=ANOTHER", HEADROOM_HOME=str(home)).output
    assert "S01/" not in only and "ANOTHER/" in only


def test_max_pairs_and_filter_bound_what_is_run(headroom: Headroom, counting: str) -> None:
    outcome = headroom(
        "run", counting, "--samples-only", "--max-pairs", "1", "--filter", "workload=resnet(batch=4*,allocator=bfc*"
    )
    assert outcome.code == 0, outcome.errors
    recorded = samples(headroom.only_run())
    assert {sample["arm"] for sample in recorded} == {"bfc(growth=off)", "bfc(growth=on)"}
    assert len(recorded) == 2


def test_a_spent_budget_ends_the_run_in_good_order_and_tells_how_to_do_the_rest(headroom: Headroom) -> None:
    # Each block takes two seconds, because both of its samples reach the timeout.
    suite = headroom.write("long.toml", LONG_SUITE.replace("blocks = 1", "blocks = 2"))
    outcome = headroom("run", suite, "--samples-only", "--budget", "1s")
    assert outcome.code == 0, outcome.errors
    run = headroom.only_run()
    assert f"headroom run --resume runs/{run.name}" in outcome.output
    assert [sample["block"] for sample in samples(run)] == [0, 0]
    assert headroom("run", "--resume", str(run), "--samples-only").code == 0
    assert [sample["block"] for sample in samples(run)] == [0, 0, 1, 1]


def test_comparisons_of_identical_arms_accumulate_on_the_machine(
    headroom: Headroom, smoke: tuple[Outcome, Path]
) -> None:
    for name in ("first", "second"):
        record_identical_arms(smoke[1], headroom.place / name)

    def comparisons(name: str) -> int:
        outcome = headroom("verify", name)
        assert outcome.code == 0, outcome.errors
        return json.loads((headroom.place / name / "verdicts.json").read_text())["calibration"]["aa_comparisons"]

    assert comparisons("first") == 1
    assert comparisons("first") == 1  # judged twice, counted once
    assert comparisons("second") == 2


def record_identical_arms(pattern: Path, run: Path) -> None:
    """A run of eight blocks of two identical configurations, made of samples that another run took."""
    info = run_info(pattern)
    (experiment,) = [one for one in info["experiments"] if one["id"] == "smoke/trains"]
    arm = experiment["arms"][0]
    experiment["arms"] = [arm | {"name": "once"}, arm | {"name": "again"}]
    info["experiments"] = [experiment]
    info["run_id"] = run.name
    (sample,) = [one for one in samples(pattern) if one["experiment"] == "smoke/trains"
                 and one["arm"] == arm["name"] and one["block"] == 0]
    run.mkdir()
    (run / "run.json").write_text(json.dumps(info))
    probe = {"before_gflops": 100, "after_gflops": 100}
    with (run / "samples.jsonl").open("w") as file:
        for block in range(8):
            for name in ("once", "again"):
                times = [random.randint(10**8, 2 * 10**8) for _ in sample["step_time_ns"]]
                changes = {"arm": name, "block": block, "step_time_ns": times, "probe": probe, "cpu_wait_ns": 0,
                           "trace_file": None}
                file.write(json.dumps(sample | changes) + "\n")


def test_axes_of_the_command_line_replace_those_of_the_suite(headroom: Headroom, counting: str) -> None:
    outcome = headroom("run", counting, "--samples-only", "-a", "allocator=bfc", "-a", "device=meta(card=v100-16gb)")
    assert outcome.code == 0, outcome.errors
    recorded = samples(headroom.only_run())
    assert {sample["arm"] for sample in recorded} == {"bfc"}
    assert {sample["cell"]["device"] for sample in recorded} == {"meta(card=v100-16gb)"}


def test_progress_keeps_to_plain_counters_off_a_terminal(headroom: Headroom, counting: str) -> None:
    plain = headroom("run", counting, "--samples-only")
    assert "24/24 samples" in plain.errors
    assert "\x1b" not in plain.errors
    none = headroom("run", counting, "--samples-only", "--progress", "none")
    assert none.errors == ""


def test_a_bar_has_colour_unless_no_color_is_set(headroom: Headroom, counting: str) -> None:
    green = "\x1b[32m"
    assert green in headroom("run", counting, "--samples-only", "--progress", "bar").errors
    assert green not in headroom("run", counting, "--samples-only", "--progress", "bar", NO_COLOR="1").errors


def test_list_gives_programs_json(headroom: Headroom) -> None:
    listed = json.loads(headroom("list", "--json").output)
    assert listed.keys() == {
        "workloads", "allocators", "adaptors", "executions", "accumulations", "checkpointings", "precisions", "prunings",
        "optimizers", "pipelines", "injections", "scenarios", "devices", "rules", "suites", "claims"
    }
    assert {"malloc", "bfc"} <= {entry["name"] for entry in listed["allocators"]}
    assert {"quick", "smoke"} <= {entry["name"] for entry in listed["suites"]}
    assert {"largest_batch", "script"} <= {entry["name"] for entry in listed["scenarios"]}


def test_doctor_says_what_each_device_would_need(headroom: Headroom) -> None:
    outcome = headroom("doctor")
    assert outcome.code == 0
    for word in ("processor", "memory", "huge pages", "host", "meta", "cuda", "python"):
        assert word in outcome.output
