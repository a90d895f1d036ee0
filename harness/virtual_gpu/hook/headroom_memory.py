"""Computes from PyTorch's history of allocations what was held at the peak, by role, phase and line.

A history is the list torch.cuda.memory._snapshot()["device_traces"][device]: events with `action`, `addr`,
`size` (bytes), `time_us` and `frames`, innermost first."""

import bisect
import re

import headroom_lines

RESERVES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
MOST_LINES = 20
BEFORE = {"filename": "??", "line": 0, "name": "<module>"}  # stands for frames that the history has lost
CURVE_PARTS = 600  # number of parts of a curve; each keeps its highest points


# Functions of both versions of FSDP, and of DeepSpeed's ZeRO-3, and where they are.
GATHERING = {"unshard": "torch/distributed/", "wait_for_unshard": "torch/distributed/",
             "fetch_sub_module": "deepspeed/runtime/zero/", "all_gather": "deepspeed/runtime/zero/"}
# Where DistributedDataParallel and DeepSpeed's ZeRO make the buffers in which gradients are reduced and kept.
BUCKETS = re.compile(r"torch/nn/parallel/distributed\.py$|deepspeed/runtime/zero/stage\w*\.py$")
# The outermost frames of the program's own threads.
PROGRAMS_OWN = {"<module>", "_run_module_as_main", "_bootstrap"}


def is_optimizers(filename):
    return "torch/optim/" in filename or "keras/src/optimizers/" in filename or filename.endswith("/optimizer.py")


def has_called_back(optimizer, inner):
    """Whether an optimizer of PyTorch has called the program's closure, which computes the loss, in a frame of the
    file `inner`. The code in optimizer.py calls the steps of optimizers, which may be the program's own."""
    called = inner and "/torch/" not in inner and "virtual_gpu/hook" not in inner
    return called and "torch/optim/" in optimizer and not optimizer.endswith("/optimizer.py")


def phase_of(frames):
    """Returns the phase of the training step in which an allocation was made, or memory freed, judged by its
    Python frames. The backward pass of a GPU runs in threads without Python frames or with those of the
    functions that it calls, that of a CPU below the call of its engine."""
    if not frames or frames[-1]["name"] not in PROGRAMS_OWN:
        return "backward"
    phase, inner = "", ""
    for frame in frames:
        name = frame["filename"]
        if frame["name"] == "_engine_run_backward":
            return "backward"
        if not phase and frame["name"] == "_call_impl":
            phase = "forward"
        elif not phase and is_optimizers(name):
            phase = "elsewhere" if has_called_back(name, inner) else "optimizer"
        inner = name
    return phase or "elsewhere"


class Block:
    """An allocation and its lifetime, as positions in the history."""

    def __init__(self, event, position):
        self.address, self.bytes = event["addr"], event["size"]
        self.frames, self.time = event.get("frames") or [], event.get("time_us", 0)
        self.begin, self.end = position, None
        self.end_time = None
        self.freed_in = ""  # phase in which it was freed; recorded only if it was allocated elsewhere
        self.phase = phase_of(self.frames)


def with_beginning(history, segments):
    """Completes a history whose beginning is lost: puts the allocation of what was held then in front of it. Held
    were the blocks that the history frees without having allocated them, and those that it did not allocate and
    that the snapshot's `segments` show as held at the end."""
    held, reserved, lost = set(), set(), []
    for event in history:
        action, address = event["action"], event["addr"]
        if action == "alloc":
            held.add(address)
        elif action in ("segment_alloc", "segment_map"):
            reserved.add(address)
        elif action == "free_completed":
            if address not in held:
                lost.append({**event, "action": "alloc", "frames": [BEFORE]})
            held.discard(address)
        elif action in ("segment_free", "segment_unmap"):
            if address not in reserved:
                lost.append({**event, "action": "segment_alloc"})
            reserved.discard(address)
    for segment in segments:
        if segment["address"] not in reserved:
            lost.append({"action": "segment_alloc", "addr": segment["address"], "size": segment["total_size"]})
        for block in segment["blocks"]:
            if block["state"] == "active_allocated" and block["address"] not in held:
                frames = block.get("frames") or [BEFORE]
                size = block.get("requested_size", block["size"])
                lost.append({"action": "alloc", "addr": block["address"], "size": size, "frames": frames})
    return [{**event, "time_us": 0} for event in lost] + history


