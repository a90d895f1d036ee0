"""Records, inside the user's program, what PyTorch's own allocator does: its counters, its history of
allocations, out-of-memory errors, and which tensors are weights, buffers, gradients and optimizer state."""

import functools
import itertools
import os
import pickle
import time
import traceback
import weakref

import headroom_compiler
import headroom_cpu
import headroom_known
import headroom_memory
import headroom_modules
import headroom_notes
import headroom_served

BY_MODULE = os.environ.get("HEADROOM_GPU_MODULES", "on") != "off" and not headroom_served.ONLY_FIGURES
WORLD = int(os.environ.get("HEADROOM_GPU_WORLD", "0"))
MOST_EVENTS = 2_000_000  # a longer history loses its beginning
DRIVERS_OWN = "cudaMallocAsync"  # the name of the allocator inside the driver
MARKED_STEPS = 8  # roles are recorded in these steps; later steps repeat them unless the peak rises
MOST_SEARCHES = 20  # limit on searches for all live modules


class Notes(headroom_notes.Record):
    def __init__(self):
        super().__init__()
        self.stepping = []  # ids of the optimizers that are in a step, the outermost first
        self.peaks = {}  # id of an optimizer → the allocated peak when its tensors were last marked
        self.stepped_in_backward = False  # whether an optimizer stepped in the current backward pass
        self.stepped_in_capture = False  # whether an optimizer stepped in the CUDA graph that is being captured
        self.backward_passes = 0  # those after which roles were recorded, because there was no step
        self.step_times = []  # end of each optimizer step, in µs
        self.marks = []  # (time in µs, address, bytes, role, module)
        self.device_type = "cuda"  # of the memory that is recorded
        self.cpu = None  # history of the machine's own memory, where that is recorded
        self.active = False


notes = Notes()
modules = headroom_modules.Modules()


def now_us():
    return time.time_ns() // 1000


def storages_of(tensor):
    """Returns the storages that hold a tensor's data on the recorded device."""
    import torch

    if hasattr(tensor, "__tensor_flatten__"):  # such as a DTensor, which holds its shard, and its mesh
        parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        return [s for part in parts if isinstance(part, torch.Tensor) for s in storages_of(part)]
    if tensor.device.type != notes.device_type:
        return []
    if tensor.layout == torch.sparse_coo:
        return [*storages_of(tensor._indices()), *storages_of(tensor._values())]
    return [tensor.untyped_storage()]


def mark(tensors, role, owners=()):
    """Records that the memory of `tensors` now serves `role`. `owners` are their parameters."""
    at = now_us()
    for tensor, owner in itertools.zip_longest(tensors, owners):
        if tensor is None:
            continue
        module = modules.owner_of(owner) if BY_MODULE and owner is not None else ""
        try:
            for storage in storages_of(tensor):
                notes.marks.append((at, storage.data_ptr(), storage.nbytes(), role, module))
        except (RuntimeError, ValueError):  # without data, such as a FakeTensor or a lazy parameter
            continue


def tensors_in(state):
    """Returns the tensors of an optimizer's state for a parameter, which may hold lists of them, as in LBFGS."""
    import torch

    if isinstance(state, torch.Tensor):
        return [state]
    values = state.values() if isinstance(state, dict) else state if isinstance(state, (list, tuple)) else ()
    return [tensor for value in values for tensor in tensors_in(value)]


def mark_state(optimizer):
    import torch

    of_all = isinstance(optimizer, torch.optim.LBFGS)  # keeps the state of all parameters as that of the first
    for parameter, state in getattr(optimizer, "state", {}).items():  # none if its constructor failed
        tensors = tensors_in(state)
        mark(tensors, "optimizer state", [None if of_all else parameter] * len(tensors))


def parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def peak_so_far():
    """Returns the allocated peak of the device on which it is highest."""
    import torch

    devices = range(torch.cuda.device_count() if notes.device_type == "cuda" else 0)
    return max((torch.cuda.max_memory_allocated(device) for device in devices), default=0)


