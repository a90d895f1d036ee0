"""Records, inside the user's program, what PyTorch's own allocator does: its counters, its history of
allocations and out-of-memory errors."""

import ctypes
import functools
import os
import pickle
import sys
import traceback

import headroom_compiler
import headroom_cpu
import headroom_end
import headroom_known
import headroom_memory
import headroom_notes
import headroom_served
import headroom_steps as steps

WORLD = int(os.environ.get("HEADROOM_GPU_WORLD", "0"))
OLDEST = (2, 5)
MOST_EVENTS = 2_000_000  # a longer history loses its beginning
DRIVERS_OWN = "cudaMallocAsync"  # the name of the allocator inside the driver


def on_out_of_memory(device, requested, *_):
    line = headroom_notes.line_among(traceback.extract_stack())
    steps.notes.out_of_memory.append({"device": device, "requested": requested, "line": line})
    steps.mark_what_lives()  # includes what the current step has made so far


# PyTorch's highest peaks in bytes before the program reset them, by device.
earlier_peaks = {}


def peaks_of(device):
    """Returns PyTorch's own peaks of the whole program in bytes, by what they count."""
    import torch

    stats = torch.cuda.memory_stats(device)
    earlier = earlier_peaks.get(device, {})
    return {
        kind: max(stats.get(f"{kind}_bytes.all.peak", 0), earlier.get(kind, 0))
        for kind in ("requested", "allocated", "reserved")
    }


def keep_peaks(torch):
    """Keeps the peaks that PyTorch forgets when the program resets them."""

    def kept(reset):
        @functools.wraps(reset)
        def keep_and_reset(device):
            earlier_peaks[device] = peaks_of(device)
            return reset(device)
        return keep_and_reset

    for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
        if hasattr(torch._C, name):
            setattr(torch._C, name, kept(getattr(torch._C, name)))


def describe_device(device, trace, segments):
    """Returns the figures of one device. The counters are PyTorch's own."""
    is_whole = len(trace) < MOST_EVENTS
    if not is_whole:
        trace = headroom_memory.with_beginning(trace, segments)
    peaks = peaks_of(device) if steps.notes.cpu is None else dict.fromkeys(("requested", "allocated", "reserved"), 0)
    summary = headroom_memory.summarise(trace, steps.notes.marks, steps.modules.at, steps.notes.step_times)
    # The history holds requested bytes, the counters allocated ones: rounded up, or the whole of a block
    # that is not worth splitting.
    allocated = max(peaks["allocated"], summary["peak"])
    if allocated > summary["peak"]:
        name = "rounding by the allocator" if is_whole else "at a peak before the recorded history"
        summary["roles"].append({"name": name, "bytes": allocated - summary["peak"]})
    return {
        "device": device,
        "kind": steps.notes.device_type,
        "peak_requested": peaks["requested"],
        "peak_allocated": allocated,
        "peak_reserved": max(peaks["reserved"], summary["peak_reserved"]),
        "phase": summary["phase"],
        "roles": summary["roles"],
        "lines": summary["lines"],
        "modules": summary["modules"],
        "phase_peaks": summary["phase_peaks"],
        "curve": summary["curve"],
        **(describe_card(device) if headroom_notes.CAPTURE and steps.notes.cpu is None else {}),
    }


def describe_card(device):
    import torch

    free, total = torch.cuda.mem_get_info(device)
    beside = total - free - torch.cuda.memory_reserved(device)
    name = torch.cuda.get_device_name(device)
    return {"card": name, "card_memory": total, "beside_allocator": max(beside, 0)}


def workspaces():
    """Returns marks of the memory that PyTorch gave to cuBLAS and cuDNN as their workspaces."""
    if headroom_notes.CAPTURE:
        return []
    listed = ctypes.CDLL(None).headroom_gpu_workspaces
    count = listed(None, None, ctypes.c_size_t(0))
    times, addresses = (ctypes.c_int64 * count)(), (ctypes.c_uint64 * count)()
    listed(times, addresses, ctypes.c_size_t(count))
    return [(time, address, 0, "workspaces") for time, address in zip(times, addresses)]


