"""The stand-ins, called by programs without a framework through the names of CUDA's libraries."""

import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import HEADROOM, MIB, RUNTIME


def test_the_peak_is_what_was_held_at_once(gpu):
    answer = gpu("v100-16gb", program=RUNTIME + """
_, first = allocate(64 << 20)
_, second = allocate(32 << 20)
cuda.cudaFree(first)
allocate(16 << 20)
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["peak_bytes"] == 96 * MIB
    assert answer.first_line.startswith("FITS: 96.00 MiB of v100-16gb's 15.78 GiB")


COUNT = RUNTIME + """
count = ctypes.c_int()
cuda.cudaGetDeviceCount(ctypes.byref(count))
print("devices:", count.value)
"""


def test_the_program_sees_the_devices_that_its_own_list_names(gpu):
    for listed, devices in [("", 0), ("-1", 0), ("0", 1), ("0,1", 2), ("7", 1), ("GPU-8f2c", 1)]:
        setting = f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '{listed}'\n"
        assert f"devices: {devices}\n" in gpu("l4", "--gpus", "2", program=setting + COUNT).output


def test_a_list_in_the_users_shell_is_about_other_gpus(gpu):
    answer = gpu("l4", "--gpus", "2", program=COUNT, environment={"CUDA_VISIBLE_DEVICES": ""})
    assert "devices: 2\n" in answer.output


def test_memory_is_charged_to_the_card_that_the_list_names(gpu):
    setting = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\n"
    answer = gpu("l4", "--gpus", "2", program=setting + RUNTIME + "allocate(64 << 20)")
    assert [(d["device"], d["peak_bytes"]) for d in answer.figures["devices"]] == [(1, 64 * MIB)]


def test_processes_that_share_a_card_have_what_others_left(gpu):
    answer = gpu("l4", "--memory", "64MiB", program=RUNTIME + """
import subprocess, sys
if len(sys.argv) == 1:
    assert allocate(48 << 20)[0] == 0
    subprocess.run([sys.executable, __file__, "second"], check=True)
else:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    assert (free.value, total.value) == (16 << 20, 64 << 20)
    assert allocate(18 << 20)[0] == 2, "cudaErrorMemoryAllocation"
    assert allocate(14 << 20)[0] == 0
""")
    assert answer.status == 0, answer.errors
    [device] = answer.figures["devices"]
    assert (device["peak_bytes"], device["processes"]) == (62 * MIB, 2)
    assert "at the peak of 2 processes" in answer.output


def test_processes_that_never_ran_at_once_are_not_added_up(gpu):
    answer = gpu("l4", "--memory", "64MiB", program=RUNTIME + """
import os, subprocess, sys
if len(sys.argv) == 1:
    for size in (48, 60, 30):
        subprocess.run([sys.executable, __file__, str(size)], check=True)
    ended = subprocess.Popen([sys.executable, __file__, "20"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # its entry stays until the parent asks
    assert allocate(64 << 20)[0] == 0
else:
    assert allocate(int(sys.argv[1]) << 20)[0] == 0
""")
    assert answer.status == 0, answer.errors
    [device] = answer.figures["devices"]
    assert (device["peak_bytes"], device["processes"]) == (64 * MIB, 1)


def test_processes_that_take_memory_at_once_never_get_more_than_there_is(gpu):
    answer = gpu("l4", "--memory", "512MiB", program=RUNTIME + """
import os, time

def wait_for_all(name):
    with open(name, "a") as file:
        file.write("x")
    while os.path.getsize(name) < 4:
        time.sleep(0.001)

children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        wait_for_all("begun")
        while allocate(2 << 20)[0] == 0:
            pass
        wait_for_all("full")
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["devices"][0]["peak_bytes"] == 512 * MIB


def test_each_process_on_a_card_takes_a_context(gpu):
    answer = gpu("l4", "--memory", "64MiB", "--context", "10MiB", program=RUNTIME + """
import subprocess, sys
if len(sys.argv) == 1:
    assert allocate(20 << 20)[0] == 0
    subprocess.run([sys.executable, __file__, "second"], check=True)
else:
    assert allocate(26 << 20)[0] == 2, "cudaErrorMemoryAllocation"
    assert allocate(24 << 20)[0] == 0
""")
    assert answer.status == 0, answer.errors


def test_memory_is_there_up_to_the_last_granule_and_not_beyond(gpu):
    answer = gpu("l4", "--memory", "64MiB", program=RUNTIME + """
assert allocate(64 << 20)[0] == 0
assert allocate(1)[0] == 2, "cudaErrorMemoryAllocation"
assert cuda.cudaGetLastError() == 2
assert cuda.cudaGetLastError() == 0, "asking clears it"
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["devices"][0]["refused_requests"] == 1


def test_small_blocks_take_what_was_measured_on_a_real_driver(gpu):
    script = Path(__file__).parents[2] / "scripts" / "driver_blocks.py"
    answer = gpu("l4", program=f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert answer.status == 0, answer.output
    assert "393,216 B    425,984 B    425,984 B" in answer.output
    assert "not free again" not in answer.output


def test_blocks_begin_regions_that_descend_and_fill_the_lowest_gap_between_them(gpu):
    answer = gpu("h200", program=RUNTIME + """
MIB = 1 << 20
def take(size):
    status, address = allocate(size * MIB)
    assert status == 0
    return address.value // MIB
first, second = take(20), take(20)
assert second == first - 32, (first, second)
assert [take(2), take(12)] == [second + 20, first + 20]
cuda.cudaFree(ctypes.c_void_p(second * MIB))
assert [take(16), take(98)] == [second, second - 128]
""")
    assert answer.status == 0, answer.errors


def test_small_blocks_that_live_at_once_do_not_overlap(gpu):
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}")
    answer = gpu("l4", program=RUNTIME + f"""
import random
chance = random.Random({seed})
live = []
for _ in range(2000):
    if live and chance.random() < 0.4:
        address, size = live.pop(chance.randrange(len(live)))
        assert cuda.cudaFree(ctypes.c_void_p(address)) == 0
    else:
        size = chance.choice([1, 511, 512, 513, 70_000, 400_000, 1 << 20, (1 << 20) + 1])
        status, address = allocate(size)
        assert status == 0 and address.value % 256 == 0
        live.append((address.value, size))
    if len(live) > 1:
        ordered = sorted(live)
        assert all(a + size <= b for (a, size), (b, _) in zip(ordered, ordered[1:]))
for address, _ in live:
    assert cuda.cudaFree(ctypes.c_void_p(address)) == 0
free, total = ctypes.c_size_t(), ctypes.c_size_t()
cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
assert free.value == total.value
""")
    assert answer.status == 0, answer.errors


def test_what_the_context_takes_is_not_there_for_the_program(gpu):
    answer = gpu("l4", "--memory", "64MiB", "--context", "10MiB", program=RUNTIME + """
assert allocate(54 << 20)[0] == 0
assert allocate(1)[0] == 2
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["memory_bytes"] == 54 * MIB


def test_a_program_that_leaves_less_than_a_context_takes_is_warned(gpu):
    program = RUNTIME + "assert allocate(60 << 20)[0] == 0"
    warning = "On a real card it may not fit"
    assert warning in gpu("l4", "--memory", "64MiB", program=program).output
    assert warning not in gpu("l4", program=program).output
    assert warning not in gpu("l4", "--memory", "74MiB", "--context", "10MiB", program=program).output


def test_small_copies_read_back_as_they_were_written(gpu):
    answer = gpu("l4", program=RUNTIME + """
_, a = allocate(1 << 20)
_, b = allocate(1 << 20)
written = bytes(range(256)) * 16
assert cuda.cudaMemcpy(a, written, ctypes.c_size_t(4096), 1) == 0
assert cuda.cudaMemcpy(b, a, ctypes.c_size_t(4096), 3) == 0
cuda.cudaMemset(ctypes.c_void_p(b.value + 100), 7, ctypes.c_size_t(50))
read = ctypes.create_string_buffer(4200)
assert cuda.cudaMemcpy(read, b, ctypes.c_size_t(4200), 2) == 0
assert read.raw == written[:100] + bytes([7]) * 50 + written[150:] + bytes(104)
""")
    assert answer.status == 0, answer.errors


def test_what_a_kernel_writes_to_is_not_known_any_more(gpu):
    answer = gpu("l4", program=RUNTIME + """
read, written = allocate(1 << 20)[1], allocate(1 << 20)[1]
for buffer in (read, written):
    assert cuda.cudaMemcpy(buffer, bytes([1]) * 64, ctypes.c_size_t(64), 1) == 0
kernel = ctypes.create_string_buffer(1)
scale = b"_Z5scaleIfEvPKT_PS0_i"  # void scale<float>(float const*, float*, int)
cuda.__cudaRegisterFunction(None, kernel, None, scale, 0, None, None, None, None, None)
class Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]
count = ctypes.c_int(16)
arguments = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (read, written, count)))
one = Dim3(1, 1, 1)
assert cuda.cudaLaunchKernel(kernel, one, one, arguments, ctypes.c_size_t(0), None) == 0
held = ctypes.create_string_buffer(64)
assert cuda.cudaMemcpy(held, read, ctypes.c_size_t(64), 2) == 0
assert held.raw == bytes([1]) * 64
assert cuda.cudaMemcpy(held, written, ctypes.c_size_t(64), 2) == 0
assert held.raw == bytes(64)
""")
    assert answer.status == 0, answer.errors


def test_both_cuda_12_and_13_describe_the_card_in_their_own_layout(gpu):
    answer = gpu("rtx4090", program="""
import ctypes
for library, name, at in (("libcudart.so.12", "cudaGetDeviceProperties_v2", 360),
                          ("libcudart.so.13", "cudaGetDeviceProperties", 360)):
    cuda = ctypes.CDLL(library)
    properties = ctypes.create_string_buffer(4096)
    assert getattr(cuda, name)(properties, 0) == 0
    assert b"4090" in properties.value
    memory = int.from_bytes(properties.raw[288:296], "little")
    text = properties.raw
    pairs = [int.from_bytes(text[i:i + 4], "little") for i in range(340, 380, 4)]
    assert (8, 9) in zip(pairs, pairs[1:]), pairs
    version = ctypes.c_int()
    cuda.cudaRuntimeGetVersion(ctypes.byref(version))
    assert str(version.value)[:2] == library[-2:]
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    assert memory == total.value == free.value
""")
    assert "Error" not in answer.errors, answer.errors


def test_virtual_memory_counts_what_is_created_not_what_is_reserved(gpu):
    answer = gpu("l4", program="""
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
u64, ref = ctypes.c_ulonglong, ctypes.byref
address, handle = u64(), u64()
assert cuda.cuMemAddressReserve(ref(address), ctypes.c_size_t(1 << 40), ctypes.c_size_t(0),
                                u64(0), u64(0)) == 0
properties = (ctypes.c_int * 16)(1, 0, 1, 0)
assert cuda.cuMemCreate(ref(handle), ctypes.c_size_t(20 << 20), properties, u64(0)) == 0
assert cuda.cuMemMap(address, ctypes.c_size_t(20 << 20), ctypes.c_size_t(0), handle, u64(0)) == 0
assert cuda.cuMemRelease(handle) == 0
free, total = ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuMemGetInfo_v2(ref(free), ref(total))
assert total.value - free.value == 20 << 20, "the mapping keeps it"
assert cuda.cuMemUnmap(address, ctypes.c_size_t(20 << 20)) == 0
cuda.cuMemGetInfo_v2(ref(free), ref(total))
assert total.value == free.value
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["peak_bytes"] == 20 * MIB


def test_a_description_of_cublaslt_keeps_what_it_is_given(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
blas = ctypes.CDLL("libcublasLt.so.12")
layout, rows, batches = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int32(7)
ref = ctypes.byref
assert blas.cublasLtMatrixLayoutCreate(ref(layout), 0, ctypes.c_uint64(640), ctypes.c_uint64(480),
                                       ctypes.c_int64(640)) == 0
assert blas.cublasLtMatrixLayoutGetAttribute(layout, 2, ref(rows), ctypes.c_size_t(8), None) == 0
assert rows.value == 640
assert blas.cublasLtMatrixLayoutSetAttribute(layout, 5, ref(batches), ctypes.c_size_t(4)) == 0
batches.value = 0
assert blas.cublasLtMatrixLayoutGetAttribute(layout, 5, ref(batches), ctypes.c_size_t(4), None) == 0
assert batches.value == 7
""")
    assert answer.status == 0, answer.errors


def test_a_product_of_sparse_matrices_has_its_non_zeros_or_an_estimate_of_them(gpu):
    answer = gpu("l4", program=RUNTIME + """
import random
from ctypes import byref, c_int64, c_size_t, c_void_p
sparse = ctypes.CDLL("libcusparse.so.12")
def on_card(numbers, kind):
    address = allocate(1 << 20)[1]
    if numbers is not None:
        values = (kind * len(numbers))(*numbers)
        assert cuda.cudaMemcpy(address, values, c_size_t(ctypes.sizeof(values)), 1) == 0
    return address
def matrix(rows, columns, kind, base, is_known):
    places = [sorted(random.sample(range(columns), random.randint(0, 12))) for _ in range(rows)]
    offsets = [base + sum(map(len, places[:row])) for row in range(rows + 1)]
    indices = [base + column for row in places for column in row] if is_known else None
    of_type, handle = 3 if kind is c_int64 else 2, c_void_p()
    assert sparse.cusparseCreateCsr(byref(handle), c_int64(rows), c_int64(columns), c_int64(offsets[-1] - base),
                                    on_card(offsets, kind), on_card(indices, kind), None, of_type, of_type, base, 0) == 0
    return handle, places
def size_of(handle):
    found = [c_int64(-1) for _ in range(3)]
    assert sparse.cusparseSpMatGetSize(handle, *map(byref, found)) == 0
    return [number.value for number in found]
for kind, base, is_known in (ctypes.c_int32, 0, True), (c_int64, 1, True), (ctypes.c_int32, 0, False):
    rows, middle, columns = (random.randint(300, 400) for _ in range(3))
    (a, places), (b, of_middle) = matrix(rows, middle, kind, base, True), matrix(middle, columns, kind, base, is_known)
    true = sum(len(set().union(*(of_middle[k] for k in row))) for row in places)
    assert size_of(a) == [rows, middle, sum(map(len, places))]
    c, bytes_needed, product = c_void_p(), c_size_t(77), c_void_p()
    none = c_int64(0)
    sparse.cusparseCreateCsr(byref(c), c_int64(rows), c_int64(columns), none, None, None, None, 2, 2, 0, 0)
    assert sparse.cusparseSpGEMM_createDescr(byref(product)) == 0
    call = (None, 0, 0, None, a, b, None, c, 0, 0, product, byref(bytes_needed), None)
    assert sparse.cusparseSpGEMM_workEstimation(*call) == 0 and bytes_needed.value == 0
    assert sparse.cusparseSpGEMM_compute(*call) == 0 and bytes_needed.value == 0
    *shape, found = size_of(c)
    assert shape == [rows, columns]
    assert found == true if is_known else 0.9 * true < found < 1.1 * true, (found, true)
    offsets = on_card([1, 2], kind)
    assert sparse.cusparseCsrSetPointers(c, offsets, None, None) == 0
    assert sparse.cusparseSpGEMM_copy(*call[:11]) == 0
    assert not cuda.headroom_gpu_knows(offsets, c_size_t(8))
    assert sparse.cusparseDestroySpMat(c) == 0
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["sizes_not_known"] == {"cusparseSpGEMM_compute": 3, "cusparseSpGEMM_workEstimation": 3}
    assert list(answer.figures["sizes_estimated"].values()) == [1]


def test_a_function_for_the_host_runs(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
called = []
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
assert ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc(None, function, ctypes.c_void_p(5)) == 0
assert called == [5]
""")
    assert answer.status == 0, answer.errors


def test_the_driver_knows_page_locked_memory(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
driver, ref = ctypes.CDLL("libcuda.so.1"), ctypes.byref
address, kind, device = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_int(-1)
assert cuda.cudaHostAlloc(ref(address), ctypes.c_size_t(4096), 0) == 0
assert driver.cuPointerGetAttribute(ref(kind), 2, address) == 0
assert driver.cuPointerGetAttribute(ref(device), 9, address) == 0
assert (kind.value, device.value) == (1, 0)
""")
    assert answer.status == 0, answer.errors


def test_managed_memory_is_not_counted_and_said_to_be_so(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
driver, ref = ctypes.CDLL("libcuda.so.1"), ctypes.byref
first, second, managed, kind = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint(), (ctypes.c_int * 16)()
assert cuda.cudaMallocManaged(ref(first), ctypes.c_size_t(40 << 30), 1) == 0
ctypes.memset(first, 1, 4096)
assert cuda.cudaPointerGetAttributes(kind, first) == 0 and kind[0] == 3
assert driver.cuPointerGetAttribute(ref(managed), 8, first) == 0 and managed.value == 1
assert cuda.cudaFree(first) == 0
assert driver.cuMemAllocManaged(ref(second), ctypes.c_size_t(8 << 30), 1) == 0
assert driver.cuMemFree_v2(second) == 0
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["managed_bytes"] == 40 << 30
    assert answer.figures["peak_bytes"] == 2 * MIB
    assert "not counted: 40.00 GiB of managed memory" in answer.output


def test_a_function_that_is_not_there_stops_the_program_with_its_name(gpu):
    answer = gpu("l4", program="""
import ctypes
ctypes.CDLL("libcusolver.so.12").cusolverDnSgebrd_bufferSize()
""")
    assert answer.status == 2
    assert "cusolverDnSgebrd_bufferSize" in answer.first_line
    assert answer.figures["not_supported"] == ["cusolverDnSgebrd_bufferSize"]


def test_a_size_that_only_the_library_knows_is_said_to_be_not_known(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
size = ctypes.c_size_t(1)
ctypes.CDLL("libcudnn.so.9").cudnnDropoutGetStatesSize(None, ctypes.byref(size))
assert size.value == 0
""")
    assert answer.figures["sizes_not_known"] == {"cudnnDropoutGetStatesSize": 1}
    assert "size not known, counted as 0 bytes: cudnnDropoutGetStatesSize" in answer.output


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


def test_a_fork_is_counted_apart_from_its_parent(gpu):
    answer = gpu("l4", program=RUNTIME + """
import os
allocate(2 << 20)
if os.fork() == 0:
    os._exit(0)
os.wait()
allocate(2 << 20)
""")
    assert answer.figures["peak_bytes"] == 4 * MIB


def test_the_users_own_sitecustomize_still_runs(gpu, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('my own start')")
    answer = gpu("l4", program=RUNTIME + "allocate(1)", environment={"PYTHONPATH": str(own)})
    assert "my own start" in answer.output



def refused(*arguments):
    process = subprocess.run([HEADROOM, "gpu", *arguments], capture_output=True, text=True)
    return process.returncode, process.stderr


def test_an_unknown_card_is_refused_with_the_nearest_name():
    status, errors = refused("rtx4091", "--", "true")
    assert status == 2
    assert "rtx4090" in errors


def test_a_missing_command_is_refused_with_an_example():
    status, errors = refused("rtx4090")
    assert status == 2
    assert "headroom gpu rtx4090 -- python train.py" in errors


def test_a_bad_number_of_steps_is_refused():
    status, errors = refused("rtx4090", "--until-step", "-3", "--", "true")
    assert status == 2
    assert "--until-step -3" in errors


def test_a_command_that_is_not_there_is_refused(tmp_path):
    status, errors = refused("rtx4090", "--out", str(tmp_path / "out"), "--", "no-such-program")
    assert status == 2
    assert "no-such-program cannot be started" in errors


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