def mark_tensors_of(optimizer, parameters_of=parameters_of, mark_state=mark_state):
    """Records the roles of an optimizer's tensors, unless they were recorded at the same peak before."""
    if headroom_served.ONLY_FIGURES:
        return
    peak = peak_so_far()
    known = notes.peaks.get(id(optimizer), -1)
    if known < 0 and len(notes.peaks) < MOST_SEARCHES:
        mark_what_lives()  # includes weights that no optimizer changes, such as frozen ones and averages
    if notes.steps < MARKED_STEPS or peak > known:
        notes.peaks[id(optimizer)] = peak
        parameters = parameters_of(optimizer)
        mark(parameters, "weights", parameters)
        mark([p.grad for p in parameters], "gradients", parameters)
        mark_state(optimizer)


def update_of_keras(optimizer, variables, update):
    """Calls `update`, which changes Keras's `variables`. It counts as a step, although Keras uses no optimizer of
    PyTorch."""

    def mark_tensors():
        mark_tensors_of(optimizer, lambda _: [variable.value for variable in variables],
                        lambda _: mark([variable.value for variable in optimizer.variables], "optimizer state"))

    mark_tensors()
    result = update()
    mark_tensors()
    end_step()
    return result


def before_step(optimizer, *_):
    # If this optimizer is still listed, an exception ended its last step.
    if id(optimizer) in notes.stepping:
        del notes.stepping[notes.stepping.index(id(optimizer)) :]
    notes.stepping.append(id(optimizer))
    mark_tensors_of(optimizer)


def after_step(optimizer, *_):
    mark_tensors_of(optimizer)
    del notes.stepping[notes.stepping.index(id(optimizer)) :]
    if notes.stepping:  # an inner step, such as that of ZeroRedundancyOptimizer
        return
    if is_capturing():
        notes.stepped_in_capture = True  # counted when the graph is replayed
    elif in_backward():  # one of many, each of which changes the weights whose gradient has just been computed
        notes.stepped_in_backward = True
    else:
        end_step()


def is_capturing():
    import torch

    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def count_replays(torch):
    """Counts a step at each replay of a CUDA graph that has captured one."""
    end, replay = torch.cuda.CUDAGraph.capture_end, torch.cuda.CUDAGraph.replay
    with_step = weakref.WeakSet()

    @functools.wraps(end)
    def capture_end(graph, *arguments):
        end(graph, *arguments)
        if notes.stepped_in_capture:
            notes.stepped_in_capture = False
            with_step.add(graph)

    @functools.wraps(replay)
    def replay_and_count(graph):
        replay(graph)
        if graph in with_step:
            end_step()

    torch.cuda.CUDAGraph.capture_end, torch.cuda.CUDAGraph.replay = capture_end, replay_and_count


def in_backward():
    import torch

    return torch._C._current_graph_task_id() != -1


def end_step():
    headroom_served.end_step()
    notes.step_times.append(now_us())
    notes.count_steps(1)


def mark_what_lives():
    """Records the roles of what belongs to a module or an optimizer, wherever the program keeps it."""
    import gc

    import torch

    for thing in gc.get_objects():
        kind = type(thing)  # isinstance() would run code of the objects
        if issubclass(kind, torch.nn.Module):
            parameters = [p for p in thing.__dict__.get("_parameters", {}).values() if p is not None]
            mark(parameters, "weights", parameters)
            mark([p.grad for p in parameters], "gradients", parameters)
            buffers = [buffer for buffer in thing.__dict__.get("_buffers", {}).values() if buffer is not None]
            mark(buffers, "buffers", buffers)
        elif issubclass(kind, torch.optim.Optimizer):
            mark_state(thing)


def after_backward():
    """Counts the steps of a backward pass as one. Records the roles of gradients if the program changes the weights
    itself, without an optimizer."""
    if notes.stepped_in_backward and not in_backward():
        notes.stepped_in_backward = False
        end_step()
    if notes.active and not notes.peaks and notes.backward_passes < MARKED_STEPS:
        notes.backward_passes += 1
        mark_what_lives()


