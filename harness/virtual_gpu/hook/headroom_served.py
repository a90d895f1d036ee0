"""PyTorch with one of Headroom's allocators in place of its own. The environment names the allocator and the
library that serves it (capture/library.cpp)."""

import ctypes
import os
import resource
import sys

ONLY_FIGURES = "HEADROOM_GPU_ONLY_FIGURES" in os.environ  # record neither a history nor roles
LIBRARY = os.environ.get("HEADROOM_ALLOCATOR_LIBRARY", "")
HOST = -1  # the library's device number for the machine's own memory
ON_HOST = "HEADROOM_ALLOCATOR_CAPACITY" in os.environ
MOST_DEVICES = 64

library = None  # set once PyTorch is served


class Bytes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("requested", "allocated", "reserved")]


class Figures(ctypes.Structure):
    _fields_ = [
        *((name, Bytes) for name in ("now", "peak", "peak_since_reset")),
        *((name, ctypes.c_uint64) for name in ("allocations", "frees", "segments")),
        *((name, ctypes.c_uint64) for name in ("refusals", "last_refused_bytes")),
    ]


def figures_of(device):
    """Returns None for a device that was not used."""
    figures = Figures()
    return figures if library.headroom_figures(device, ctypes.byref(figures)) else None


def pytorch_stats(device):
    """Answers torch.cuda.memory_stats() and what is built on it."""
    figures = figures_of(device) or Figures()
    result = {
        f"{kind}_bytes": {"all": {"current": getattr(figures.now, name), "peak": getattr(figures.peak_since_reset, name)}}
        for kind, name in [("requested", "requested"), ("allocated", "allocated"), ("active", "allocated"),
                           ("reserved", "reserved")]
    }
    result["allocation"] = {"all": {"current": figures.allocations - figures.frees}}
    result["segment"] = {"all": {"current": figures.segments}}
    result["num_ooms"] = figures.refusals
    return result


def reset_peaks(device):
    library.headroom_reset_peaks(device)


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def serve(torch):
    """Called once PyTorch has been imported."""
    global library
    library = ctypes.CDLL(LIBRARY)
    library.headroom_can_refuse.restype = library.headroom_figures.restype = ctypes.c_bool
    library.headroom_why_not_engaged.restype = ctypes.c_char_p
    if not library.headroom_can_refuse():
        print(f"headroom: --allocator: PyTorch {torch.__version__} exports no c10::OutOfMemoryError, with which "
              "a request is refused; take a newer one, such as 2.15", file=sys.stderr)
        raise SystemExit(2)
    if ON_HOST:
        return
    allocator = torch.cuda.memory.CUDAPluggableAllocator(LIBRARY, "headroom_allocate", "headroom_free")
    allocator.allocator().set_record_stream_fn(address_of(library.headroom_record_stream))
    allocator.allocator().set_reset_fn(address_of(library.headroom_trim))  # torch.cuda.empty_cache()
    torch.cuda.memory.change_current_allocator(allocator)
    torch.cuda.CUDAGraph.capture_begin = refuse_graph
    torch._C._cuda_memoryStats = pytorch_stats
    torch._C._cuda_resetPeakMemoryStats = reset_peaks


def refuse_graph(graph, *arguments, **options):
    """Replaces CUDAGraph.capture_begin. A graph's memory must stay reserved for its replays, in a pool of its
    own. Headroom's allocators have no such pools: they would reuse that memory and report too few bytes."""
    print("headroom: --allocator: the program captures a CUDA graph. PyTorch's own allocator keeps a private "
          "pool of memory for each graph, and Headroom's allocators have none. Run it without CUDA graphs or "
          "without --allocator",
          file=sys.stderr)
    raise SystemExit(2)


def end_step():
    if library is not None:
        library.headroom_end_step()


def refused_bytes():
    """Returns the bytes of the last refused request."""
    used = (figures_of(device) for device in range(HOST, MOST_DEVICES))
    return max((figures.last_refused_bytes for figures in used if figures), default=0)


def without_holders(device, kind):
    return {"device": device, "kind": kind, "phase": "", "roles": [], "lines": [], "modules": [], "phase_peaks": {}}


def describe():
    """Returns the figures of each device that was served."""
    result = []
    for device in range(HOST, MOST_DEVICES):
        if (figures := figures_of(device)) is not None:
            result.append({
                **without_holders(max(device, 0), "cpu" if device == HOST else "cuda"),
                "peak_requested": figures.peak.requested,
                "peak_allocated": figures.peak.allocated,
                "peak_reserved": figures.peak.reserved,
                "not_engaged": library.headroom_why_not_engaged(device).decode(),
            })
    return result


def peak_resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
