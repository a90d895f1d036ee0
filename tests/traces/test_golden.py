"""The kept file of format 1.0, by the Python reader; tests/golden/trace_file_test.cpp is the other."""

from __future__ import annotations

from conftest import ROOT

from harness.trace.file import read_trace

KINDS = ["alloc", "free", "segment_alloc", "segment_free", "oom", "segment_map", "segment_unmap"]


def test_a_file_of_version_1_0_is_read_as_it_was_written() -> None:
    trace = read_trace(ROOT / "tests" / "golden" / "trace_1.0.hrtrace", 1000)
    assert trace.header["version"] == "1.0"
    assert trace.header["allocator"] == "bfc(growth=on)"
    assert trace.header["capacity_bytes"] == 16 * 2**30
    assert trace.header["granule_bytes"] == 2 * 2**20
    assert trace.header["kinds"] == KINDS
    assert trace.op_names == ["conv1", "layer1.0.conv1", "fc"]
    index = range(1000)
    expected = {
        "kind": [i % 7 for i in index],
        "role": [i % 9 for i in index],
        "phase": [i % 8 for i in index],
        "stream": [i % 3 for i in index],
        "id": [i * 7919 % 1000 for i in index],
        "op": [-1 if i % 4 == 3 else i % 4 for i in index],
        "step": [i // 100 - 1 for i in index],
        "requested_bytes": [i**3 * 1000 for i in index],
        "size_bytes": [-(-(i**3) * 1000 // 256) * 256 for i in index],
        "address": [i * 7919 % 1000 << 21 for i in index],
        "time_ns": [i * 1_000_003 for i in index],
    }
    assert {name: values.tolist() for name, values in trace.columns.items()} == expected
