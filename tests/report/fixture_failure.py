"""A made-up run that runs out of memory in a fragmented segment: the request and all blocks. SYNTHETIC."""

from __future__ import annotations

from typing import Any

from fixture_recording import KINDS, MIB, PHASES, ROLES

from harness.trace.file import Trace

COLUMNS = ("kind", "role", "phase", "stream", "id", "op", "step")
COLUMNS += ("requested_bytes", "size_bytes", "address", "time_ns")
OPS = ["stem.conv", "head.linear"]


def scattered(capacity: int = 64 * MIB) -> Trace:
    """[16 weight | hole 8 | 4 activation of stem.conv | hole 12 | 24 activation of head.linear], in MiB;
    then head.linear asks for 18."""
    rows: list[dict[str, int]] = []

    def event(kind: str, role: str, identity: int, mib: int, at: int, op: int, step: int) -> None:
        row = {
            "kind": KINDS.index(kind), "role": ROLES.index(role), "phase": PHASES.index("forward" if step else "initialize"),
            "stream": 0, "id": identity, "op": op, "step": step, "requested_bytes": mib * MIB,
            "size_bytes": 0 if kind == "oom" else mib * MIB, "address": at * MIB, "time_ns": 0,
        }  # fmt: skip
        rows.append(row)

    event("segment_alloc", "workspace", 1, 64, 0, -1, 0)
    event("alloc", "weight", 1, 16, 0, -1, 0)
    event("alloc", "activation", 2, 8, 16, 0, 1)
    event("alloc", "activation", 3, 4, 24, 0, 1)
    event("alloc", "activation", 4, 12, 28, 0, 1)
    event("alloc", "activation", 5, 24, 40, 1, 1)
    event("free", "activation", 2, 8, 16, 1, 1)
    event("free", "activation", 4, 12, 28, 1, 1)
    event("oom", "activation", 0, 18, 0, 1, 1)
    header = {
        "device": "meta(capacity=64MiB)", "rules": "dense", "allocator": "bfc", "workload": "synthetic",
        "capacity_bytes": capacity, "kinds": KINDS, "roles": ROLES, "phases": PHASES,
    }  # fmt: skip
    return Trace(header, OPS, {name: [row[name] for row in rows] for name in COLUMNS})


def report_of(requested: int = 18, free: int = 20, hole: int = 12, capacity: int = 64) -> dict[str, Any]:
    """What a sample records of it, from figures in MiB."""
    return {
        "requested_bytes": requested * MIB, "capacity_bytes": capacity * MIB, "reserved_bytes": 64 * MIB,
        "allocated_bytes": (64 - free) * MIB, "free_bytes": free * MIB, "largest_free_bytes": hole * MIB,
        "allocator": "bfc",
    }  # fmt: skip


def memory_of_scattered() -> dict[str, Any]:
    """Its ledger: all blocks lived at once before two of them went."""

    def moments(initial: int, after: int) -> dict[str, int]:
        peaks = dict.fromkeys(("warmup_peak", "steady_peak", "overall_peak"), 64 * MIB)
        return {"initial": initial * MIB, "after_step_1": after * MIB, **peaks}

    return {
        "requested_bytes": moments(16, 44), "allocated_bytes": moments(16, 44), "reserved_bytes": moments(64, 64),
        "process_bytes": None, "process_baseline_bytes": None, "phase_peaks": {},
        "requested_bytes_by_role_at_peak": {"weight": 16 * MIB, "activation": 48 * MIB},
        "internal_fragmentation": 0.0, "external_fragmentation": 0.4, "utilisation": 1.0,
        "lower_bound_bytes": 64 * MIB, "device_allocations_per_step": [0], "device_frees_per_step": [0],
    }  # fmt: skip
