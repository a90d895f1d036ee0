"""Notes, inside the user's program, what PyTorch's own allocator does: its counters, its history of
allocations, out-of-memory, and which tensors are weights, gradients and optimizer state."""

import atexit
import itertools
import json
import os
import pickle
import sys
import time
import traceback

import headroom_known
import headroom_memory
import headroom_modules
import headroom_values

RECORDS = os.environ.get("HEADROOM_GPU_RECORDS", "")
BY_MODULE = os.environ.get("HEADROOM_GPU_MODULES", "on") != "off"
WORLD = int(os.environ.get("HEADROOM_GPU_WORLD", "0"))
UNTIL_STEP = int(os.environ.get("HEADROOM_GPU_UNTIL_STEP", "0"))
CAPTURE = "HEADROOM_GPU_CAPTURE" in os.environ  # on a real GPU
MOST_EVENTS = 2_000_000  # a longer history loses its beginning
MARKED_STEPS = 8  # roles are noted in the first steps: later ones repeat them


class StepLimit(SystemExit):
    """Ends the program after as many optimizer steps as were asked for."""


class Notes:
    """What this process has noted so far."""

    def __init__(self):
        self.steps = 0
        self.stepping = []  # ids of the optimizers that are in a step, the outermost first
        self.step_times = []  # when each ended, in µs
        self.stopped_at_step = False
        self.out_of_memory = []
        self.error = ""
        self.ended_out_of_memory = False
        self.marks = []  # (time in µs, address, bytes, role, module)
        self.active = False
        self.written = False


notes = Notes()
modules = headroom_modules.Modules()


def now_us():
    return time.time_ns() // 1000


def mark(tensors, role, owners=()):
    """Notes that the memory of `tensors` serves `role` now. `owners`: the parameter of each."""
    at = now_us()
    for tensor, owner in itertools.zip_longest(tensors, owners):
        if tensor is None or not getattr(tensor, "is_cuda", False):
            continue
        tensor = getattr(tensor, "_local_tensor", tensor)  # a DTensor's shard
        storage = tensor.untyped_storage()
        module = modules.owner_of(owner) if BY_MODULE and owner is not None else ""
        notes.marks.append((at, storage.data_ptr(), storage.nbytes(), role, module))


def mark_state(optimizer):
    import torch

    for parameter, state in optimizer.state.items():
        values = state.values() if isinstance(state, dict) else ()
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        mark(tensors, "optimizer state", [parameter] * len(tensors))


def parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def before_step(optimizer, *_):
    # An optimizer that a failed step left is here again.
    if id(optimizer) in notes.stepping:
        del notes.stepping[notes.stepping.index(id(optimizer)) :]
    notes.stepping.append(id(optimizer))
    if notes.steps < MARKED_STEPS:
        parameters = parameters_of(optimizer)
        mark(parameters, "weights", parameters)
        mark([p.grad for p in parameters], "gradients", parameters)


def after_step(optimizer, *_):
    if notes.steps < MARKED_STEPS:
        mark_state(optimizer)
    del notes.stepping[notes.stepping.index(id(optimizer)) :]
    if notes.stepping:
        return  # a step inside that of another, as of ZeroRedundancyOptimizer
    notes.steps += 1
    notes.step_times.append(now_us())
    if UNTIL_STEP and notes.steps >= UNTIL_STEP:
        notes.stopped_at_step = True
        raise StepLimit(0)


def mark_what_lives():
    """Roles of a program that ended before its first optimizer step."""
    import gc

    import torch

    for thing in gc.get_objects():
        kind = type(thing)  # isinstance() would ask the objects, which may do anything
        if issubclass(kind, torch.nn.Module):
            parameters = list(thing.parameters(recurse=False))
            mark(parameters, "weights", parameters)
            mark([p.grad for p in parameters], "gradients", parameters)
        elif issubclass(kind, torch.optim.Optimizer):
            mark_state(thing)


def on_out_of_memory(device, requested, *_):
    line = ""
    for frame in reversed(traceback.extract_stack()):
        if headroom_memory.is_users(frame.filename):
            line = f"{frame.filename}:{frame.lineno}"
            break
    notes.out_of_memory.append({"device": device, "requested": requested, "line": line})


