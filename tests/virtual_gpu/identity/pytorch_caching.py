"""Serves programs of requests with PyTorch's own caching allocator on the GPU it finds, and prints each
answer. serve_requests.cpp documents the input; `program FRACTION` empties the cache and sets the fraction of
the device that PyTorch may use."""

import sys

import torch


class Server:
    def __init__(self):
        self.live = {}
        self.streams = {0: torch.cuda.current_stream()}
        self.settings = ""

    def begin(self, fraction):
        self.live.clear()
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(float(fraction))

    def stream(self, number):
        if number not in self.streams:
            self.streams[number] = torch.cuda.Stream()
        return self.streams[number]

    def allocate(self, key, size, stream):
        try:
            with torch.cuda.stream(self.stream(stream)):
                block = self.live[key] = torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            return "refused"
        return str(block.data_ptr())

    def figures(self):
        now = torch._C._cuda_memoryStats(0)
        return (f"{now['allocated_bytes']['all']['current']} {now['reserved_bytes']['all']['current']} "
                f"{now['segment']['all']['current']}")


def serve(lines, out):
    server = Server()
    for line in lines:
        request, *words = line.split()
        place = ""
        if request == "program":
            server.begin(*words)
            continue
        if request == "allocate":
            place = server.allocate(words[0], int(words[1]), int(words[2])) + " "
        elif request == "free":
            server.live.pop(words[0], None)
        elif request == "record" and words[0] in server.live:
            server.live[words[0]].record_stream(server.stream(int(words[1])))
        elif request == "trim":
            torch.cuda.empty_cache()
        out.write(f"{place}{server.figures()}\n")


with open(sys.argv[1]) as requests, open(sys.argv[2], "w") as answers:
    serve(requests, answers)
