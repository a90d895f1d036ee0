"""The command `headroom gpu`: its first lines, exit statuses and refusals. No framework is needed."""

import json
import subprocess
import sys

import pytest
from conftest import HEADROOM, MIB, RUNTIME


def test_more_than_the_budget_ends_with_its_own_status(gpu):
    answer = gpu("l4", "--budget", "10MiB", program=RUNTIME + "allocate(12 << 20)")
    assert answer.status == 13
    assert answer.first_line.startswith("OVER BUDGET: 12.00 MiB")


def test_a_program_that_fails_by_itself_keeps_its_status(gpu):
    answer = gpu("l4", program=RUNTIME + "allocate(1); raise SystemExit(7)")
    assert answer.status == 7
    assert answer.first_line.startswith("FAILED: the program ended with status 7 before any optimizer step")


def test_a_program_that_uses_no_gpu_is_told_so(gpu):
    answer = gpu("l4", program="print('hello')")
    assert answer.status == 2
    assert "hello" in answer.output
    assert "NO GPU USED" in answer.output and "headroom capture -- " in answer.output
    assert "PyTorch, TensorFlow or JAX" in answer.output


def test_a_process_that_does_not_report_what_its_memory_is_for_is_named(gpu):
    answer = gpu("t4", program=RUNTIME + "allocate(2**20)")
    assert "1 process did not report what memory was for" in answer.output


def test_json_stands_alone_on_standard_output(gpu):
    answer = gpu("l4", "--json", program=RUNTIME + "allocate(1); print('the program speaks')")
    assert json.loads(answer.output)["verdict"] == "fits"
    assert "the program speaks" in answer.errors


def test_the_smallest_card_that_serves_is_found(gpu):
    answer = gpu(None, "--which", program=RUNTIME + """
status, _ = allocate(20 << 30)
raise SystemExit(status)
""")
    assert answer.status == 0, answer.output
    assert answer.figures["memory_bytes"] >= 20 << 30
    assert answer.figures["memory_bytes"] < 26 << 30
    assert "rented with it: " in answer.output


def test_the_smallest_card_leaves_room_for_a_context(gpu):
    whole = gpu("l4", program=RUNTIME + "allocate(1)").figures["memory_bytes"]
    program = RUNTIME + f"raise SystemExit(allocate({whole} - (64 << 20))[0])"
    assert gpu("l4", program=program).first_line.startswith("FITS")
    answer = gpu(None, "--which", program=program)
    assert answer.status == 0 and answer.figures["card"] != "l4" and answer.figures["context_is_estimated"]
    assert "left out of " in answer.output


@pytest.fixture
def own_start(tmp_path):
    """A function that writes the user's own sitecustomize and returns the environment in which it runs."""
    (tmp_path / "own").mkdir()

    def write(program):
        (tmp_path / "own/sitecustomize.py").write_text(program)
        return {"PYTHONPATH": str(tmp_path / "own")}

    return write


def test_the_users_own_sitecustomize_still_runs(gpu, own_start):
    answer = gpu("l4", program=RUNTIME + "allocate(1)", environment=own_start("print('my own start')"))
    assert "my own start" in answer.output


def test_the_users_own_sitecustomize_may_import_a_framework(gpu, pytorch, own_start):
    program = "import torch\nheld = torch.zeros(1 << 20, device='cuda')"
    answer = gpu("l4", python=pytorch, program=program, environment=own_start("import torch"))
    assert answer.first_line.startswith("FITS: 20.00 MiB"), answer.errors


def refused(*arguments):
    process = subprocess.run([HEADROOM, "gpu", *arguments], capture_output=True, text=True)
    return process.returncode, process.stderr


def test_an_unknown_card_is_refused_with_the_nearest_name():
    status, errors = refused("rtx4091", "--", "true")
    assert status == 2
    assert "rtx4090" in errors


