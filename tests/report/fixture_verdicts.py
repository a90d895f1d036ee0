"""Made-up verdicts over a made-up run: the shapes of the real ones, every word SYNTHETIC."""

from __future__ import annotations

import math
from typing import Any

MOMENTS = ("initial", "after_step_1", "steady_peak")


def comparison_of(theta: float, spread: float, word: str = "") -> dict[str, Any]:
    exact = spread == 0
    word = word or ("SAME" if abs(theta) < 0.03 else "WORSE" if theta > 0 else "BETTER")
    return {
        "estimator": "exact" if exact else "hodges_lehmann",
        "scale": "log_ratio",
        "theta": theta,
        "effect": math.expm1(theta) if theta < 10 else None,
        "ci90": None if exact else [theta - spread, theta + spread],
        "ci95": None if exact else [theta - 1.3 * spread, theta + 1.3 * spread],
        "n_pairs": 1 if exact else 10,
        "excluded_pairs": 0,
        "delta": 0.01 if exact else 0.03,
        "mde": None if exact else 0.02,
        "p": None,
        "p_adj": None,
        "exact": exact,
        "verdict": word,
        "reason_code": "synthetic",
        "aa_false_alarm_rate": None,
    }


def evidence_of(
    experiment: str, metric: str, unit: str, values: tuple[float, float], spread: float, **changes: Any
) -> dict[str, Any]:
    simulated = "host" not in experiment
    item = {
        "experiment": experiment,
        "point": experiment.partition("=")[2],
        "metric": metric,
        "unit": unit,
        "device": "meta(card=synthetic)" if simulated else "host(capacity=4GiB)",
        "device_class": "meta" if simulated else "host",
        "simulated": simulated,
        "baseline_arm": "preallocate",
        "treatment_arm": "growth",
        "baseline_value": values[0],
        "treatment_value": values[1],
        "comparison": comparison_of(math.log(values[1] / values[0]), spread, "REFUTED"),
        "why": "synthetic",
    }
    return {**item, **changes}


def bound_of(experiment: str, metric: str, value: float) -> dict[str, Any]:
    """Evidence on the value of one configuration, which nothing is compared with."""
    comparison = {**comparison_of(0, 0, "REFUTED"), "scale": "difference", "theta": value, "effect": None}
    own = {"baseline_arm": None, "baseline_value": None, "treatment_value": value, "comparison": comparison}
    return evidence_of(experiment, metric, "1", (1, 1), 0, **own)


def absent(item: dict[str, Any]) -> dict[str, Any]:
    """The same evidence on a machine without a GPU."""
    nothing = {**item["comparison"], "theta": None, "effect": None, "ci90": None, "ci95": None, "exact": False}
    return {
        **item,
        "experiment": item["experiment"].replace("host", "cuda"),
        "device": "cuda",
        "device_class": "cuda",
        "baseline_value": None,
        "treatment_value": None,
        "comparison": {**nothing, "verdict": "NOT-TESTABLE-HERE"},
        "why": "this machine has no CUDA GPU.",
    }


def part_of(
    name: str,
    text: str,
    claimed: tuple[float | None, float | None, float | None, int],
    verdicts: list[dict[str, Any]],
    judge: str = "ratio",
) -> dict[str, Any]:
    names = ("value", "low", "high", "direction")
    kind = "direction" if claimed[0] is None else "number"
    return {"name": name, "kind": kind, "text": text, "judge": judge, "claimed": dict(zip(names, claimed)), "verdicts": verdicts}


def verdict_of(
    device_class: str, word: str, why: str, evidence: list[dict[str, Any]], **changes: Any
) -> dict[str, Any]:
    verdict = {
        "device_class": device_class,
        "subject": f"Headroom on {device_class}",
        "relation": "analogue" if device_class == "host" else "own",
        "simulated": device_class == "meta",
        "verdict": word,
        "why": why,
        "would_change": "Conditions stated in the source: the size depends on them.",
        "holds_for": None,
        "evidence": evidence,
    }
    return {**verdict, **changes}