def blocks_of(history):
    """Returns all blocks, the position and bytes of the allocated peak, and the reserved peak."""
    blocks, live = [], {}
    allocated = reserved = peak = peak_reserved = 0
    at = -1
    for position, event in enumerate(history):
        action = event["action"]
        if action == "alloc":
            block = live[event["addr"]] = Block(event, position)
            blocks.append(block)
            allocated += block.bytes
            if allocated > peak:
                peak, at = allocated, position
        elif action == "free_completed":
            block = live.pop(event["addr"], None)
            if block is not None:
                block.end, block.end_time = position, event.get("time_us", 0)
                if block.phase == "elsewhere":
                    block.freed_in = phase_of(event.get("frames"))
                allocated -= block.bytes
        elif action in RESERVES:
            reserved += RESERVES[action] * event["size"]
            peak_reserved = max(peak_reserved, reserved)
    return blocks, at, peak, peak_reserved


def roles_of(blocks, marks):
    """Returns the role of each block that contains the address of a mark (time in µs, address, bytes, role, and
    perhaps the module), and the modules of its parts: address → (bytes, module)."""
    by_address = {}
    for block in blocks:
        times, there = by_address.setdefault(block.address, ([], []))
        times.append(block.time)
        there.append(block)
    starts = sorted(by_address)
    result = {}
    for time, address, size, role, *module in marks:
        index = bisect.bisect_right(starts, address) - 1
        if index < 0:
            continue
        times, there = by_address[starts[index]]
        block = there[bisect.bisect_right(times, time) - 1]  # the last that was allocated there until then
        inside = block.address <= address < block.address + max(block.bytes, 1)
        alive = block.time <= time and (block.end_time is None or time <= block.end_time)
        if inside and alive:
            _, parts = result.setdefault(id(block), (role, {}))
            parts.setdefault(address, (size, "".join(module)))
    return result


def shares_of(block, parts):
    """Yields (module, bytes) for each part of a block, and for the rest of it with "" as the module."""
    end, rest = block.address, block.bytes
    for address, (size, module) in sorted(parts.items()):
        begin, end = max(address, end), max(min(address + size, block.address + block.bytes), end)
        if end > begin:
            rest -= end - begin
            yield module, end - begin
    if rest:
        yield "", rest


def is_gathered(frames):
    """Whether FSDP or DeepSpeed allocates here what it gathers of all ranks: weights, for as long as it needs them."""
    return any(GATHERING.get(frame["name"], "\0") in frame["filename"] for frame in frames)


def role_by_phase(block, backward_after):
    """Returns the role of a block without a mark. `backward_after` finds the start of the next backward
    pass."""
    callers = (frame["filename"] for frame in block.frames if headroom_lines.is_not_between(frame["filename"]))
    if BUCKETS.search(next(callers, "")) and block.phase not in ("backward", "optimizer"):
        return "gradient buckets"
    if is_gathered(block.frames):
        return "gathered weights"
    if block.phase == "forward":
        begin = backward_after(block.begin)
        kept = block.end is None or (begin is not None and block.end > begin)
        return "activations" if kept else "temporaries"
    if block.phase in ("backward", "optimizer"):
        return "temporaries"
    if block.freed_in == "backward":
        return "activations"
    return "batch and other"


def in_order(totals):
    pairs = sorted(totals.items(), key=lambda pair: -pair[1])
    return [{"name": name, "bytes": size} for name, size in pairs]


def pattern_of(module, contains_others):
    """ "layers.3.linear" becomes "layers.*.linear", and "Net/Block_3/Conv_0" "Net/Block_*/Conv_0". A number at the end
    stays unless the module contains others: layers of a Sequential that are numbered so need not be alike."""
    before, separator = (r"(^|[/_])", "/") if "/" in module else (r"(^|\.)", r"\.")
    return re.sub(rf"{before}\d+(?={separator}{'|$' if contains_others else ''})", r"\1*", module)


def modules_in_order(by_module):
    """Describes the bytes of modules, of which each has bytes by role. Modules of one pattern are shown as one."""
    containers = {name[:end.start()] for name in by_module for end in re.finditer("[./]", name)}
    return [
        {**share, "pattern": pattern_of(share["name"], share["name"] in containers), "roles": by_module[share["name"]]}
        for share in in_order({name: sum(held.values()) for name, held in by_module.items()})
    ]


