"""What the build made of CUDA: who links what, and for which GPUs the kernels are compiled."""

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = os.environ["HEADROOM"]
MODULE = os.environ["CUDA_MODULE"]
ARCHS = os.environ["GPU_ARCHS"].split(",")
CUDA_LIBRARIES = ("libcuda", "libcu", "libnv", "libheadroom")

needs_module = pytest.mark.skipif(not MODULE, reason="this build has no CUDA module")


def needed_libraries(binary):
    listing = subprocess.check_output(["readelf", "--dynamic", "--wide", binary], text=True)
    return [line.split("[")[1].rstrip("]") for line in listing.splitlines() if "(NEEDED)" in line]


def nvcc_arguments():
    commands = json.loads(Path(os.environ["HEADROOM_BUILD"], "compile_commands.json").read_text())
    kernels = [entry["command"].split() for entry in commands if entry["file"].endswith(".cu")]
    assert kernels
    return kernels


def test_the_program_links_nothing_of_cuda():
    needed = needed_libraries(PROGRAM)
    assert "libc.so.6" in needed
    assert [name for name in needed if name.startswith(CUDA_LIBRARIES)] == []


@pytest.mark.parametrize("module", [MODULE, "/nowhere/libheadroom_cuda.so"])
def test_the_program_starts_with_and_without_the_module(module):
    environment = {**os.environ, "HEADROOM_CUDA_MODULE": module}
    subprocess.run([PROGRAM, "--help"], env=environment, check=True, stdout=subprocess.DEVNULL)


@needs_module
def test_the_module_links_the_libraries_but_not_the_driver():
    needed = needed_libraries(MODULE)
    assert any(name.startswith("libcudnn.so") for name in needed)
    assert [name for name in needed if name.startswith(("libcuda.so", "libnvidia"))] == []


@needs_module
def test_kernels_have_machine_code_for_every_architecture_asked_for():
    for arguments in nvcc_arguments():
        for arch in ARCHS:
            assert f"-gencode=arch=compute_{arch},code=sm_{arch}" in arguments


@needs_module
def test_kernels_have_portable_code_of_the_last_architecture_only():
    for arguments in nvcc_arguments():
        portable = [argument for argument in arguments if ",code=compute_" in argument]
        assert portable == [f"-gencode=arch=compute_{ARCHS[-1]},code=compute_{ARCHS[-1]}"]


STACK = """__global__ void sum_by_table(int* out, int i) {
  int table[64];
  for (int j = 0; j < 64; ++j) table[j] = out[j];
  for (int j = 0; j < i; ++j) table[(table[j] * 7) % 64] += j;
  out[threadIdx.x] = table[i % 64];
}
"""


@needs_module
@pytest.mark.parametrize("arch", ARCHS)
def test_a_kernel_with_a_stack_frame_ends_the_build(arch, tmp_path):
    (tmp_path / "stack.cu").write_text(STACK)
    gates = {tuple(word for word in arguments if word.startswith("-Xptxas"))
             for arguments in nvcc_arguments()}  # fmt: skip
    assert len(gates) == 1, "every kernel is compiled with the same gate"
    command = ["nvcc", f"-arch=sm_{arch}", "-cubin", "-o", "/dev/null", tmp_path / "stack.cu"]
    assert subprocess.run(command).returncode == 0
    refused = subprocess.run([*command, *gates.pop()], capture_output=True, text=True)
    assert refused.returncode != 0
    assert "size of stack frame: 256 bytes" in refused.stderr


REPORT = """ptxas info    : Compiling entry function '_Z1aPi' for 'sm_90'
ptxas info    : Function properties for _Z1aPi
    {stack} bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers, {stack} bytes cumulative stack size
"""


def kernel_resources():
    path = Path(os.environ["HEADROOM_SOURCE"], "scripts", "kernel_resources.py")
    spec = importlib.util.spec_from_file_location("kernel_resources", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("stack, stores, wrong", [(0, 0, False), (16, 0, True), (0, 8, True)])
def test_the_table_of_kernels_reads_what_ptxas_reports(stack, stores, wrong):
    table = kernel_resources()
    [kernel] = table.kernels_in(REPORT.format(stack=stack, stores=stores))
    assert (kernel["name"], kernel["arch"], kernel["registers"]) == ("_Z1aPi", "90", 12)
    assert table.wrong(kernel) == wrong


def test_the_table_of_kernels_refuses_a_report_that_it_cannot_read():
    with pytest.raises(ValueError):
        kernel_resources().kernels_in("Compiling entry function '_Z1aPi' for 'sm_90'\nof another kind")


@needs_module
def test_the_table_of_kernels_counts_those_of_a_file():
    script = Path(os.environ["HEADROOM_SOURCE"], "scripts", "kernel_resources.py")
    build = os.environ["HEADROOM_BUILD"]
    table = subprocess.check_output(
        [script, "--build", build, "--archs", "90", "loss.cu"], text=True
    ).splitlines()
    assert len(table) == 3
    file, arch, kernels, registers, stack, spilled = table[2].strip("| ").split(" | ")
    assert (file, arch, stack, spilled) == ("`loss.cu`", "sm_90", "0 B", "0 B")
    assert int(kernels) > 0 and int(registers) > 0


@pytest.mark.parametrize("archs", ["70", "80,sm_90"])
@pytest.mark.skipif(shutil.which("meson") is None, reason="no meson on PATH")
def test_an_impossible_architecture_is_refused_when_configuring(archs, tmp_path):
    result = subprocess.run(
        ["meson", "setup", f"-Dgpu_archs={archs}", tmp_path, os.environ["HEADROOM_SOURCE"]],
        capture_output=True,
        text=True,
    )
    assert result.returncode != 0
    assert f"gpu_archs: '{archs.split(',')[-1]}' is not a compute capability" in result.stdout


@needs_module
def test_a_packed_build_runs_from_another_place(tmp_path):
    """As on a machine without the source tree; only a GPU is missing for the rest."""
    archive = tmp_path / "packed.tar.gz"
    pack = Path(os.environ["HEADROOM_SOURCE"], "scripts", "pack-gpu")
    subprocess.run([pack, archive], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["tar", "-C", tmp_path, "-xf", archive], check=True)
    there = tmp_path / "headroom-gpu"
    result = subprocess.run(
        [there / "scripts" / "bench", "--no-setup", "smoke", "--samples-only"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert list(there.glob("runs/*/samples.jsonl"))
    doctor = subprocess.check_output([there / "build" / "headroom", "doctor"], text=True)
    assert f"files              {there}\n" in doctor
    assert f"module: {there}/build/packed/libheadroom_cuda.so\n" in doctor


def test_the_suite_gpu_says_why_it_cannot_run_here(tmp_path):
    unavailable = subprocess.run([PROGRAM, "check", "cuda"], capture_output=True, text=True)
    if "not here" not in unavailable.stdout:
        pytest.skip("there is a CUDA GPU here")
    assert unavailable.returncode == 0
    plan = ["--filter", "device=cuda*", "--samples-only", "--out", tmp_path, "--progress", "none"]
    subprocess.run([PROGRAM, "run", "gpu", *plan], check=True, stdout=subprocess.DEVNULL)
    lines = next(tmp_path.glob("*/samples.jsonl")).read_text().splitlines()
    samples = [json.loads(line) for line in lines]
    assert len(samples) > 30
    assert {sample["status"] for sample in samples} == {"unsupported"}
    assert all("needs" in sample["reason"] for sample in samples)
