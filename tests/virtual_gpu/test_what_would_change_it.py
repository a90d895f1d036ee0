"""The same program run again with another batch or with other settings of the allocator."""

import pytest

BATCH_OF_MEBIBYTES = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcudart.so.13")
words = sys.argv[1:]
batch = next((int(w.split("=")[1]) for w in words if "batch=" in w), None)
if batch is None:
    batch = int(words[words.index("--batch") + 1] if "--batch" in words else os.environ["BATCH"])
status = cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(batch << 20))
sys.exit(status)
"""


def searched(gpu, name, arguments=()):
    answer = gpu("l4", "--memory", "50MiB", "--largest-batch", name, program=BATCH_OF_MEBIBYTES,
                 arguments=arguments)
    assert answer.status == 0, answer.errors + answer.output
    return answer


# A batch of N takes N MiB. The GPU has 50 MiB, in granules of 2 MiB.
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("--batch", []), ("--batch", ["--batch", "3"]), ("--batch", ["--batch=64"]),
     ("train.batch", ["train.batch=7"]), ("BATCH", [])])
def test_the_largest_batch_is_found_however_the_program_is_told_its_batch(gpu, name, arguments):
    answer = searched(gpu, name, arguments)
    assert answer.figures["largest_batch"]["batch"] == 50
    assert answer.figures["largest_batch"]["too_large"] == 51
    assert answer.figures["peak_bytes"] == 50 << 20
    assert f"LARGEST BATCH: 50 by {name}; 51 does not fit" in answer.output


def test_where_no_batch_fits_the_answer_is_that_of_the_smallest(gpu):
    answer = gpu("l4", "--memory", "50MiB", "--budget", "2MiB", "--largest-batch", "BATCH",
                 program=BATCH_OF_MEBIBYTES.replace("batch << 20", "batch + 7 << 20"))
    assert answer.status == 13
    assert "NO BATCH FITS on l4" in answer.output
    assert answer.figures["largest_batch"]["batch"] == 0


def test_a_search_that_the_data_set_bounds_says_so(gpu):
    answer = gpu("l4", "--largest-batch", "BATCH",
                 program=BATCH_OF_MEBIBYTES.replace("batch << 20", "min(batch, 10) << 20"))
    assert answer.figures["largest_batch"]["too_large"] is None
    assert "From 16 on the peak stays the same" in answer.output


FRAGMENTS = """
import torch
kept = [torch.empty(9 << 20, dtype=torch.uint8, device="cuda") for _ in range(8)]
del kept[5:7], kept[1:3]
more = [torch.empty(18 << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
"""


def test_a_setting_that_would_make_it_fit_is_found_by_running_it(gpu, pytorch):
    """Two holes of 18 MiB each lie across two segments of 20 MiB, unless segments expand."""
    answer = gpu("l4", "--memory", "100MiB", "--settings", program=FRAGMENTS, python=pytorch)
    assert answer.status == 3, "the answer is that of the program as it is"
    tried = {row["setting"]: row["verdict"] for row in answer.figures["settings"]}
    assert tried["PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"] == "fits"
    assert tried["PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512"] == "does not fit"
    assert "--largest-batch NAME" in answer.output


def test_only_one_search_at_a_time(gpu):
    answer = gpu("l4", "--settings", "--largest-batch", "BATCH", program="")
    assert answer.status == 2
    assert "choose one" in answer.errors
