"""Reads what `headroom gpu` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.data.read import InputError, parse_json, read_text


@dataclass(frozen=True)
class GpuData:
    figures: dict[str, Any]  # gpu.json
    curves: dict[tuple[int, int], dict[str, Any]]  # (process, device) → its memory over the run


def read_gpu(directory: Path) -> GpuData:
    """Loads gpu.json and the curves of its run. Raises InputError."""
    file = directory / "gpu.json"
    if not file.is_file():
        raise InputError(f"{directory}: this is not a directory of `headroom gpu`: gpu.json is missing.")
    figures = parse_json(read_text(file), file)
    if not isinstance(figures, dict) or "verdict" not in figures:
        raise InputError(f"{file}: this is not what `headroom gpu` writes: it has no verdict.")
    # A search keeps the records of each trial in a separate folder. Only folders within are read:
    # gpu.json may come from a stranger.
    trial = Path(str(figures["directory"])).name
    records = directory / trial if trial != ".." and (directory / trial).is_dir() else directory
    curves = {}
    for record in sorted(records.glob("*-*.json")):
        framework = parse_json(read_text(record), record)
        for device in framework["devices"]:
            if device.get("curve", {}).get("positions"):
                curves[framework["pid"], device["device"]] = device["curve"]
    return GpuData(figures, curves)