def claim_of(identity: str, title: str, statement: str, word: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": identity,
        "title": title,
        "statement": statement,
        "source": {"title": "A synthetic source", "section": "§1.3", "date": "2001-01-01", "url": "https://example.org/memory"},
        "subject": {"engine": "TensorFlow", "device_class": "cuda", "text": "TensorFlow on a CUDA GPU"},
        "parts": parts,
        "verdict": word,
        "verdict_by_device": [
            {
                "device_class": verdict["device_class"],
                "relation": verdict["relation"],
                "verdict": verdict["verdict"],
                "why": verdict["why"],
            }
            for verdict in parts[0]["verdicts"]
        ],
        "why": "SYNTHETIC. What growth saves before the first step depends on the card and the moment, "
        "not on the network: the claimed figure fits one batch size and no other.",
        "instead": "SYNTHETIC. Limit the pool to what the largest step needs; growth only helps when a second "
        "process shares the card.",
        "pitfalls": ["The moment of measurement decides the figure.", "Preallocation is itself the remedy for holes."],
        "limits": ["Workspaces of the original library are not part of the simulated step."],
        "command": f"headroom verify {identity}",
    }


def control_of(arm: str, injected: str, metric: str, unit: str, theta: float, spread: float) -> dict[str, Any]:
    """An injected effect: a slowdown where it is noisy, else a difference known exactly."""
    outcome = "seen" if theta > 1.3 * spread else "missed"
    comparison = comparison_of(theta, spread, outcome)
    if spread == 0:
        comparison = {**comparison, "scale": "difference", "effect": None, "ci95": [theta, theta]}
    return {
        "experiment": "synthetic/control",
        "arm": arm,
        "device": "host(capacity=256MiB)" if spread else "meta(capacity=256MiB)",
        "injected": injected,
        "metric": metric,
        "unit": unit,
        "baseline_value": None,
        "treatment_value": None,
        "comparison": comparison,
        "outcome": outcome,
        "why": f"SYNTHETIC. Injected: {injected}.",
    }


