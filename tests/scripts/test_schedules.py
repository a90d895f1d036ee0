"""Ready-made schedules: each is parsed, and what it calls exists and takes the options given."""

import importlib.machinery
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

SOURCE = Path(__file__).resolve().parents[2]
SCHEDULES = SOURCE / "scripts" / "schedule"
WORKFLOW = yaml.safe_load((SOURCE / ".github" / "workflows" / "nightly.yml").read_text())
INSTALLED = "/opt/headroom"


def nightly():
    """scripts/nightly as a module."""
    loader = importlib.machinery.SourceFileLoader("nightly", str(SOURCE / "scripts" / "nightly"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("nightly", loader))
    loader.exec_module(module)
    return module


def options_in(command):
    """The options of the call of scripts/nightly in a line of shell; exits if one is unknown."""
    words = shlex.split(command, comments=True)
    (call,) = [at for at, word in enumerate(words) if word.endswith("scripts/nightly")]
    arguments = []
    for word in words[call + 1 :]:
        if word in (">>", ">", "&&", "||", ";", "|"):
            break
        arguments.append(word)
    return nightly().parse(arguments)


def steps_of(job):
    return WORKFLOW["jobs"][job]["steps"]


def scripts_in(text):
    return set(re.findall(r"(?<![\w/])scripts/[\w/]+", text))


def test_the_workflow_runs_every_night_on_a_cpu_and_where_there_is_one_on_a_gpu():
    triggers = WORKFLOW[True]  # YAML 1.1 takes "on" for a truth value
    (schedule,) = triggers["schedule"]
    assert re.fullmatch(r"[0-5]?\d ([01]?\d|2[0-3]) \* \* \*", schedule["cron"])
    assert WORKFLOW["jobs"]["gpu"]["runs-on"] == ["self-hosted", "gpu"]
    assert steps_of("gpu") == steps_of("cpu")


@pytest.mark.parametrize("job", WORKFLOW["jobs"])
def test_every_command_of_the_workflow_is_shell_and_calls_what_exists(job):
    for step in steps_of(job):
        assert ("run" in step) != ("uses" in step)
        if "run" in step:
            checked = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True)
            assert checked.returncode == 0, checked.stderr
            for script in scripts_in(step["run"]):
                assert (SOURCE / script).exists()


def test_the_workflow_keeps_the_history_whatever_the_night_says():
    (call,) = [step["run"] for step in steps_of("cpu") if "scripts/nightly" in step.get("run", "")]
    options = options_in(call.replace("${{ github.job }}", "cpu"))
    caches = [step for step in steps_of("cpu") if "cache" in step.get("uses", "")]
    assert [step["uses"].split("@")[0] for step in caches] == ["actions/cache/restore", "actions/cache/save"]
    assert {step["with"]["path"] for step in caches} == {str(options.store)}
    assert caches[0]["with"]["key"].startswith(caches[0]["with"]["restore-keys"])
    after = steps_of("cpu")[[step.get("run") for step in steps_of("cpu")].index(call) + 1 :]
    assert after and all(step["if"] == "always()" for step in after)
    (shown,) = [step["run"] for step in after if "GITHUB_STEP_SUMMARY" in step.get("run", "")]
    assert all(f"{options.out}/latest/{name}" in shown for name in ("issue.md", "summary.md"))


@pytest.mark.parametrize("code, passes", [(0, True), (12, True), (2, False), (10, False), (11, False), (130, False)])
def test_a_night_whose_times_are_not_to_be_trusted_is_no_failure_of_the_workflow(tmp_path, code, passes):
    (call,) = [step["run"] for step in steps_of("cpu") if "scripts/nightly" in step.get("run", "")]
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "nightly").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "scripts" / "nightly").chmod(0o755)
    step = ["sh", "-e", "-c", call.replace("${{ github.job }}", "cpu")]
    assert (subprocess.run(step, cwd=tmp_path).returncode == 0) == passes


@pytest.mark.parametrize("checked", [True, False])
def test_the_issue_is_titled_by_what_the_check_said_and_written_also_for_a_night_that_broke_off(tmp_path, checked):
    (tmp_path / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > said\ncat "${8}" >> said\n')
    (tmp_path / "gh").chmod(0o755)
    latest = tmp_path / "nightly-cpu" / "runs" / "nightly" / "latest"
    latest.mkdir(parents=True)
    if checked:
        (latest / "issue.md").write_text("## nightly of today: worse than accepted in 3 places.\n\nA table.\n")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_REPOSITORY": "o/r", "RUN": "https://example.org/run/7"}
    (step,) = [step["run"] for step in steps_of("issue") if "run" in step]
    subprocess.run(["bash", "-e", "-c", step], cwd=tmp_path, env=environment, check=True)
    said = (tmp_path / "said").read_text()
    assert said.startswith("issue\ncreate\n--repo\no/r\n--title\nNightly: ")
    told = "worse than accepted in 3 places" if checked else "broke off"
    assert told in said.splitlines()[5]
    assert ("A table." if checked else "https://example.org/run/7") in said


def test_the_timer_and_its_service_are_what_systemd_takes(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    for unit in SCHEDULES.glob("headroom-nightly.*"):
        (tmp_path / unit.name).write_text(unit.read_text().replace(INSTALLED, str(SOURCE)))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "headroom-nightly.timer"], capture_output=True, text=True
    )
    ours = [line for line in (checked.stdout + checked.stderr).splitlines() if "headroom-nightly" in line]
    assert ours == []
    timer = (tmp_path / "headroom-nightly.timer").read_text()
    when = re.search(r"^OnCalendar=(.*)$", timer, re.MULTILINE).group(1)
    assert subprocess.run(["systemd-analyze", "calendar", when], capture_output=True).returncode == 0


def test_the_service_and_the_cron_line_give_options_that_exist():
    service = (SCHEDULES / "headroom-nightly.service").read_text()
    assert options_in(re.search(r"^ExecStart=(.*)$", service, re.MULTILINE).group(1)).budget == "2h"
    (line,) = [line for line in (SCHEDULES / "crontab").read_text().splitlines() if line[:1].isdigit()]
    *fields, command = line.split(maxsplit=5)
    assert all(re.fullmatch(r"\*|\d+", field) for field in fields)
    assert options_in(command).budget == "2h"
    assert "%" not in command  # cron would take it for a newline


def test_the_container_copies_and_calls_what_exists():
    assert {"build*/", "runs/", "history/"} <= set((SOURCE / ".dockerignore").read_text().splitlines())
    text = (SCHEDULES / "Containerfile").read_text().replace("\\\n", " ")
    instructions = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert instructions[0][0] == "FROM"
    assert {name for name, _ in instructions} <= {"FROM", "RUN", "COPY", "WORKDIR", "VOLUME", "ENTRYPOINT"}
    for name, argument in instructions:
        if name == "RUN":
            assert subprocess.run(["bash", "-n"], input=argument, text=True).returncode == 0
        for script in scripts_in(argument):
            assert (SOURCE / script).exists()
    (entry,) = [json.loads(argument) for name, argument in instructions if name == "ENTRYPOINT"]
    (volume,) = [argument for name, argument in instructions if name == "VOLUME"]
    options = options_in(shlex.join(entry))
    assert str(options.out).startswith(volume) and str(options.store).startswith(volume)
    # Its comments say how it is called.
    assert options_in("scripts/nightly " + text.split("headroom-nightly ")[2].splitlines()[0]).machine == "NAME"
