"""The stand-in for the driver's pool (cudaMallocAsync) beside what an H200's driver, 580.159 with CUDA 13.0, did with
the same requests on 26 November 2026. measured/h200_pool.jsonl.gz has a line for each run: its release threshold,
whether each request was followed by a synchronisation, and for each request what it was (a: allocate, f: free,
s: synchronise), a key, bytes, the offset of the block and the number of chunks of 32 MiB that the pool then held."""

import gzip
import json
from pathlib import Path

import pytest

MEASURED = Path(__file__).parent / "measured" / "h200_pool.jsonl.gz"
with gzip.open(MEASURED, "rt") as _lines:
    RUNS = {run["name"]: run for run in map(json.loads, _lines)}
REPLAY = """
import ctypes, json, sys
cuda = ctypes.CDLL("libcudart.so.13")
pool, held = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cudaDeviceGetDefaultMemPool(ctypes.byref(pool), 0)
run = json.load(open(sys.argv[1]))
cuda.cudaMemPoolSetAttribute(pool, 4, ctypes.byref(ctypes.c_uint64(run["threshold"])))
blocks, first, found = {}, None, []
for what, key, size, *_ in run["log"]:
    place = 0
    if what == "a":
        blocks[key] = ctypes.c_void_p()
        assert cuda.cudaMallocAsync(ctypes.byref(blocks[key]), ctypes.c_size_t(size), None) == 0
        first = blocks[key].value if first is None else first
        place = blocks[key].value - first
    elif what == "f":
        assert cuda.cudaFreeAsync(blocks.pop(key), None) == 0
    if what == "s" or run["synchronised"]:
        cuda.cudaDeviceSynchronize()
    cuda.cudaMemPoolGetAttribute(pool, 5, ctypes.byref(held))
    found.append([place, held.value >> 25])
print("found", json.dumps(found))
"""


@pytest.fixture
def replayed(gpu, tmp_path):
    """replayed(run) returns the stand-in's place of each block and the number of chunks held after each request."""

    def replay(run):
        requests = tmp_path / "run.json"
        requests.write_text(json.dumps(run))
        answer = gpu("h200", program=REPLAY, arguments=[str(requests)])
        assert answer.status == 0, answer.errors
        line = next(line for line in answer.output.splitlines() if line.startswith("found "))
        return json.loads(line.removeprefix("found "))

    return replay


@pytest.mark.parametrize("name", ["small 1", "mixed 1 threshold 0", "edges threshold 0"])
def test_a_pool_that_gives_back_does_what_the_driver_did_to_the_byte(replayed, name):
    assert replayed(RUNS[name]) == [measured[3:] for measured in RUNS[name]["log"]]


@pytest.mark.parametrize("name", [name for name in RUNS if RUNS[name]["threshold"] and name != "small 1"])
def test_a_pool_that_keeps_its_memory_holds_at_most_what_the_drivers_held_within_four_percent(replayed, name):
    most = max(held for _, held in replayed(RUNS[name]))
    assert most == pytest.approx(max(measured[4] for measured in RUNS[name]["log"]), rel=0.04)


def test_scattered_free_chunks_serve_one_large_block(replayed):
    blocks = [["a", number, 100 << 20] for number in range(8)]
    freed = [["f", number, 0] for number in range(0, 8, 2)]
    run = {"threshold": 2**63, "synchronised": True, "log": [*blocks, *freed, ["a", 8, 300 << 20]]}
    assert replayed(run)[-1][1] == 26  # as measured: one chunk more than the 25 of the eight blocks
