"""A made-up history: nights beside a run, and what a check said of the last one. SYNTHETIC."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TIMED = "synthetic/timed"
COUNTED = "synthetic/counted"


def night_of(number: int, timed: int, environment: str = "one") -> dict[str, Any]:
    def cell(experiment: str, exact: dict[str, float], noisy: dict[str, float]) -> dict[str, Any]:
        return {
            "experiment": experiment, "arm": "bfc", "cell_id": experiment, "device_class": "host", "rules": "dense",
            "status": "ok", "why": None, "exact": exact, "noisy": noisy,
        }

    slow = 1.2 if number > 6 else 1.0
    return {
        "schema_version": "1.0", "kind": "night", "night_id": f"night-{number:02d}", "run_id": f"run-{number}",
        "suite": "synthetic", "started": f"2001-01-{number:02d}T02:00:00Z", "version": "0", "commit": f"{number:02x}" * 20,
        "dirty": False, "machine": "m", "environment_id": environment, "environment": [], "distrust": None,
        "cells": [cell(COUNTED, {"reserved_bytes.steady_peak": 2**30 + number}, {})]
        + [cell(f"{TIMED}/{i}", {}, {"steady_step_time_ns": 1e8 * slow * (1 + i)}) for i in range(timed)],
        "verdicts": [],
    }


def finding_of(kind: str, what: str, metric: str, since: int) -> dict[str, Any]:
    return {
        "kind": kind, "what": what, "metric": metric, "sentence": f"SYNTHETIC: {metric} rose.",
        "since": f"night-{since:02d}", "previous": f"night-{since - 1:02d}",
        "since_commit": f"{since:02x}" * 20, "previous_commit": f"{since - 1:02x}" * 20,
    }


def write_history(run: Path, timed: int = 3) -> dict[str, Any]:
    """Ten nights; another environment on the third, a slower cell since the seventh."""
    store = run.parent / "history"
    (store / "nights").mkdir(parents=True)
    nights = [night_of(number, timed, "one" if number < 3 else "two") for number in range(1, 11)]
    for night in nights:
        (store / "nights" / f"{night['night_id']}.json").write_text(json.dumps(night))
    check = {
        "schema_version": "1.0", "kind": "check", "headline": "SYNTHETIC: worse in 2 places.", "exit_code": 10,
        "store": str(store), "night_id": "night-10", "run_id": "run-10",
        "night_ids": [night["night_id"] for night in nights], "cells": 4, "distrust": None, "shifts_held_back": 0,
        "failures": [
            finding_of("level", f"{TIMED}/1 [bfc]", "steady_step_time_ns", 7),
            finding_of("exact", f"{COUNTED} [bfc]", "reserved_bytes.steady_peak", 2),
        ],
        "notes": [], "missing": ["synthetic/<gone> [bfc]"], "new": [],
        "marks": [{"night_id": "night-03", "differences": [{"what": "the kernel", "before": "1", "after": "2"}]}],
    }
    (run / "check.json").write_text(json.dumps(check))
    return check