def watch_backward(torch):
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def backward_and_mark(*arguments, **options):
        result = backward(*arguments, **options)
        after_backward()
        return result

    torch.autograd.backward = backward_and_mark


def on_out_of_memory(device, requested, *_):
    line = ""
    for frame in reversed(traceback.extract_stack()):
        if headroom_memory.is_users(frame.filename):
            line = f"{frame.filename}:{frame.lineno}"
            break
    notes.out_of_memory.append({"device": device, "requested": requested, "line": line})
    mark_what_lives()  # includes what the current step has made so far


def describe_device(device, trace, segments):
    """Returns the figures of one device. The counters are PyTorch's own."""
    import torch

    is_whole = len(trace) < MOST_EVENTS
    if not is_whole:
        trace = headroom_memory.with_beginning(trace, segments)
    stats = torch.cuda.memory_stats(device) if notes.cpu is None else {}
    summary = headroom_memory.summarise(trace, notes.marks, modules.at, notes.step_times)
    # The history holds requested bytes, the counters allocated ones: rounded up, or the whole of a block
    # that is not worth splitting.
    allocated = max(stats.get("allocated_bytes.all.peak", 0), summary["peak"])
    if allocated > summary["peak"]:
        name = "rounding by the allocator" if is_whole else "at a peak before the recorded history"
        summary["roles"].append({"name": name, "bytes": allocated - summary["peak"]})
    return {
        "device": device,
        "kind": notes.device_type,
        "peak_requested": stats.get("requested_bytes.all.peak", 0),
        "peak_allocated": allocated,
        "peak_reserved": max(
            stats.get("reserved_bytes.all.peak", 0), summary["peak_reserved"]
        ),
        "phase": summary["phase"],
        "roles": summary["roles"],
        "lines": summary["lines"],
        "modules": summary["modules"],
        "phase_peaks": summary["phase_peaks"],
        "curve": summary["curve"],
        **(describe_card(device) if headroom_notes.CAPTURE and notes.cpu is None else {}),
    }


def describe_card(device):
    import torch

    free, total = torch.cuda.mem_get_info(device)
    beside = total - free - torch.cuda.memory_reserved(device)
    name = torch.cuda.get_device_name(device)
    return {"card": name, "card_memory": total, "beside_allocator": max(beside, 0)}


def write():
    import torch

    if notes.written or not (notes.active or notes.ended_out_of_memory):
        return
    notes.written = True
    if not notes.active:  # The error is that of another process, which passed it on.
        notes.write(f"PyTorch {torch.__version__}", [], "", [])
        return
    if headroom_served.ONLY_FIGURES:
        write_figures(torch)
        return
    if notes.cpu is None and torch.cuda.get_allocator_backend() == DRIVERS_OWN:
        write_counters(torch)
        return
    if not notes.marks:
        mark_what_lives()
    if notes.cpu is None:
        snapshot = headroom_compiler.snapshot(torch)
    else:
        snapshot = {"segments": [], "device_traces": [notes.cpu.stop()]}
    events = (event for trace in snapshot["device_traces"] for event in trace)
    if not (notes.steps or notes.error or any(event["action"] == "alloc" for event in events)):
        return  # a process that allocated nothing, such as one that only compiles
    name = f"snapshot-{os.getpid()}.pickle"
    with open(os.path.join(headroom_notes.RECORDS, name), "wb") as out:
        pickle.dump(snapshot, out)
    devices = [
        describe_device(device, trace, [s for s in snapshot["segments"] if s["device"] == device])
        for device, trace in enumerate(snapshot["device_traces"])
        if any(event["action"] == "alloc" for event in trace)
    ]
    notes.write(f"PyTorch {torch.__version__}", devices, name, differences_of(torch))