def verdicts_of(matrix: list[dict[str, Any]]) -> dict[str, Any]:
    figures = {(entry["experiment"], entry["arm"]): entry["values"] for entry in matrix}
    swept = [experiment for experiment, arm in figures if experiment.startswith("S02/") and arm == "growth"]

    def compare(experiment: str, metric: str, spread: float = 0, arm: str = "growth") -> dict[str, Any]:
        values = figures[experiment, "preallocate"][metric], figures[experiment, arm][metric]
        unit = "ns" if metric.endswith("_ns") else "B"
        return evidence_of(experiment, metric, unit, values, spread, treatment_arm=arm)

    def sweep(metrics: tuple[str, ...]) -> list[dict[str, Any]]:
        return [compare(experiment, metric) for metric in metrics for experiment in swept]

    moments = tuple(f"{rung}_bytes.{moment}" for rung in ("reserved", "allocated") for moment in MOMENTS)
    s02 = claim_of(
        "S02",
        "Growth mode starts with 62 % less GPU memory",
        "With memory growth, training ResNet-50 holds 62 % less GPU memory in its initial phase.",
        "CONDITIONAL",
        [
            part_of(
                "less is held at the start",
                "Before and after the first step, the allocator holds less with growth than with pre-allocation.",
                (None, None, None, -1),
                [verdict_of("meta", "REPRODUCED", "Holds at all points.", sweep(moments[:1]))],
            ),
            part_of(
                "62 % less",
                "The saving is 62 %, at whichever moment of the start the source may mean.",
                (-0.62, -0.658, -0.581, -1),
                [
                    verdict_of(
                        "meta",
                        "CONDITIONAL",
                        "Holds at some points; the claimed share is met in the middle of the sweep only.",
                        sweep(moments),
                        holds_for="v100 batch 32…64 (reserved_bytes.after_step_1)",
                    )
                ],
            ),
        ],
    )
    times = ("steady_step_time_ns", "first_steps_time_ns")
    on_host = [compare("S03/host", metric, 0.012) for metric in times]
    allocations = bound_of("S03/host", "steady_device_allocations_per_step", 0)
    control = [compare("S03/host", times[0], 0.02, arm="malloc")]
    here = "Steady steps take the same time; only the first steps are slower."
    gone = "No comparison has a result: this machine has no CUDA GPU."
    s03 = claim_of(
        "S03",
        "Growth mode trains 8 % slower, for its frequent allocations",
        "With memory growth, training is about 8 % slower, because device memory is allocated again and again.",
        "NOT-TESTABLE-HERE",
        [
            part_of(
                name,
                text,
                claimed,
                [
                    verdict_of("cuda", "NOT-TESTABLE-HERE", gone, [absent(item) for item in evidence]),
                    verdict_of("host", word, here, evidence),
                ],
                judge,
            )
            for name, text, claimed, word, evidence, judge in (
                ("slower", "A step takes longer with growth.", (None, None, None, 1), "CONDITIONAL", on_host, "ratio"),
                ("by 8 %", "It takes 8.7 % longer.", (0.087, 0.043, 0.13, 1), "REFUTED", on_host, "ratio"),
                (
                    "for frequent allocations",
                    "After warm-up, growth still allocates device memory at least once a step.",
                    (None, 1, None, 1),
                    "REFUTED",
                    [allocations],
                    "bound",
                ),
                (
                    "control: an allocation per tensor",
                    "Where every tensor is a device allocation, steps do take longer.",
                    (None, None, None, 1),
                    "REPRODUCED",
                    control,
                    "ratio",
                ),
            )
        ],
    )
    return {
        "schema_version": "1.0",
        "kind": "verdicts",
        "headline": "SYNTHETIC: growth mode saves memory only before the first step, and costs no steady speed.",
        "surprises": [
            "SYNTHETIC: the saving of growth mode shrinks from 96 % at batch 1 to nothing at batch 128.",
            "SYNTHETIC: steady steps are equally fast; all of the cost lies in step 1.",
            "SYNTHETIC: reserved memory under growth passes what the step needs by a third.",
        ],
        "counts": {"CONDITIONAL": 1, "NOT-TESTABLE-HERE": 1},
        "claims": [s02, s03],
        "matrix": matrix,
        "calibration": {
            "status": "not yet calibrated",
            "aa_comparisons": 12,
            "false_alarms": 1,
            "why": "12 of at least 40 A/A comparisons so far.",
            "comparisons": [
                {
                    "experiment": f"synthetic/{name}",
                    "arms": ["none", "none#2"],
                    "comparison": comparison_of(theta, 0.008),
                    "alarm": theta > 0.02,
                    "why": "SYNTHETIC. Twice the same configuration.",
                }
                for name, theta in (("control", 0.003), ("identical", 0.021))
            ],
        },
        "sensitivity": {"status": "sensitive", "why": "SYNTHETIC. All 3 injected effects were detected."},
        "controls": [
            control_of(
                "slowdown", "a wait of 6.1 % of the step's own time", "steady_step_time_ns", "ns", 0.058, 0.011
            ),
            control_of(
                "leak",
                "a block of 64.0 KiB that each step keeps",
                "steady_allocated_growth_bytes_per_step",
                "B",
                65536,
                0,
            ),
            control_of(
                "fragmentation",
                "a block of 256 B left behind after every op of the first step",
                "external_fragmentation",
                "1",
                0.268,
                0,
            ),
        ],
        "exclusions": [{"experiment": "S03/host", "block": 4, "why": "machine probe at 71 % of the best"}],
        "failures": [
            {
                "experiment": "limits",
                "arm": "small",
                "block": 0,
                "status": "oom",
                "reason": "18 MiB did not fit into 64 MiB",
            }
        ],
    }
