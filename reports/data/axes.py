"""The axes of a configuration: every field that is neither a figure nor a name is an axis. Later
result files may have more of them."""

from __future__ import annotations

from typing import Any, Sequence

# Workload and device are shown elsewhere on the page; steps are part of the method.
_NO_AXIS = {
    "cell_id", "workload", "batch", "device", "device_class", "device_traits", "warmup_steps", "measured_steps", "inject",
}  # fmt: skip
_STEPS = "_steps"  # accumulation_steps of older files is the axis accumulation


def axes_of(cell: dict[str, Any]) -> dict[str, str]:
    """Axis → value, as text. An axis that is off, or that an older file lacks, is "none"."""
    axes: dict[str, str] = {}
    for field, value in cell.items():
        if field in _NO_AXIS or (field.endswith(_STEPS) and field.removesuffix(_STEPS) in cell):
            continue
        axes[field.removesuffix(_STEPS)] = "none" if value is None or value == "" else str(value)
    return axes


def differing(cells: Sequence[dict[str, Any]]) -> list[str]:
    """The axes on which these configurations differ, in the order of the fields."""
    all_axes = [axes_of(cell) for cell in cells]
    names = dict.fromkeys(name for axes in all_axes for name in axes)
    return [name for name in names if len({axes.get(name, "none") for axes in all_axes}) > 1]


def axis_name(axis: str) -> str:
    return axis.replace("_", " ")


def strategy_label(cell: dict[str, Any], varied: Sequence[str]) -> str:
    """The allocator and the value of every other axis in `varied`, except axes that are off."""
    return " · ".join([cell["allocator"], *choices(cell, [axis for axis in varied if axis != "allocator"])])


def choices(cell: dict[str, Any], varied: Sequence[str]) -> list[str]:
    """ "optimizer sgd", … of the axes in `varied` that are not off."""
    axes = axes_of(cell)
    return [f"{axis_name(axis)} {axes[axis]}" for axis in varied if axes.get(axis, "none") != "none"]
