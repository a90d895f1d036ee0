"""`headroom capture`, which is for a real GPU. Here a virtual GPU takes its place, without capture
knowing, or is hidden from it, so that it records the CPU's memory."""

import json
import os
import subprocess

import pytest
from conftest import HEADROOM, MIB, python_of

TRAIN = """
import torch
model = torch.nn.Linear(1024, 1024, bias=False, device="cuda")
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.zeros(256, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


ON_CPU = """
import torch
model = torch.nn.Linear(1024, 1024, bias=False)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    batch = torch.zeros(256, 1024)
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


BESIDE = 5 * MIB
TRAIN_AND_ASK = TRAIN + f"""
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t({BESIDE})) == 0
print("mode:", torch.overrides._get_current_function_mode())
"""


class Captured:
    """What `headroom capture` says of a program in the directory `place`, and where its records lie."""

    def __init__(self, place, python, program, *environment):
        self.script, self.records = place / "train.py", place / "captured"
        self.script.write_text(program)
        done = subprocess.run(
            [HEADROOM, "gpu", "rtx4090", "--out", str(place / "outside"), "--", "env", *environment, HEADROOM,
             "capture", "--html", "--out", str(self.records), "--", str(python), str(self.script)],
            capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        self.figures = json.loads((self.records / "gpu.json").read_text())
        self.device, = self.figures["frameworks"][0]["devices"]
        self.said = done.stdout + done.stderr


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory, pytorch):
    return Captured(tmp_path_factory.mktemp("gpu"), pytorch, TRAIN_AND_ASK)


@pytest.fixture(scope="module", params=["pytorch", "pytorch-2.6"])
def on_cpu(request, tmp_path_factory):
    return Captured(tmp_path_factory.mktemp("cpu"), python_of(request.param), ON_CPU, "CUDA_VISIBLE_DEVICES=")


@pytest.fixture(scope="module")
def virtual(shared_gpu, pytorch):
    """The figures of the device under `headroom gpu`."""
    return shared_gpu("rtx4090", program=TRAIN, python=pytorch).figures["frameworks"][0]["devices"][0]


def test_what_is_captured_is_what_the_virtual_gpu_tells(on_gpu, virtual):
    assert on_gpu.device["peak_allocated_bytes"] == virtual["peak_allocated_bytes"]
    told, expected = ({share["name"]: share["bytes"] for share in device["roles"]}
                      for device in (on_gpu.device, virtual))
    expected["temporaries"] += expected.pop("workspaces")  # only the stand-ins tell them apart
    assert told == expected
    assert on_gpu.figures["peak_bytes"] == on_gpu.device["peak_reserved_bytes"] == virtual["peak_reserved_bytes"]
    assert "PEAK: " in on_gpu.said and "3 optimizer steps of PyTorch" in on_gpu.said


def test_the_card_and_what_lies_beside_the_allocator_are_told(on_gpu):
    assert "RTX 4090" in on_gpu.device["card"]
    assert BESIDE <= on_gpu.device["beside_allocator_bytes"] < BESIDE + 2 * MIB
    assert "beside the allocator at the end" in on_gpu.said


def test_values_are_the_gpus_own(on_gpu):
    assert "mode: None" in on_gpu.said


def test_a_run_can_be_held_against_what_was_captured(on_gpu, gpu, pytorch):
    more = TRAIN.replace("256, 1024", "2560, 1024")
    answer = gpu("rtx4090", "--against", str(on_gpu.records), program=more, python=pytorch)
    assert answer.status == 10
    assert "GREW" in answer.output


def test_without_a_gpu_the_memory_of_the_cpu_is_told_by_role_and_line(on_cpu):
    assert (on_cpu.device["kind"], on_cpu.figures["captured_on"]) == ("cpu", "the CPU of this machine")
    bytes_of = {role["name"]: role["bytes"] for role in on_cpu.device["roles"]}
    assert (bytes_of["weights"], bytes_of["gradients"]) == (4 * MIB, 4 * MIB)
    assert bytes_of["optimizer state"] == 8 * MIB + 4  # and the number of steps
    lines = {line["name"]: line["bytes"] for line in on_cpu.device["lines"]}
    assert lines[f"{on_cpu.script}:3"] == 4 * MIB
    assert sum(bytes_of.values()) == sum(lines.values()) == on_cpu.figures["peak_bytes"]
    assert "on the CPU of this machine" in (on_cpu.records / "report.html").read_text()
    assert "CPU: " in on_cpu.said