WITHOUT_MODULE = {"backward": "(backward pass)", "optimizer": "(optimizer step)"}


def summarise(history, marks, module_at=lambda time: "", step_times=()):
    """Describes a device's blocks at the allocated peak. `module_at` returns the module that the program was
    in at a time, "" for none. `step_times` are the ends of optimizer steps, in µs."""
    blocks, at, peak, peak_reserved = blocks_of(history)
    roles = roles_of(blocks, marks)
    # Blocks that the forward pass held when memory ran out count as activations, too: the backward pass that
    # would have freed them never came.
    backward = sorted([block.begin for block in blocks if block.phase == "backward"]
                      + [at for at, event in enumerate(history) if event["action"] == "oom"])

    def backward_after(position):
        index = bisect.bisect_right(backward, position)
        return backward[index] if index < len(backward) else None

    by_role, by_line, by_module, phase = {}, {}, {}, ""
    role_of = {}
    for block in blocks:
        role, parts = roles.get(id(block)) or (role_by_phase(block, backward_after), {})
        role_of[id(block)] = role
        if block.begin == at:
            phase = block.phase
        if block.begin > at or (block.end is not None and block.end < at):
            continue
        by_role[role] = by_role.get(role, 0) + block.bytes
        line = headroom_lines.line_of(block.frames)
        by_line[line] = by_line.get(line, 0) + block.bytes
        for owner, size in shares_of(block, parts):
            module = owner or module_at(block.time) or WITHOUT_MODULE.get(block.phase, "(outside of modules)")
            held = by_module.setdefault(module, {})
            held[role] = held.get(role, 0) + size
    return {
        "peak": peak,
        "peak_reserved": peak_reserved,
        "phase": phase,
        "roles": in_order(by_role),
        "lines": in_order(by_line)[:MOST_LINES],
        "modules": modules_in_order(by_module),
        "phase_peaks": peaks_by_phase(history, blocks),
        "curve": curve_of(history, blocks, role_of, at, step_times),
    }


def curve_of(history, blocks, role_of, peak, step_times):
    """Returns bytes by role and reserved bytes after selected events: for each part of the history, the
    events with the highest allocated and the highest reserved bytes."""
    changes = {}
    for block in blocks:
        role = role_of[id(block)]
        changes[block.begin] = (role, block.bytes)
        if block.end is not None:
            changes[block.end] = (role, -block.bytes)
    allocated, reserved = [], []
    now, held = 0, 0
    for position, event in enumerate(history):
        now += changes.get(position, ("", 0))[1]
        held += RESERVES.get(event["action"], 0) * event["size"]
        allocated.append(now)
        reserved.append(held)
    part = -(-len(history) // CURVE_PARTS) or 1
    kept = set()
    for begin in range(0, len(history), part):
        positions = range(begin, min(begin + part, len(history)))
        kept |= {max(positions, key=allocated.__getitem__), max(positions, key=reserved.__getitem__)}
        kept.add(positions[-1])
    kept = sorted(kept)
    by_role = {role: [] for role in sorted(set(role_of.values()))}
    sums, position = dict.fromkeys(by_role, 0), 0
    for wanted in kept:
        while position <= wanted:
            role, size = changes.get(position, ("", 0))
            if size:
                sums[role] += size
            position += 1
        for role, values in by_role.items():
            values.append(sums[role])
    times = [event.get("time_us", 0) for event in history]
    return {
        "events": len(history),
        "peak": peak,
        "steps": [bisect.bisect_right(times, time) for time in step_times],
        "positions": kept,
        "reserved": [reserved[position] for position in kept],
        "roles": by_role,
    }


def peaks_by_phase(history, blocks):
    """Returns the highest allocated bytes while blocks of each phase were being allocated."""
    changes = [0] * (len(history) + 1)
    for block in blocks:
        changes[block.begin] += block.bytes
        if block.end is not None:
            changes[block.end] -= block.bytes
    starts = {block.begin: block.phase for block in blocks}
    allocated, result = 0, {}
    for position, change in enumerate(changes):
        allocated += change
        if position in starts:
            name = starts[position]
            result[name] = max(result.get(name, 0), allocated)
    return result
