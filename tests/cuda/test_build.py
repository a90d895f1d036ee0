"""What the build links, and for which GPUs the kernels are compiled."""

import importlib.util
import json
import os
import re
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


def code_in(arguments):
    """The architecture whose portable code all is made from, and the codes that the module holds."""
    [(source, codes)] = re.findall(r"-gencode=arch=(\w+),code=\[([\w,]+)\]", " ".join(arguments))
    return source, set(codes.split(","))


@needs_module
def test_kernels_have_machine_code_for_every_architecture_asked_for():
    for arguments in nvcc_arguments():
        assert {f"sm_{arch}" for arch in ARCHS} == {code for code in code_in(arguments)[1] if code.startswith("sm_")}


@needs_module
def test_kernels_have_portable_code_of_the_lowest_architecture_only():
    lowest = "compute_" + min(ARCHS, key=lambda arch: int(arch.rstrip("af")))
    for arguments in nvcc_arguments():
        source, codes = code_in(arguments)
        assert source == lowest
        assert [code for code in codes if code.startswith("compute_")] == [lowest]


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


@pytest.mark.parametrize("name, wanted", [
    ("void cub::detail::for_each::static_kernel<cub::policy, long, headroom::cuda::Unless<"
     "headroom::cuda::Adam::operator()<headroom::cuda::CubQueue>(headroom::cuda::CubQueue&, "
     "headroom::OpBuffers const&) const::{lambda(long)#2}> >(long)", "loop: Adam 2"),
    ("void cub::detail::reduce::DeviceReduceKernel<cub::Policy, thrust::N::transform_iterator<"
     "headroom::cuda::SquareOf, thrust::N::counting_iterator<long> >, double*>(double*)",
     "Reduce: SquareOf"),
    ("void headroom::cuda::reduce_each_row<32u, headroom::cuda::GradientAndProduct<headroom::host::Bf16, "
     "true>, headroom::cuda::Add, headroom::cuda::Sums>(long, long)", "rows: GradientAndProduct<Bf16, true>"),
    ("headroom::cuda::(anonymous namespace)::code_probe()", "code_probe"),
])  # fmt: skip
def test_the_table_of_kernels_names_them_without_what_cub_adds(name, wanted):
    assert kernel_resources().short(name) == wanted


PAGE = Path(os.environ["HEADROOM_SOURCE"], "docs", "reference", "kernels.md")
REFRESH = "run scripts/kernel_resources.py --page docs/reference/kernels.md"


def test_the_page_of_kernels_is_of_the_sources_as_they_are():
    assert f"`{kernel_resources().fingerprint()}`" in PAGE.read_text(), REFRESH


@needs_module
def test_the_page_of_kernels_has_what_the_compiler_says_of_a_file():
    table = kernel_resources()
    page = PAGE.read_text().splitlines()
    if not any(table.compiler() in line for line in page):
        pytest.skip(f"the page is of another compiler than {table.compiler()}")
    script = Path(os.environ["HEADROOM_SOURCE"], "scripts", "kernel_resources.py")
    build = os.environ["HEADROOM_BUILD"]
    said = subprocess.check_output([script, "--build", build, "--archs", "90", "sort.cu"], text=True)
    files, kernels = ([line for line in said.splitlines() if line.startswith(start)]
                      for start in ("| `sort.cu` | sm_90 ", "| `sort.cu` | `"))  # fmt: skip
    assert len(files) == 1 and files[0] in page, REFRESH
    found = {row.split(" | ")[1]: row.split(" | ")[2].rstrip(" |") for row in kernels}
    written = {row.split(" | ")[1]: row.split(" | ")[3]
               for row in page if row.startswith("| `sort.cu` | `")}  # fmt: skip
    assert found and found == written, REFRESH


DIVISION = re.compile(r"\b(?:div|rem)\.[su]64\b")