def test_the_virtual_gpu_holds_the_weights_and_states_that_the_cpu_held(on_cpu, virtual):
    def lasting(device):
        return {r["name"]: r["bytes"] // MIB for r in device["roles"]
                if r["name"] in ("weights", "gradients", "optimizer state")}

    assert lasting(on_cpu.device) == lasting(virtual)


def test_what_a_cpu_allocated_can_be_replayed(on_cpu):
    snapshot = on_cpu.records / on_cpu.figures["frameworks"][0]["snapshot"]
    done = subprocess.run(
        [HEADROOM, "replay", "--capacity", "1GiB", "--allocator", "caching", str(snapshot)],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_command_without_a_gpu_is_told_so(tmp_path):
    done = subprocess.run(
        [HEADROOM, "capture", "--out", str(tmp_path / "records"), "--", "true"],
        capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 2
    assert "NOTHING CAPTURED" in done.stdout


def test_the_status_is_that_of_the_command(tmp_path):
    command = [HEADROOM, "capture", "--out", str(tmp_path / "records"), "--", "sh", "-c", "exit 7"]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 7


@pytest.fixture
def check(gpu, pytorch, tmp_path):
    """check(text) runs that program with --check, where a second virtual GPU takes the place of the real one, and
    returns what is printed and the figures."""

    def run(text):
        script, checked = tmp_path / "train.py", tmp_path / "checked"
        script.write_text(text)
        command = [HEADROOM, "gpu", "rtx4090", "--check", "--out", str(checked), "--", str(pytorch), str(script)]
        answer = gpu("rtx4090", "--until-step", "all", python=pytorch,
                     program=f"import subprocess\nsubprocess.run({command!r}, check=True)\n")
        assert answer.status == 2, answer.errors  # this program itself used no GPU
        return answer, json.loads((checked / "gpu.json").read_text())

    return run


def test_a_check_names_the_status_of_a_program_that_failed_on_the_real_gpu(check):
    answer, figures = check(TRAIN + """
import pathlib, sys
ran = pathlib.Path(__file__).with_suffix(".ran")
sys.exit(3) if ran.exists() else ran.touch()
""")
    assert figures["verdict"] == "fits"
    assert "the program ended with exit status 3" in answer.output


def test_a_check_shows_the_peaks_of_the_real_and_the_virtual_gpu(check):
    answer, figures = check(TRAIN)
    device, measured = figures["frameworks"][0]["devices"][0], figures["measured"]
    assert "RTX 4090" in measured["card"]
    assert measured["peak_allocated_bytes"] == measured["virtual_peak_allocated_bytes"]
    assert measured["peak_reserved_bytes"] == device["peak_reserved_bytes"]
    both = f"{device['peak_allocated_bytes']},{device['peak_allocated_bytes']}"
    assert f"rtx4090,PyTorch {figures['frameworks'][0]['name'].split()[1]},{both}," in answer.output
    assert answer.output.count(" none\n") == 2


def test_a_check_without_a_gpu_says_so(tmp_path):
    done = subprocess.run(
        [HEADROOM, "gpu", "rtx4090", "--check", "--out", str(tmp_path / "records"), "--", "true"],
        capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 2
    assert "--check: no framework reported memory on this machine's GPU" in done.stderr


def test_how_a_command_ends_once_it_was_stopped_is_told_and_is_no_failure(gpu, pytorch, tmp_path):
    (tmp_path / "train.py").write_text(ON_CPU)
    answer = gpu("rtx4090", environment={"CUDA_VISIBLE_DEVICES": ""}, program=f"""
import subprocess
train = {f"{pytorch} {tmp_path}/train.py; exit 3"!r}
done = subprocess.run([{HEADROOM!r}, "capture", "--until-step", "2", "--out", "captured", "--", "sh", "-c", train])
print("capture ended with", done.returncode)
""")
    assert "The command ended with status 3 after --until-step had stopped the program" in answer.output
    assert "capture ended with 0" in answer.output
