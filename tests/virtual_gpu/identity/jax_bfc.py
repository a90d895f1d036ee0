"""Serves one program of requests with the allocator of JAX on the GPU it finds, and prints each answer:
ADDRESS, bytes in use and bytes of the regions. serve_requests.cpp documents the input."""

import os
import sys
import time

import jax
import numpy

if jax.__version_info__ >= (0, 12):  # which else begins at the upper end of what it took in advance
    os.environ["XLA_FLAGS"] += " --xla_gpu_enable_allocator_spatial_partitioning=false"
device = jax.devices()[0]
live = {}
with open(sys.argv[1]) as requests, open(sys.argv[2], "w") as answers:
    for line in requests:
        request, *words = line.split()
        if request == "program":
            continue
        place = ""
        if request == "allocate":
            block = live[words[0]] = jax.device_put(numpy.empty(int(words[1]), numpy.uint8), device)
            place = f"{block.unsafe_buffer_pointer()} "
        else:
            before = device.memory_stats()["bytes_in_use"]
            live.pop(words[0]).block_until_ready().delete()
            while device.memory_stats()["bytes_in_use"] == before:  # threads of JAX free it
                time.sleep(0)
        now = device.memory_stats()
        answers.write(f"{place}{now['bytes_in_use']} {now['pool_bytes']}\n")