def describe_device(device, trace, roles):
    """The figures of one device. The counters are PyTorch's own."""
    import torch

    stats = torch.cuda.memory_stats(device)
    summary = headroom_memory.summarise(trace, roles, modules.at, notes.step_times)
    # The history has what was asked for, the counters what was given: rounded up, or the whole of a
    # block that is not worth splitting.
    allocated = max(stats.get("allocated_bytes.all.peak", 0), summary["peak"])
    if allocated > summary["peak"]:
        rounding = {"name": "rounding by the allocator", "bytes": allocated - summary["peak"]}
        summary["roles"].append(rounding)
    return {
        "device": device,
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
        **(describe_card(device) if CAPTURE else {}),
    }


def describe_card(device):
    import torch

    free, total = torch.cuda.mem_get_info(device)
    beside = total - free - torch.cuda.memory_reserved(device)
    name = torch.cuda.get_device_name(device)
    return {"card": name, "card_memory": total, "beside_allocator": max(beside, 0)}


def write():
    """Leaves what was noted; once, at the end of the process."""
    import torch

    if notes.written or not notes.active:
        return
    notes.written = True
    if not notes.marks:
        mark_what_lives()
    snapshot = torch.cuda.memory._snapshot()
    name = f"snapshot-{os.getpid()}.pickle"
    with open(os.path.join(RECORDS, name), "wb") as out:
        pickle.dump(snapshot, out)
    devices = [
        describe_device(device, trace, notes.marks)
        for device, trace in enumerate(snapshot["device_traces"])
        if trace
    ]
    figures = {
        "framework": f"PyTorch {torch.__version__}",
        "pid": os.getpid(),
        "steps": notes.steps,
        "stopped_at_step": notes.stopped_at_step,
        "error": notes.error,
        "ended_out_of_memory": notes.ended_out_of_memory,
        "out_of_memory": notes.out_of_memory,
        "devices": devices,
        "snapshot": name,
        "differences": headroom_known.decisions.words() + headroom_known.draws.words(),
    }
    path = os.path.join(RECORDS, f"pytorch-{os.getpid()}.json")
    with open(path + ".unfinished", "w") as out:
        json.dump(figures, out)
    os.replace(path + ".unfinished", path)


def start_recording():
    """When CUDA starts, before its first allocation."""
    import torch

    notes.active = True
    torch.cuda.memory._record_memory_history(max_entries=MOST_EVENTS, stacks="python")
    torch._C._cuda_attach_out_of_memory_observer(on_out_of_memory)


def note_error(kind, value, trace):
    import torch

    notes.error = f"{kind.__name__}: {value}"
    notes.ended_out_of_memory = issubclass(kind, torch.OutOfMemoryError)


def trust_other_ranks():
    """DistributedDataParallel compares its parameters with what other ranks sent, which a kernel that
    did not run would have put into place."""
    import torch

    module = torch.nn.parallel.distributed
    verify = getattr(module, "_verify_param_shape_across_processes", None)
    if verify is None:
        return

    def verify_what_is_known(*arguments):
        try:
            return verify(*arguments)
        except RuntimeError as error:
            if "DDP expects same model across all ranks" not in str(error):
                raise

    module._verify_param_shape_across_processes = verify_what_is_known


def pretend_world():
    """This process is rank 0 of a world of which there is nobody else: what ranks tell each other at
    the beginning is kept in this process."""
    import importlib

    import torch

    def alone(url, timeout=None, **_):
        yield torch.distributed.HashStore(), 0, WORLD

    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    rendezvous._rendezvous_handlers["env"] = alone


def forget():
    """A forked worker is not the program: its parent tells of both."""
    global notes
    notes = Notes()


def install(torch):
    """Called once PyTorch has been imported."""
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    if not CAPTURE:
        trust_other_ranks()
    if WORLD:
        pretend_world()
    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)
    global modules
    if BY_MODULE:
        modules = headroom_modules.watch()
    if headroom_values.FOLLOW:
        headroom_values.follow(torch)
    torch.cuda._lazy_call(start_recording)
    shown = sys.excepthook

    def excepthook(kind, value, trace):
        note_error(kind, value, trace)
        shown(kind, value, trace)

    sys.excepthook = excepthook
    os.register_at_fork(after_in_child=forget)
    atexit.register(write)
