"""Memory of virtual cards, taken by programs without a framework through the names of CUDA's libraries."""

import os
from pathlib import Path

from conftest import MIB, RUNTIME


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
    script = Path(__file__).parents[3] / "scripts" / "driver_blocks.py"
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
