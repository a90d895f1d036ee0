"""From PyTorch's history of allocations: what was held at the peak, by role, phase and line.

A history is the list that torch.cuda.memory._snapshot()["device_traces"][device] holds: events with
`action`, `addr`, `size` (bytes), `time_us` and `frames`, innermost first."""

import bisect
import os

RESERVES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
MOST_LINES = 20
CURVE_PARTS = 600  # of a curve; each keeps its highest points


def is_users(filename):
    """Whether a frame is of the user's program: neither a library's nor Python's own."""
    return not (
        "site-packages" in filename
        or "dist-packages" in filename
        or filename.startswith("<")
        or f"{os.sep}lib{os.sep}python" in filename
        or "virtual_gpu" + os.sep + "hook" in filename
        or filename == "??"
    )


def phase_of(frames):
    """The part of a training step that an allocation belongs to, by its Python frames. The engine of
    the backward pass runs in threads of its own, without any."""
    if not frames:
        return "backward"
    for frame in frames:
        name = frame["filename"]
        if "torch/optim/" in name or name.endswith("/optimizer.py"):
            return "optimizer"
        if "torch/utils/checkpoint" in name or "torch/autograd/function" in name:
            return "backward"
    if any(frame["name"] == "_call_impl" for frame in frames):
        return "forward"
    return "elsewhere"


def line_of(frames):
    """The innermost line of the user's program, or the library's line where there is none."""
    for frame in frames:
        if is_users(frame["filename"]):
            return f"{frame['filename']}:{frame['line']}"
    if frames:
        return f"{frames[0]['filename']}:{frames[0]['line']}"
    return "(backward pass: no Python line)"


class Block:
    """An allocation and its lifetime, as positions in the history."""

    def __init__(self, event, position):
        self.address, self.bytes = event["addr"], event["size"]
        self.frames, self.time = event.get("frames") or [], event.get("time_us", 0)
        self.begin, self.end = position, None
        self.end_time = None
        self.phase = phase_of(self.frames)


def blocks_of(history):
    """All blocks, the position and bytes of the allocated peak, and the peak of reserved bytes."""
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
                allocated -= block.bytes
        elif action in RESERVES:
            reserved += RESERVES[action] * event["size"]
            peak_reserved = max(peak_reserved, reserved)
    return blocks, at, peak, peak_reserved


def roles_of(blocks, marks):
    """The role and the module of each block that a mark (time in µs, address, bytes, role, module)
    fell into."""
    by_address = {}
    for block in blocks:
        by_address.setdefault(block.address, []).append(block)
    starts = sorted(by_address)
    result = {}
    for time, address, _, *meaning in marks:
        index = bisect.bisect_right(starts, address) - 1
        if index < 0:
            continue
        for block in by_address[starts[index]]:
            inside = block.address <= address < block.address + max(block.bytes, 1)
            alive = block.time <= time and (block.end_time is None or time <= block.end_time)
            if inside and alive:
                result.setdefault(id(block), meaning)
    return result


def role_by_phase(block, backward_after):
    """Of a block that no mark fell into. `backward_after`: where the next backward pass begins."""
    if block.phase == "forward":
        begin = backward_after(block.begin)
        kept = block.end is None or (begin is not None and block.end > begin)
        return "activations" if kept else "temporaries"
    if block.phase in ("backward", "optimizer"):
        return "temporaries"
    return "batch and other"


def in_order(totals):
    pairs = sorted(totals.items(), key=lambda pair: -pair[1])
    return [{"name": name, "bytes": size} for name, size in pairs]


WITHOUT_MODULE = {"backward": "(backward pass)", "optimizer": "(optimizer step)"}


def summarise(history, marks, module_at=lambda time: "", step_times=()):
    """What the device's blocks were at the peak of the allocated bytes. `module_at`: the module that
    the program was in at a time, "" = none. `step_times`: when optimizer steps ended, in µs."""
    blocks, at, peak, peak_reserved = blocks_of(history)
    roles = roles_of(blocks, marks)
    backward = [block.begin for block in blocks if block.phase == "backward"]

    def backward_after(position):
        index = bisect.bisect_right(backward, position)
        return backward[index] if index < len(backward) else None

    by_role, by_line, by_module, phase = {}, {}, {}, ""
    role_of = {}
    for block in blocks:
        role, *owner = roles.get(id(block)) or [role_by_phase(block, backward_after)]
        role_of[id(block)] = role
        if block.begin == at:
            phase = block.phase
        if block.begin > at or (block.end is not None and block.end < at):
            continue
        by_role[role] = by_role.get(role, 0) + block.bytes
        line = line_of(block.frames)
        by_line[line] = by_line.get(line, 0) + block.bytes
        module = "".join(owner) or module_at(block.time)
        module = module or WITHOUT_MODULE.get(block.phase, "(outside of modules)")
        held = by_module.setdefault(module, {})
        held[role] = held.get(role, 0) + block.bytes
    return {
        "peak": peak,
        "peak_reserved": peak_reserved,
        "phase": phase,
        "roles": in_order(by_role),
        "lines": in_order(by_line)[:MOST_LINES],
        "modules": [
            {**share, "roles": by_module[share["name"]]}
            for share in in_order({name: sum(held.values()) for name, held in by_module.items()})
        ],
        "phase_peaks": peaks_by_phase(history, blocks),
        "curve": curve_of(history, blocks, role_of, at, step_times),
    }


def curve_of(history, blocks, role_of, peak, step_times):
    """Bytes by role and reserved bytes after events of the history. Of each part of the history the
    events are kept at which allocated and reserved bytes were highest."""
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
    """The most bytes allocated at any time while blocks of each phase were being allocated."""
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
