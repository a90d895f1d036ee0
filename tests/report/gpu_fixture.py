"""What `headroom gpu` leaves behind, made up: gpu.json and the record of one PyTorch process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GIB = 2**30


def share(name: str, held: int) -> dict[str, Any]:
    return {"name": name, "bytes": held}


def device() -> dict[str, Any]:
    return {
        "device": 0, "peak_allocated_bytes": 9 * GIB, "peak_reserved_bytes": 10 * GIB, "peak_phase": "backward",
        "roles": [share("activations", 6 * GIB), share("weights", 3 * GIB)],
        "lines": [share("/home/me/train.py:12", 9 * GIB)],
        "modules": [{**share("layers.0.attention", 9 * GIB), "pattern": "layers.*.attention",
                     "roles": {"activations": 6 * GIB, "weights": 3 * GIB}}],
        "phase_peak_bytes": {"backward": 9 * GIB, "forward": 8 * GIB},
    }


def curve() -> dict[str, Any]:
    return {
        "events": 400, "peak": 250, "steps": [399], "positions": [0, 100, 250, 399],
        "reserved": [4 * GIB, 10 * GIB, 10 * GIB, 10 * GIB],
        "roles": {"weights": [3 * GIB] * 4, "activations": [0, 5 * GIB, 6 * GIB, 0]},
    }


def write_gpu(directory: Path, /, **changes: Any) -> Path:
    """Writes the files and returns the directory. `changes` replace figures of gpu.json."""
    directory.mkdir()
    framework = {
        "name": "PyTorch 2.15.0", "pid": 7, "steps": 1, "stopped_at_step": False, "error": "", "out_of_memory": [],
        "devices": [device()], "snapshot": "snapshot-7.pickle",
    }
    figures = {
        "verdict": "fits", "card": "t4", "memory_bytes": 15 * GIB, "context_bytes": 0, "peak_bytes": 10 * GIB,
        "exit_status": 0, "cudnn_workspaces": "cuDNN's own heuristics", "devices": [], "frameworks": [framework],
        "sizes_not_known": {"cudnnDropoutGetStatesSize": 2}, "sizes_estimated": {}, "not_supported": [],
        "directory": "elsewhere/of-the-run",
    }
    (directory / "gpu.json").write_text(json.dumps(figures | changes))
    record = {"pid": 7, "devices": [{"device": 0, "curve": curve()}]}
    (directory / "pytorch-7.json").write_text(json.dumps(record))
    return directory