def write():
    import torch

    lacks = without_cuda(torch)
    if steps.notes.written or not (steps.notes.active or steps.notes.ended_out_of_memory or lacks):
        return
    steps.notes.written = True
    if not steps.notes.active:  # An error about memory is that of another process, which passed it on.
        steps.notes.write(f"PyTorch {torch.__version__}", [], "", lacks)
        return
    if headroom_served.ONLY_FIGURES:
        write_figures(torch)
        return
    if steps.notes.cpu is None and torch.cuda.get_allocator_backend() == DRIVERS_OWN:
        write_counters(torch)
        return
    if not steps.notes.marks:
        steps.mark_what_lives()
    if steps.notes.cpu is None:
        snapshot = headroom_compiler.snapshot(torch)
    else:
        snapshot = {"segments": [], "device_traces": [steps.notes.cpu.stop()]}
    steps.notes.marks += workspaces()
    events = (event for trace in snapshot["device_traces"] for event in trace)
    has_allocated = any(event["action"] == "alloc" for event in events)
    if not (steps.notes.steps or steps.notes.error or has_allocated):
        return  # such as a process that only compiles
    name = f"snapshot-{os.getpid()}.pickle" if has_allocated else ""
    if name:
        with open(os.path.join(headroom_notes.RECORDS, name), "wb") as out:
            pickle.dump(snapshot, out)
    devices = [
        describe_device(device, trace, [s for s in snapshot["segments"] if s["device"] == device])
        for device, trace in enumerate(snapshot["device_traces"])
        if any(event["action"] == "alloc" for event in trace)
    ]
    steps.notes.write(f"PyTorch {torch.__version__}", devices, name, differences_of(torch))


def without_cuda(torch):
    """Says what to do where a program trains, or fails, with a build of PyTorch that cannot use a GPU."""
    if torch.version.cuda is not None or not (steps.notes.steps or steps.notes.error):
        return []
    version = torch.__version__.partition("+")[0]
    return [f"PyTorch {torch.__version__} is a build without CUDA, which uses no GPU; the build on PyPI has CUDA: "
            f"pip install --force-reinstall torch=={version}"]


def differences_of(torch):
    """Returns sentences that say how the run differs from one on a real card."""
    if steps.notes.cpu is not None or headroom_notes.CAPTURE:
        return []
    import headroom_ranks  # only now, because it needs PyTorch

    known = headroom_known
    by_values = (known.decisions, known.comparisons, known.masks, known.duplicates, known.draws, known.steps,
                 known.reads, known.divisors, known.outside)
    return [*cards_without_kernels(torch), *without_cudnn_attention(torch), *headroom_ranks.what_is_held_longer(),
            *(words for lines in by_values for words in lines.words())]


def cards_without_kernels(torch):
    """Says that a real card of this kind refuses to run this build of PyTorch; [] where it does not."""
    built = [name.removeprefix("sm_").rstrip("af") for name in torch.cuda.get_arch_list() if name.startswith("sm_")]
    major, minor = torch.cuda.get_device_capability()
    oldest = min(map(int, built), default=0)
    if 10 * major + minor >= oldest:
        return []
    return [f"a real card refuses this build of PyTorch, which has no kernels for compute capability {major}.{minor}, "
            f"only for {oldest // 10}.{oldest % 10} and newer; the bytes are those that its kernels would take"]


def lacks_cudnn_attention(torch):
    """Whether NVRTC is missing, which compiles the attention of cuDNN 9.19. Version 9.26 does not need NVRTC."""
    if "HEADROOM_GPU_NVRTC" in os.environ or not torch.backends.cudnn.is_available():
        return False
    # torch.backends.cudnn.version() refuses cards for which this version has no kernels.
    return torch._C._cudnn.getRuntimeVersion() < (9, 26)


def without_cudnn_attention(torch):
    """Says that attention takes another kernel than on a real card, where PyTorch may prefer cuDNN's."""
    if not lacks_cudnn_attention(torch) or torch.cuda.get_device_capability()[0] < 9:
        return []
    return ["attention does without cuDNN's kernels, which PyTorch may prefer on this card: this version of cuDNN "
            "compiles them with NVRTC, from the package nvidia-cuda-nvrtc, which is not installed"]


def write_counters(torch):
    """Writes PyTorch's counters alone, because the driver's allocator keeps no record of its blocks."""
    devices = []
    for device in range(torch.cuda.device_count()):
        peaks = peaks_of(device)
        if peaks["allocated"]:
            devices.append({
                **headroom_served.without_holders(device, "cuda"),
                "peak_allocated": peaks["allocated"],
                "peak_reserved": peaks["reserved"],
                **(describe_card(device) if headroom_notes.CAPTURE else {}),
            })
    steps.notes.write(f"PyTorch {torch.__version__}", devices, "", differences_of(torch))


