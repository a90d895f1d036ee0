#!/usr/bin/env python3
"""Measures what a GPU loses beside PyTorch's allocator: to the CUDA context, and to the kernels of each kind of
operation when it is first called. Nobody else may use the GPU meanwhile.

scripts/driver_memory.py

Each line is JSON: the bytes that cudaMemGetInfo lacks after a step, less what PyTorch's allocator holds, and what
it holds. docs/reference/devices.md has those of an H200. Exit code: 2 no GPU.
"""

import ctypes
import json

from driver_blocks import require, runtime

MIB = 1 << 20


def taken(cuda):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    require(cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)), "to tell its free memory")
    return total.value - free.value


def operations(torch):
    """Calls by name, in the order of their use."""
    functional = torch.nn.functional
    square = torch.zeros(1024, 1024, device="cuda")
    half = square.bfloat16()
    images = torch.zeros(32, 3, 224, 224, device="cuda", requires_grad=True)
    filters = torch.zeros(64, 3, 7, 7, device="cuda", requires_grad=True)
    heads = torch.zeros(8, 12, 512, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    layer = torch.nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.AdamW(layer.parameters())

    def step():
        layer(square).sum().backward()
        optimizer.step()

    def graph():
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            (square @ square).relu_()
        captured.replay()

    yield "tensors", lambda: square + square
    yield "a product", lambda: square @ square
    yield "a product in bf16", lambda: functional.linear(half, half, half[0])
    yield "a convolution", lambda: functional.conv2d(images, filters, stride=2).sum().backward()
    yield "attention in bf16", lambda: functional.scaled_dot_product_attention(heads, heads, heads).sum().backward()
    yield "sorting", square.sort
    yield "a step of AdamW", step
    yield "a singular value decomposition", lambda: torch.linalg.svd(square[:64, :64])
    yield "a Fourier transform", lambda: torch.fft.fft(square)
    yield "a CUDA graph", graph


def main():
    cuda = runtime()
    require(cuda.cudaFree(None), "to start")
    print(json.dumps({"after": "the context", "beside": taken(cuda), "allocator": 0}), flush=True)
    import torch

    for name, call in operations(torch):
        call()
        torch.cuda.synchronize()
        held = torch.cuda.memory_reserved()
        print(json.dumps({"after": name, "beside": taken(cuda) - held, "allocator": held}), flush=True)


if __name__ == "__main__":
    main()