def differences_of(torch):
    """Returns sentences that say how the run differs from one on a real card."""
    if notes.cpu is not None or headroom_notes.CAPTURE:
        return []
    known = headroom_known
    return [*cards_without_kernels(torch), *without_cudnn_attention(torch), *known.decisions.words(),
            *known.draws.words(), *known.reads.words()]


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
        stats = torch.cuda.memory_stats(device)
        if stats.get("allocated_bytes.all.peak"):
            devices.append({
                **headroom_served.without_holders(device, "cuda"),
                "peak_allocated": stats["allocated_bytes.all.peak"],
                "peak_reserved": stats["reserved_bytes.all.peak"],
                **(describe_card(device) if headroom_notes.CAPTURE else {}),
            })
    notes.write(f"PyTorch {torch.__version__}", devices, "", differences_of(torch))


def write_figures(torch):
    """Writes what `--allocator` compares of two runs of a program."""
    served = headroom_served.library is not None
    if not served and notes.device_type == "cpu":
        devices = [{**headroom_served.without_holders(0, "cpu"), "peak_allocated": 0}]  # malloc counts nothing
    else:
        devices = headroom_served.describe() if served else []
    ends = notes.step_times
    more = {
        "step_us": [end - begin for begin, end in zip(ends, ends[1:])],
        "peak_resident": headroom_served.peak_resident(),
    }
    notes.write(f"PyTorch {torch.__version__}", devices, "", [], more)


def start_recording():
    """Called when CUDA starts, before its first allocation."""
    import torch

    notes.active = True
    if not headroom_notes.CAPTURE and lacks_cudnn_attention(torch):
        torch.backends.cuda.enable_cudnn_sdp(False)
    if headroom_served.ONLY_FIGURES or torch.cuda.get_allocator_backend() == DRIVERS_OWN:
        return
    record = torch.cuda.memory._record_memory_history
    record(max_entries=MOST_EVENTS, stacks="python")
    # The program's own calls would shorten or end this history, which its own snapshots show as well.
    torch.cuda.memory._record_memory_history = lambda *_, **__: None
    torch._C._cuda_attach_out_of_memory_observer(on_out_of_memory)


def record_the_cpu(torch):
    """Called before the first allocation, where there is no GPU."""
    notes.active = True
    notes.device_type = "cpu"
    if not headroom_served.ONLY_FIGURES:
        notes.cpu = headroom_cpu.History(torch)


def note_error(kind, value, trace):
    import torch

    notes.error = f"{kind.__name__}: {value}"
    notes.ended_out_of_memory = (
        issubclass(kind, torch.OutOfMemoryError) or "DefaultCPUAllocator: " in notes.error
    )
    if notes.ended_out_of_memory and headroom_served.library is not None:
        line = headroom_notes.users_line(trace)
        refused = headroom_served.refused_bytes()
        notes.out_of_memory.append({"device": 0, "requested": refused, "line": line})


def share_with_other_ranks(torch):
    import headroom_ranks  # only now, because it needs PyTorch

    if not torch.distributed.is_available():
        return
    headroom_ranks.trust_other_ranks()
    headroom_ranks.tell_sizes_of_splits()
    if WORLD:
        headroom_ranks.pretend_world(WORLD)
    else:
        headroom_ranks.exchange_objects_on_the_host()
        headroom_ranks.exchange_objects_of_two_through_the_store()


def forget():
    global notes
    notes = Notes()


def install(torch):
    """Called after PyTorch has been imported."""
    if headroom_served.LIBRARY:
        headroom_served.serve(torch)
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    if not headroom_notes.CAPTURE:
        share_with_other_ranks(torch)
    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)
    count_replays(torch)
    if not headroom_served.ONLY_FIGURES:
        watch_backward(torch)
    global modules
    if BY_MODULE:
        modules = headroom_modules.watch()
    if headroom_known.FOLLOW:
        import headroom_values  # only now, because it needs PyTorch

        headroom_values.follow()
    if headroom_notes.CAPTURE and not torch.cuda.is_available():
        record_the_cpu(torch)
    else:
        torch.cuda._lazy_call(start_recording)
    headroom_notes.watch_process(note_error, forget, write)
