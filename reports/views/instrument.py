"""Results about the instrument itself: identical configurations, and effects added on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.evidence import ArmIndex, Series, series_of
from reports.charts.evidence_text import effect_text, interval_text
from reports.charts.palette import AllocatorLooks, SpecText, split_spec
from reports.data import glossary, units
from reports.data.glossary import Word
from reports.views.page import Section

_OUTCOMES = {
    "seen": Word("seen", "good", "check", "A known effect was added, and it was detected."),
    "missed": Word("missed", "bad", "cross", "A known effect was added, and it was not detected."),
    "not tested": Word("not tested", "none", "ring", "There were no figures in which it could have shown."),
}
_STATES = {
    "calibrated": ("good", "check"),
    "not yet calibrated": ("none", "ring"),
    "out of calibration": ("bad", "cross"),
    "sensitive": ("good", "check"),
    "insensitive": ("bad", "cross"),
    "not tested": ("none", "ring"),
}


@dataclass(frozen=True)
class Test:
    """One row: the effect that was added, and what was measured."""

    name: str
    device: SpecText | None
    figure: str
    change: str
    interval: str
    word: Word
    why: str


@dataclass(frozen=True)
class Instrument:
    calibration: Word
    calibration_why: str
    false_alarms: int
    sensitivity: Word
    sensitivity_why: str
    controls: Sequence[Test]
    identical: Sequence[Test]


def build_instrument(verdicts: dict[str, Any] | None) -> Instrument | None:
    """None if nothing was judged. Older files have no controls."""
    if verdicts is None:
        return None
    calibration = verdicts["calibration"]
    sensitivity = verdicts.get(
        "sensitivity", {"status": "not tested", "why": "This run was judged before there were controls."}
    )
    return Instrument(
        calibration=_state(calibration["status"]),
        calibration_why=calibration["why"],
        false_alarms=calibration["false_alarms"],
        sensitivity=_state(sensitivity["status"]),
        sensitivity_why=sensitivity["why"],
        controls=[_control(item) for item in verdicts.get("controls", [])],
        identical=[_identical(item) for item in calibration.get("comparisons", [])],
    )


def _state(status: str) -> Word:
    tone, icon = _STATES.get(status, ("none", "question"))
    return Word(status, tone, icon)


def _control(item: dict[str, Any]) -> Test:
    outcome = item["outcome"]
    return _test(
        item["comparison"],
        item["metric"],
        item["unit"],
        name=item["injected"],
        device=split_spec(item["device"]),
        word=_OUTCOMES.get(outcome, Word(outcome)),
        why=item["why"],
    )


def _identical(item: dict[str, Any]) -> Test:
    word = Word("alarm", "part", "alert") if item["alarm"] else Word("no difference", "good", "equal")
    return _test(
        item["comparison"],
        "steady_step_time_ns",
        "ns",
        name=item["experiment"],
        device=None,
        word=word,
        why=item["why"],
    )


def _test(comparison: dict[str, Any], metric: str, unit: str, **rest: Any) -> Test:
    """Formats the figures like a claim's evidence."""
    evidence = {
        "experiment": "", "point": "", "metric": metric, "unit": unit, "baseline_arm": "clean", "treatment_arm": "",
        "baseline_value": None, "treatment_value": None, "simulated": False, "why": "", "comparison": comparison,
    }  # fmt: skip
    series: Series = series_of([evidence], ArmIndex([], []), AllocatorLooks(set()))[0]
    point = series.points[0]
    interval = "exact" if point.exact and point.effect is not None else interval_text(point.ci95, series)
    return Test(
        figure=glossary.metric(metric),
        change=effect_text(point.effect, series) if point.effect is not None else units.DASH,
        interval=interval or units.DASH,
        **rest,
    )


SECTION = Section(
    address="instrument",
    title="Instrument",
    about="how far the times can be trusted",
    place=90,
    build=lambda page: build_instrument(page.data.verdicts),
)
