"""What the hooks of TensorFlow and JAX read from messages, and the programs that replace those of CUDA's
toolkit. No framework is needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

VIRTUAL_GPU = Path(__file__).resolve().parents[2] / "harness" / "virtual_gpu"


@pytest.fixture
def notes(monkeypatch):
    monkeypatch.syspath_prepend(str(VIRTUAL_GPU / "hook"))
    import headroom_notes

    yield headroom_notes
    del sys.modules["headroom_notes"]


@pytest.mark.parametrize("message, size", [
    ("OOM when allocating tensor with shape[3,5] and type float on /device:GPU:0", 60),
    ("OOM when allocating tensor with shape[] and type double on /device:GPU:0", 8),
    ("Out of memory while trying to allocate 123 bytes.", 123),
    ("Out of memory while trying to allocate 1.00GiB.", 0),
])
def test_the_size_of_a_request_is_read_where_it_stands_to_the_byte(notes, message, size):
    assert notes.requested_bytes(message) == size


def test_the_line_about_memory_is_told_out_of_many(notes):
    error = type("ResourceExhaustedError", (Exception,), {})
    notes.note_error(error("Graph execution error:\n\n  OOM when allocating a tensor\nHint"))
    assert notes.notes.error == "ResourceExhaustedError: OOM when allocating a tensor"
    assert notes.notes.ended_out_of_memory


def test_another_error_is_not_one_about_memory(notes):
    notes.note_error(ValueError("no"))
    assert (notes.notes.error, notes.notes.ended_out_of_memory) == ("ValueError: no", False)


@pytest.mark.parametrize("peak, is_written", [(None, True), (5, True), (0, False)])
def test_a_framework_that_uses_a_device_is_recorded_whether_or_not_it_counts_bytes(
        notes, monkeypatch, tmp_path, peak, is_written):
    monkeypatch.setattr(notes, "RECORDS", str(tmp_path))
    monkeypatch.setattr(notes.headroom_end, "watch_process", lambda *_: None)
    notes.add("JAX 0.8", lambda: [{"device": 0, "peak_allocated": peak}], [])
    notes.count_steps(3)
    notes.write()
    records = [json.loads(file.read_text()) for file in tmp_path.glob("jax-*.json")]
    assert [(one["steps"], len(one["devices"])) for one in records] == [(3, int(peak is not None))] * is_written


def test_a_program_that_is_stopped_ends_what_its_threads_have_begun():
    program = """
import concurrent.futures, threading, time
import headroom_notes
idle = concurrent.futures.ProcessPoolExecutor(), concurrent.futures.ThreadPoolExecutor()
for pool in idle:
    pool.submit(abs, 1).result()
def save():
    time.sleep(1)
    print(idle[1].submit(str, "saved").result())
threading.Thread(target=save).start()
headroom_notes.count_steps(1)
print("went on")
"""
    environment = {**os.environ, "PYTHONPATH": str(VIRTUAL_GPU / "hook"), "HEADROOM_GPU_UNTIL_STEP": "1"}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr, result.returncode) == ("saved\n", "", 0)


@pytest.mark.parametrize("program", ["ptxas", "nvlink"])
def test_an_assembled_program_is_written_where_it_was_asked_for(program, tmp_path):
    out = tmp_path / "out.cubin"
    call = [VIRTUAL_GPU / "toolkit" / "bin" / program, "in", "-o", out, "-arch=sm_80"]
    subprocess.run(call, check=True)
    assert out.exists()


def test_the_assembler_names_the_newest_language_that_it_reads():
    call = [VIRTUAL_GPU / "toolkit" / "bin" / "ptxas", "--input-as-string", ".version 99.99"]
    result = subprocess.run(call, capture_output=True, text=True)
    assert result.returncode == 1
    assert "Unsupported .version 99.99; current version is '8.8'" in result.stderr


def test_a_version_of_pytorch_that_is_too_old_is_named(gpu, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text('__version__ = "1.13.0"')
    answer = gpu("t4", program="import torch\nprint('went on')")
    assert answer.status == 1 and answer.figures["verdict"] == "failed"
    assert "PyTorch 1.13.0 is too old: 2.5 or newer is needed" in answer.errors
    assert "Traceback" not in answer.errors and "went on" not in answer.output