@pytest.mark.parametrize("machine", ["g5.12xlarge", "Standard_NC64as_T4_v3", "nc64as_t4_v3"])
def test_a_machine_of_a_cloud_has_all_its_cards(gpu, machine):
    answer = gpu(machine, program=RUNTIME + """
cards = ctypes.c_int()
assert cuda.cudaGetDeviceCount(ctypes.byref(cards)) == 0 and cards.value == 4
allocate(1)
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["card"] == ("a10g" if machine.startswith("g5") else "t4")


def test_more_cards_than_a_machine_has_are_refused():
    status, errors = refused("g5.xlarge", "--gpus", "2", "--", "true")
    assert status == 2
    assert "--gpus 2: g5.xlarge has 1" in errors


def test_a_gpu_instance_is_a_card_with_a_part_of_the_memory_and_of_the_multiprocessors(gpu):
    answer = gpu("a100-3g.20gb", program=RUNTIME + """
multiprocessors = ctypes.c_int()
assert cuda.cudaDeviceGetAttribute(ctypes.byref(multiprocessors), 16, 0) == 0 and multiprocessors.value == 42
assert allocate(20 << 30)[0] != 0
allocate(19 << 30)
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["memory_bytes"] == 20096 * MIB


MY_CARD = """
[mine]
like = "t4"
capacity_bytes = 1_000_000_000
multiprocessors = 7
"""


def test_a_file_describes_a_card(gpu, tmp_path):
    (tmp_path / "mine.toml").write_text(MY_CARD)
    answer = gpu(tmp_path / "mine.toml", program=RUNTIME + """
multiprocessors, bus = ctypes.c_int(), ctypes.c_int()
assert cuda.cudaDeviceGetAttribute(ctypes.byref(multiprocessors), 16, 0) == 0 and multiprocessors.value == 7
assert cuda.cudaDeviceGetAttribute(ctypes.byref(bus), 37, 0) == 0 and bus.value == 256, "the memory bus of a T4"
allocate(1)
""")
    assert answer.status == 0, answer.errors
    assert (answer.figures["card"], answer.figures["memory_bytes"]) == ("mine", 1_000_000_000)


@pytest.mark.parametrize("text, complaint", [
    ("[mine", "mine.toml:1: "),
    ("[one]\n[two]", "mine.toml: describe one card"),
    ("[mine]\ncapacity = 1", "unknown key of mine.toml 'capacity'; did you mean 'capacity_bytes'?"),
    ("[mine]\nlike = 't5'", "unknown card 't5'"),
    ("[mine]\nlike = 't4'\nmultiprocessors = 0", "mine.toml: [mine] has no usable 'multiprocessors'"),
    ("[mine]\nname = 'Mine'", "mine.toml: [mine] has no usable 'capacity_bytes'"),
    ("[mine]\nlike = 4", "mine.toml: [mine] has no usable 'like'"),
    ("[mine]\nlike = 't4'\nname = 'Mine;memory=1'", "mine.toml: [mine] has no usable 'name'"),
    ('["\\u001b[2J"]\nlike = "t4"', "mine.toml: '\\x1b[2J' is no name of a card"),
])
def test_a_file_that_describes_no_card_is_refused_with_the_place(tmp_path, monkeypatch, text, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(text)
    status, errors = refused("mine.toml", "--", "true")
    assert status == 2
    assert complaint in errors


def test_several_gpu_instances_are_refused():
    status, errors = refused("h100-1g.10gb", "--gpus", "2", "--", "true")
    assert status == 2
    assert "a process sees only one GPU instance" in errors


def test_an_unknown_machine_is_refused_with_the_nearest_name():
    status, errors = refused("g5.48xlrge", "--", "true")
    assert status == 2
    assert "did you mean 'g5.48xlarge'?" in errors


def test_a_missing_command_is_refused_with_an_example():
    status, errors = refused("rtx4090")
    assert status == 2
    assert "headroom gpu rtx4090 -- python train.py" in errors


def test_a_bad_number_of_steps_is_refused():
    status, errors = refused("rtx4090", "--until-step", "-3", "--", "true")
    assert status == 2
    assert "--until-step -3" in errors


@pytest.mark.parametrize("share", ["1.5", "-0.1", "nan"])
def test_a_share_of_masks_outside_of_0_to_1_is_refused(share):
    status, errors = refused("rtx4090", f"--mask-share={share}", "--", "true")
    assert status == 2
    assert f"--mask-share {share}: name a share from 0 to 1" in errors


def test_a_command_that_is_not_there_is_refused(tmp_path):
    status, errors = refused("rtx4090", "--out", str(tmp_path / "out"), "--", "no-such-program")
    assert status == 2
    assert "no-such-program cannot be started" in errors


def test_a_script_that_is_no_program_is_refused_with_the_command_to_write(tmp_path):
    (tmp_path / "train.py").write_text("print('hello')")
    status, errors = refused("rtx4090", "--", str(tmp_path / "train.py"))
    assert status == 2
    assert f"write python3 {tmp_path / 'train.py'}" in errors


def test_the_compiler_of_a_wheel_is_used_in_place_of_its_stand_in(gpu, tmp_path):
    wheel = tmp_path / "env" / "lib" / "python3" / "site-packages" / "nvidia" / "cu13" / "lib"
    wheel.mkdir(parents=True)
    source, python = tmp_path / "nvrtc.c", tmp_path / "env" / "bin" / "python"
    source.write_text("int nvrtcVersion(int* major, int* minor) { *major = 99; return 0; }")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", wheel / "libnvrtc.so.13"], check=True)
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    answer = gpu("l4", python=python, program=RUNTIME + """
allocate(1)
version = ctypes.c_int(), ctypes.c_int()
ctypes.CDLL("libnvrtc.so.13").nvrtcVersion(*map(ctypes.byref, version))
assert version[0].value == 99
""")
    assert answer.status == 0, answer.errors