def write_figures(torch):
    """Writes what `--allocator` compares of two runs of a program."""
    served = headroom_served.library is not None
    if not served and steps.notes.device_type == "cpu":
        devices = [{**headroom_served.without_holders(0, "cpu"), "peak_allocated": 0}]  # malloc counts nothing
    else:
        devices = headroom_served.describe() if served else []
    ends = steps.notes.step_times
    more = {
        "step_us": [end - begin for begin, end in zip(ends, ends[1:])],
        "peak_resident": headroom_served.peak_resident(),
    }
    steps.notes.write(f"PyTorch {torch.__version__}", devices, "", [], more)


def start_recording():
    """Called when CUDA starts, before its first allocation."""
    import torch

    steps.notes.active = True
    if not headroom_notes.CAPTURE and lacks_cudnn_attention(torch):
        torch.backends.cuda.enable_cudnn_sdp(False)
    if headroom_served.ONLY_FIGURES:
        return
    keep_peaks(torch)
    if torch.cuda.get_allocator_backend() == DRIVERS_OWN:
        return
    record = torch.cuda.memory._record_memory_history
    record(max_entries=MOST_EVENTS, stacks="python")
    # The program's own calls would shorten or end this history, which its own snapshots show as well.
    torch.cuda.memory._record_memory_history = lambda *_, **__: None
    torch._C._cuda_attach_out_of_memory_observer(on_out_of_memory)


def record_the_cpu(torch):
    """Called before the first allocation, where there is no GPU."""
    steps.notes.active = True
    steps.notes.device_type = "cpu"
    if not headroom_served.ONLY_FIGURES:
        steps.notes.cpu = headroom_cpu.History(torch)


def note_error(error, is_lost):
    import torch

    text = f"{type(error).__name__}: {error}"
    is_out_of_memory = isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator: " in text
    noted = steps.notes.note_error(text, is_out_of_memory, is_lost)
    if noted and is_out_of_memory and headroom_served.library is not None:
        line = headroom_notes.users_line(error.__traceback__)
        refused = headroom_served.refused_bytes()
        steps.notes.out_of_memory.append({"device": 0, "requested": refused, "line": line})
    return noted


def end():
    """Called when the process ends: writes its records, and lets other ranks read what this one has told them."""
    write()
    if numbers := sys.modules.get("headroom_ranks.numbers"):
        numbers.Told.leave(has_failed=bool(steps.notes.error))


def take_back_error():
    steps.notes.take_back_error()


def share_with_other_ranks(torch):
    import headroom_ranks.objects  # only now, because it needs PyTorch

    if not torch.distributed.is_available():
        return
    headroom_ranks.trust_other_ranks()
    headroom_ranks.tell_sizes_of_splits()
    if (2, 7) <= version_of(torch) < (2, 15):
        headroom_ranks.wait_after_steps()
    if headroom_known.FOLLOW:
        headroom_ranks.numbers.follow()
        headroom_ranks.know_scattered_parts()
    if WORLD:
        headroom_ranks.pretend_world(WORLD)
    else:
        headroom_ranks.objects.exchange_on_the_host()
        headroom_ranks.objects.exchange_of_two_through_the_store()


def version_of(torch):
    return tuple(map(int, torch.__version__.split(".")[:2]))


def install(torch):
    """Called after PyTorch has been imported."""
    if version_of(torch) < OLDEST:
        sys.exit(f"headroom: PyTorch {torch.__version__} is too old: {'.'.join(map(str, OLDEST))} or newer is needed")
    if headroom_served.LIBRARY:
        headroom_served.serve(torch)
    if not headroom_notes.CAPTURE:
        share_with_other_ranks(torch)
    steps.follow(torch)
    if headroom_known.FOLLOW:
        import headroom_values  # only now, because it needs PyTorch

        headroom_values.follow()
    if headroom_notes.CAPTURE and not torch.cuda.is_available():
        record_the_cpu(torch)
    else:
        torch.cuda._lazy_call(start_recording)
    headroom_end.watch_process(note_error, take_back_error, steps.forget, end)
