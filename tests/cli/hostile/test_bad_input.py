"""Every mistake of a user ends with exit status 2 (4: nothing selected) and a message that names the
place and the fix, and leaves no unfinished run behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Headroom, samples


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["plan", "bert", "--device", "t4", "--batch", "16"], "batch is a parameter of the workload"),
        (["verify", "S02"], "headroom run claims --filter claim=S02"),
        (["rum"], "did you mean 'run'?"),
        (["--versoin"], "did you mean '--version'?"),
        (["run", "quick", "--sed", "3"], "did you mean '--seed'?"),
        (["run", "qiuck"], "unknown suite 'qiuck'; did you mean 'quick'?"),
        (["run", "smoke", "extra"], "'extra' is one argument too many"),
        (["run", "smoke", "-a", "allocator=bcf"], "unknown allocator 'bcf'; did you mean 'bfc'?"),
        (["run", "smoke", "-a", "allocator=bfc(grwoth=on)"], "did you mean 'growth'?"),
        (["run", "smoke", "-a", "device=hots"], "unknown device 'hots'; did you mean 'host'?"),
        (["run", "smoke", "-a", "alocator=bfc"], "unknown axis 'alocator'; did you mean 'allocator'?"),
        (["run", "smoke", "-a", "bfc"], "axis=value"),
        (["run", "smoke", "--filter", "bfc"], "key=glob"),
        (["run", "smoke", "--filter", "workloda=resnet"], "did you mean 'workload'?"),
        (["run", "smoke", "--max-pairs", "0"], "--max-pairs"),
        (["run", "smoke", "--max-pairs", "-3"], "--max-pairs: '-3' is not a whole number of at least 1"),
        (["run", "smoke", "--seed", "three"], "--seed: 'three' is not a whole number of at least 0"),
        (["run", "smoke", "--seed", "-1"], "--seed: '-1' is not a whole number of at least 0"),
        (["run", "smoke", "-a", "precision=f32"], "did you mean 'fp32'?"),
        (["run", "nowhere.toml"], "nowhere.toml: there is no such suite file"),
        (["history", "accept", "S02"], "see headroom history accept --help"),
        (["run", "smoke", "--budget", "soon"], "write 200ms, 0.5s, 45m or 2h"),
        (["run", "smoke", "--progress", "loud"], "unknown --progress 'loud'"),
        (["run", "--resume", "nowhere"], "nowhere"),
        (["run", "--resume", "nowhere", "--seed", "3"], "--seed excludes --resume"),
        (["list", "allocator"], "did you mean 'allocators'?"),
        (["verify", "nowhere"], "nowhere: not a run directory"),
        (["report", "nowhere"], "nowhere: not a run directory"),
        (["report"], "run is required"),
        (["sample", "{}"], "not a sample request"),
    ],
)
def test_a_wrong_command_line_is_answered_with_what_is_right(headroom: Headroom, arguments: list[str], told: str) -> None:
    outcome = headroom(*arguments)
    assert outcome.code == 2
    assert told in outcome.errors
    assert outcome.output == ""
    assert headroom.runs() == []


@pytest.mark.parametrize("option", ["--max-pairs", "--seed"])
@pytest.mark.parametrize("value", ["1", "2147483647"])
def test_every_number_that_is_one_is_taken(headroom: Headroom, counting: str, option: str, value: str) -> None:
    assert headroom("run", counting, "--dry-run", option, value).code == 0


def test_a_seed_may_have_all_its_bits(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--dry-run", "--seed", str(2**64 - 1)).code == 0
    assert headroom("run", counting, "--dry-run", "--seed", str(2**64)).code == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('name = "x"\ndescription = "y"\n[[experiment]\n', "bad.toml:3: "),
        ('name = "x"\ndescription = "y"\n\nblokcs = 3\n', "bad.toml:4: unknown key of the suite 'blokcs'"),
        ('name = "x"\ndescription = "y"\n[[experiment]]\nid = "e"\nallocator = "bcf"\n', "bad.toml:5: unknown allocator 'bcf'"),
        ('name = "x"\ndescription = "y"\nclaims = ["S00"]\n', "unknown claim 'S00'"),
        ("\0\xff", "bad.toml:1: "),
    ],
)
def test_a_malformed_suite_is_named_by_file_and_line(headroom: Headroom, text: str, told: str) -> None:
    outcome = headroom("run", headroom.write("bad.toml", text))
    assert outcome.code == 2
    assert told in outcome.errors


def commands(headroom: Headroom) -> list[str]:
    listed = headroom("--help").output.split("Subcommands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


def test_every_command_has_examples_of_its_own(headroom: Headroom) -> None:
    assert len(commands(headroom)) > 10
    for command in commands(headroom):
        text = headroom(command, "--help").output
        examples = [line for line in text.split("Examples\n")[1].splitlines() if line.startswith("  headroom ")]
        assert examples and any(line.startswith(f"  headroom {command}") for line in examples), command
        assert len({line.split()[1] for line in examples}) <= 2, f"{command} shows the examples of all commands"


def test_the_help_of_list_names_everything_it_lists(headroom: Headroom) -> None:
    told = " ".join(headroom("list", "--help").output.split())
    for kind in json.loads(headroom("list", "--json").output):
        assert kind in told


def test_a_filter_that_leaves_nothing_has_its_own_exit_status(headroom: Headroom) -> None:
    outcome = headroom("run", "smoke", "--filter", "workload=bert*")
    assert outcome.code == 4
    assert "--dry-run" in outcome.errors


@pytest.mark.parametrize("place", ["file/runs", "/proc/headroom/runs"])
def test_a_place_where_nothing_can_be_written_is_named(headroom: Headroom, counting: str, place: str) -> None:
    headroom.write("file", "")
    outcome = headroom("run", counting, "--out", place)
    assert outcome.code == 2
    assert place in outcome.errors
    assert "--out DIR" in outcome.errors


def test_a_wrong_home_is_named(headroom: Headroom) -> None:
    outcome = headroom("list", "suites", HEADROOM_HOME="/tmp/nowhere")
    assert outcome.code == 2
    assert "HEADROOM_HOME=/tmp/nowhere" in outcome.errors


def test_a_cell_that_is_itself_wrong_stops_the_run_and_says_which(headroom: Headroom, counting: str) -> None:
    outcome = headroom("run", counting, "--samples-only", "-a", "device=meta(card=v100-61gb)")
    assert outcome.code == 2
    assert "v100-16gb" in outcome.errors  # the nearest card
    assert "--resume" in outcome.errors


@pytest.fixture
def finished_run(headroom: Headroom, counting: str) -> Path:
    assert headroom("run", counting, "--samples-only", "--max-pairs", "1").code == 0
    return headroom.only_run()


def test_a_broken_sample_is_named_by_file_and_line(headroom: Headroom, finished_run: Path) -> None:
    file = finished_run / "samples.jsonl"
    lines = file.read_text().splitlines()
    lines[2] = lines[2][: len(lines[2]) // 2]
    file.write_text("\n".join(lines) + "\n")
    outcome = headroom("verify", str(finished_run))
    assert outcome.code == 2
    assert "samples.jsonl:3: not JSON" in outcome.errors


def test_a_sample_of_another_major_version_is_refused(headroom: Headroom, finished_run: Path) -> None:
    records = samples(finished_run)
    records[1]["schema_version"] = "7.0"
    (finished_run / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    outcome = headroom("verify", str(finished_run))
    assert outcome.code == 2
    assert 'samples.jsonl:2: written in schema version "7.0"' in outcome.errors


def test_a_foreign_run_file_is_refused(headroom: Headroom, finished_run: Path) -> None:
    (finished_run / "run.json").write_text('{"kind": "shopping list"}')
    outcome = headroom("run", "--resume", str(finished_run))
    assert outcome.code == 2
    assert "run.json: not a Headroom run record" in outcome.errors