def divisions_in(command, place, directory="."):
    """Returns the divisions of 64-bit integers in the compiler's output for a file, before it is
    assembled."""
    code = place / "code.ptx"
    subprocess.run([*command, "-ptx", "-o", code], cwd=directory, check=True)
    return DIVISION.findall(code.read_text())


@needs_module
def test_a_division_of_64_bits_is_found_where_there_is_one(tmp_path):
    source = tmp_path / "divides.cu"
    source.write_text("__global__ void divide(long long* x, long long by) { *x /= by; }")
    assert divisions_in(["nvcc", source], tmp_path) == ["div.s64"]


@needs_module
@pytest.mark.parametrize("file", ["loss.cu", "normalise.cu"])
def test_normalisation_and_losses_divide_no_integers_of_64_bits(file, tmp_path):
    commands = json.loads(Path(os.environ["HEADROOM_BUILD"], "compile_commands.json").read_text())
    [entry] = [one for one in commands if Path(one["file"]).name == file]
    command = kernel_resources().command_for(entry, "80")
    assert divisions_in(command[: command.index("-cubin")], tmp_path, entry["directory"]) == []


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


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    packed = tmp_path_factory.mktemp("pack") / "packed.tar.gz"
    script = Path(os.environ["HEADROOM_SOURCE"], "scripts", "pack-gpu")
    subprocess.run([script, packed], check=True, stdout=subprocess.DEVNULL)
    return packed


@needs_module
def test_a_packed_build_is_small_enough_to_send(archive):
    assert archive.stat().st_size < 45 * 2**20


def libraries(binary):
    """Returns the paths of the libraries that a program is linked with."""
    listing = subprocess.check_output(["ldd", binary], text=True)
    return [word for word in listing.split() if word.startswith("/")]


@pytest.fixture
def bare_root(archive, tmp_path):
    """A root directory with the package, a shell and this machine's C++ runtime, but no apt and no Python."""
    programs = {name: shutil.which(name) for name in ("sh", "readlink", "dirname", "basename")}
    for folder in ("proc", "tmp", "bin"):
        (tmp_path / folder).mkdir()
    subprocess.run(["tar", "-C", tmp_path, "-xf", archive], check=True)
    packed = {path.name for path in (tmp_path / "headroom-gpu" / "build" / "packed").iterdir()}
    for name, path in programs.items():
        shutil.copy(path, tmp_path / "bin" / name)
    needed = {path for binary in (*programs.values(), PROGRAM) for path in libraries(binary)}
    for path in needed:
        if Path(path).name not in packed:
            there = tmp_path / path[1:]
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, there)
    return tmp_path


@needs_module
def test_a_packed_build_starts_where_there_is_no_apt_and_no_python(bare_root):
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine gives nobody a root directory of his own (unshare)")
    enter = 'mount --rbind /proc "$0/proc" && exec chroot "$0" /headroom-gpu/build/headroom "$@"'

    def start(*arguments):
        done = subprocess.run(
            [*alone, "sh", "-c", enter, bare_root, *arguments],
            env={"PATH": os.environ["PATH"] + ":/bin", "HOME": "/tmp"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "files              /headroom-gpu\n" in start("doctor")
    assert "not available here" in start("check", "cuda")


@needs_module
def test_a_packed_build_runs_from_another_place(archive, tmp_path):
    """Runs as on a machine without the source tree, where only a GPU is missing."""
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
    if "not available here" not in unavailable.stdout:
        pytest.skip("there is a CUDA GPU here")
    assert unavailable.returncode == 0
    plan = ["--filter", "device=cuda*", "--samples-only", "--out", tmp_path, "--progress", "none"]
    subprocess.run([PROGRAM, "run", "gpu", *plan], check=True, stdout=subprocess.DEVNULL)
    lines = next(tmp_path.glob("*/samples.jsonl")).read_text().splitlines()
    samples = [json.loads(line) for line in lines]
    assert len(samples) > 30
    assert {sample["status"] for sample in samples} == {"unsupported"}
    assert all("needs" in sample["reason"] for sample in samples)
