"""The cost of measuring: the time of a run besides training, and the share of a step spent recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from reports.data import units

PARTS = (
    ("setup_s", "set-up before the first step: Programs, device memory, data"),
    ("process_s", "process start, evaluation, writing records"),
    ("probe_s", "machine probes around samples"),
    ("first_touch_s", "touching host memory before it is measured"),
)


@dataclass(frozen=True)
class Cost:
    sentence: str
    rows: Sequence[tuple[str, str, str]]  # what, time, share of the whole
    recording: Sequence[tuple[str, str]]


def build_cost(run: dict[str, Any]) -> Cost | None:
    """None for older runs, which did not record this, or for a run without a sample."""
    cost = run.get("cost")
    if not cost or not cost["wall_s"]:
        return None
    wall = cost["wall_s"]
    known = [("training steps, warm-up included", cost["steps_s"])]
    known += [(text, cost[key]) for key, text in PARTS]
    known.append(("everything else", max(0.0, wall - sum(seconds for _, seconds in known))))
    rows = [(text, _duration(seconds), units.percent(seconds / wall)) for text, seconds in known]
    recording = cost["recording"]
    if not cost["steps_s"]:
        return Cost(f"{_duration(wall)} in all; no training step was timed.", rows, [])
    sentence = f"{_duration(max(0.0, wall - cost['steps_s']))} of {_duration(wall)} were spent outside training steps"
    if recording is None:
        return Cost(sentence + ".", rows, [])
    sentence += (
        "; recording costs "
        f"{units.nanoseconds(recording['ns_per_event'])} per event and "
        f"{_small_percent(recording['share_of_step'])} of a step."
    )
    facts = [
        ("recording one event", f"{units.nanoseconds(recording['ns_per_event'])} (aim: at most 25 ns)"),
        (
            "share of a step",
            f"{_small_percent(recording['share_of_step'])}, at most "
            f"{_small_percent(recording['largest_share_of_step'])} (aim: at most 0.5 %)",
        ),
        ("memory of one event", f"{units.bytes_(recording['bytes_per_event'])}, reserved before the first step"),
    ]
    return Cost(sentence, rows, facts)


def _duration(seconds: float) -> str:
    if seconds >= 100:
        return f"{seconds / 60:.1f}{units.NARROW}min"
    return units.nanoseconds(seconds * 1e9)


def _small_percent(share: float) -> str:
    """Two significant digits: 0.0000123 → "0.0012 %"."""
    return f"{share * 100:.2g}{units.NARROW}%"
