"""What the build made of CUDA: who links what, and for which GPUs the kernels are compiled."""

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
