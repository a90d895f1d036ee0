"""`headroom capture`, which is for a real GPU. Here a virtual GPU takes its place, without capture
knowing, or is hidden from it, so that it records the CPU's memory."""

import json
import os
import subprocess

import pytest
from conftest import HEADROOM, MIB

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


@pytest.fixture
def capture(tmp_path):
    """capture(python, program, *environment) returns the figures and the command's output."""

    def run(python, program, *environment):
        script, records = tmp_path / "train.py", tmp_path / "captured"
        script.write_text(program)
        done = subprocess.run(
            [HEADROOM, "gpu", "rtx4090", "--out", str(tmp_path / "outside"), "--",
             "env", *environment, HEADROOM, "capture", "--html", "--out", str(records), "--", str(python), str(script)],
            capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        return json.loads((records / "gpu.json").read_text()), done.stdout + done.stderr

    return run


def test_what_is_captured_is_what_the_virtual_gpu_tells(gpu, capture, pytorch):
    captured, said = capture(pytorch, TRAIN)
    virtual = gpu("rtx4090", program=TRAIN, python=pytorch).figures
    device, same = captured["frameworks"][0]["devices"][0], virtual["frameworks"][0]["devices"][0]
    assert device["peak_allocated_bytes"] == same["peak_allocated_bytes"]
    assert device["roles"] == same["roles"]
    assert captured["peak_bytes"] == device["peak_reserved_bytes"] == same["peak_reserved_bytes"]
    assert "PEAK: " in said and "3 optimizer steps of PyTorch" in said


def test_the_card_and_what_lies_beside_the_allocator_are_told(capture, pytorch):
    beside = 5 * MIB
    captured, said = capture(pytorch, TRAIN + f"""
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t({beside})) == 0
""")
    device = captured["frameworks"][0]["devices"][0]
    assert "RTX 4090" in device["card"]
    assert beside <= device["beside_allocator_bytes"] < beside + 2 * MIB
    assert "beside the allocator at the end" in said


def test_a_run_can_be_held_against_what_was_captured(capture, gpu, pytorch, tmp_path):
    capture(pytorch, TRAIN)
    more = TRAIN.replace("256, 1024", "2560, 1024")
    answer = gpu("rtx4090", "--against", str(tmp_path / "captured"), program=more, python=pytorch)
    assert answer.status == 10
    assert "GREW" in answer.output


def test_without_a_gpu_the_memory_of_the_cpu_is_told_by_role_and_line(capture, pytorch, tmp_path):
    captured, said = capture(pytorch, ON_CPU, "CUDA_VISIBLE_DEVICES=")
    (device,) = captured["frameworks"][0]["devices"]
    assert (device["kind"], captured["captured_on"]) == ("cpu", "the CPU of this machine")
    bytes_of = {role["name"]: role["bytes"] for role in device["roles"]}
    assert (bytes_of["weights"], bytes_of["gradients"]) == (4 * MIB, 4 * MIB)
    assert bytes_of["optimizer state"] == 8 * MIB + 4  # and the number of steps
    lines = {line["name"]: line["bytes"] for line in device["lines"]}
    assert lines[f"{tmp_path / 'train.py'}:3"] == 4 * MIB
    assert sum(bytes_of.values()) == sum(lines.values()) == captured["peak_bytes"]
    assert "on the CPU of this machine" in (tmp_path / "captured" / "report.html").read_text()
    assert "CPU: " in said


def test_the_virtual_gpu_holds_the_weights_and_states_that_the_cpu_held(capture, gpu, pytorch):
    captured, _ = capture(pytorch, ON_CPU, "CUDA_VISIBLE_DEVICES=")
    virtual = gpu("rtx4090", program=TRAIN, python=pytorch).figures

    def lasting(figures):
        roles = figures["frameworks"][0]["devices"][0]["roles"]
        return {r["name"]: r["bytes"] // MIB for r in roles if r["name"] in ("weights", "gradients", "optimizer state")}

    assert lasting(captured) == lasting(virtual)


def test_what_a_cpu_allocated_can_be_replayed(capture, pytorch, tmp_path):
    captured, _ = capture(pytorch, ON_CPU, "CUDA_VISIBLE_DEVICES=")
    snapshot = tmp_path / "captured" / captured["frameworks"][0]["snapshot"]
    done = subprocess.run(
        [HEADROOM, "replay", "--capacity", "1GiB", "--allocator", "caching", str(snapshot)],
        capture_output=True, text=True, timeout=60, cwd=tmp_path)
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


def test_values_are_the_gpus_own(capture, pytorch):
    _, said = capture(pytorch, TRAIN + """
print("mode:", torch.overrides._get_current_function_mode())
""")
    assert "mode: None" in said


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
