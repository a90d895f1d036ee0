"""Trains a network with PyTorch as its users do, and says what its allocator held and when.

network: resnet50, bert, dcgan or mlp; or those that headroom plan --pytorch counts beside its own: resnet
(depth, image, classes), masked_bert and gpt2 (size, vocabulary; 0 for the usual one). optimizer: usual, sgd or
adam. lengths of bert's sentences: fixed, or varying (the longest first, then three quarters, half and a quarter
of it). parts: into how many the batch is divided, for accumulation. precision: fp32, or bf16 (autocast).
checkpointing: off, or blocks (bottlenecks, or the layers of Hugging Face's models), of which
torch.utils.checkpoint keeps only what goes in. allocator: caching, expandable or cuda_malloc_async.
max_split_mb, roundup (divisions of a power of two) and collect_at (the share of the card from which cached
memory is given back) are settings of PYTORCH_CUDA_ALLOC_CONF; 0 leaves them out.
"""

import os

import card

given = card.options(
    lacks={
        "growth": "PyTorch's allocator always takes memory when it is needed",
        "limits": "PyTorch has no logical devices",
        "shares": "PyTorch has no logical devices",
        "strategy": "PyTorch trains on several cards with one process for each",
        "workspace_mb": "PyTorch has no limit on the workspaces of convolutions",
    },
    network="resnet50", batch=32, sequence=128, width=64, depth=50, image=224, classes=1000, size="base",
    vocabulary=0, optimizer="usual", steps=3, lengths="fixed", parts=1, checkpointing="off",
    precision="fp32", allocator="caching", max_split_mb=0, roundup=0, collect_at=0.0)
ALLOCATORS = {"caching": {}, "expandable": {"expandable_segments": True},
              "cuda_malloc_async": {"backend": "cudaMallocAsync"}}
card.one_of("allocator", given["allocator"], ALLOCATORS)
card.one_of("checkpointing", given["checkpointing"], ("off", "blocks"))
card.check_only_for(given, {"lengths": "fixed", "checkpointing": "off"}, {
    "lengths": ("bert",), "checkpointing": ("resnet50", "resnet", "bert", "masked_bert", "gpt2")})
settings = {**ALLOCATORS[given["allocator"]], "max_split_size_mb": given["max_split_mb"],
            "roundup_power2_divisions": given["roundup"], "garbage_collection_threshold": given["collect_at"]}
card.forget_settings("PYTORCH_", "TORCH_", "CUDA_")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = ",".join(f"{key}:{value}" for key, value in settings.items() if value)

import torch  # noqa: E402

import pytorch_networks  # noqa: E402


def batch_of_step(batch, step):
    if given["lengths"] == "fixed":
        return batch
    tokens, labels = batch
    return tokens[:, : max(given["sequence"] * (4 - step % 4) // 4, 1)], labels


def train(figures):
    torch.zeros(1, device="cuda")
    figures["first_operation_bytes"] = card.held()
    model, loss_of, batch, optimizer = pytorch_networks.make({**given, "batch": given["batch"] // given["parts"]})
    if given["checkpointing"] == "blocks":
        pytorch_networks.checkpoint_blocks(model)
    card.read(figures, "initial", torch.cuda.memory_allocated())
    for step in range(given["steps"]):
        for _ in range(given["parts"]):
            on_card = [part.to("cuda") for part in batch_of_step(batch, step)]
            with torch.autocast("cuda", torch.bfloat16, enabled=given["precision"] == "bf16"):
                loss = loss_of(*on_card)
            (loss / given["parts"]).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 0:
            card.read(figures, "after_step_1", torch.cuda.memory_allocated())


def peaks():
    return {"reserved_bytes.steady_peak": card.held(),
            "allocated_bytes.overall_peak": torch.cuda.max_memory_allocated(),
            "pool_bytes": torch.cuda.max_memory_reserved()}


def why_out_of_memory(error):
    return str(error).split(". ")[1] if isinstance(error, torch.cuda.OutOfMemoryError) else ""


card.report(f"PyTorch {torch.__version__}", *card.trained(train, peaks, why_out_of_memory))
