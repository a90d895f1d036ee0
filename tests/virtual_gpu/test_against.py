"""Growth since an earlier run."""

import pytest

HOLD = """
import sys
import torch
def weights():
    return torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
def cache():
    return torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
kept = [weights(), cache()]
"""
TAKE = """
import ctypes, sys
ctypes.CDLL("libcudart.so.13").cudaMalloc(
    ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(int(sys.argv[1]) << 20))
"""


def test_the_line_that_grew_is_named_and_the_one_that_did_not_is_not(gpu, pytorch):
    before = gpu("l4", program=HOLD, python=pytorch, arguments=["32"])
    after = gpu("l4", "--against", before.figures["directory"], program=HOLD, python=pytorch,
                arguments=["96"])
    assert after.status == 10
    grown = [part for part in after.figures["against"]["parts"] if part["kind"] == "line"]
    assert [(part["name"].rsplit(":", 1)[-1], part["before_bytes"], part["now_bytes"])
            for part in grown] == [("5", 32 << 20, 96 << 20)]
    assert f"Since {before.figures['directory']}: GREW" in after.output
    assert "+64.00 MiB" in after.output.split("Grew, by line:")[1].splitlines()[1]


@pytest.mark.parametrize(("now", "status"), [("32", 0), ("30", 0), ("34", 10)])
def test_only_growth_fails(gpu, now, status):
    before = gpu("l4", program=TAKE, arguments=["32"])
    after = gpu("l4", "--against", f"{before.figures['directory']}/gpu.json", program=TAKE,
                arguments=[now])
    assert after.status == status
    assert after.figures["against"]["grew"] == (status == 10)
    assert after.figures["against"]["allocated"] is None
    assert after.figures["against"]["reserved"] == {
        "before_bytes": 32 << 20, "now_bytes": int(now) << 20}


def test_what_does_not_fit_is_no_mere_growth(gpu):
    before = gpu("l4", program=TAKE, arguments=["32"])
    after = gpu("l4", "--budget", "40MiB", "--against", before.figures["directory"], program=TAKE,
                arguments=["64"])
    assert after.status == 13


def test_a_file_that_is_no_earlier_run_is_refused_before_the_program_starts(gpu, tmp_path):
    (tmp_path / "other.json").write_text("{}")
    answer = gpu("l4", "--against", str(tmp_path / "other.json"), program="print('started')")
    assert answer.status == 2
    assert "this is not the gpu.json of an earlier run" in answer.errors
    assert "started" not in answer.output
