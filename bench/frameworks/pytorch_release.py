"""Takes a GiB of the card, drops it, and looks how much goes back to PyTorch's allocator and to the card.

case: large (one tensor), small (1024 tensors), cycles (tensors in objects that refer to each other) or
referenced (the tensor is still held elsewhere). collect: on for gc.collect() after del. empty: on for
torch.cuda.empty_cache() after that.
"""

import gc

import card

given = card.options(case="large", collect="on", empty="off")
card.forget_settings("PYTORCH_", "TORCH_", "CUDA_")

import torch  # noqa: E402


def readings():
    return torch.cuda.memory_allocated(), card.held()


torch.zeros(1, device="cuda")
gc.disable()  # so that what is freed is freed by what the case names
start = readings()
data = card.tensors(given["case"], lambda size: torch.zeros(size, dtype=torch.uint8, device="cuda"))
before = readings()
kept = list(data) if given["case"] == "referenced" else []
del data
if given["collect"] == "on":
    gc.collect()
if given["empty"] == "on":
    torch.cuda.empty_cache()
card.report(f"PyTorch {torch.__version__}", card.returned(start, before, readings()),
            f"{len(kept)} tensors were still held.")
