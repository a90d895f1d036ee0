"""The axis of effects: its ticks are round in what they are labelled with."""

from __future__ import annotations

import random

from reports.charts.effect import effect_ticks, tick_text
from reports.charts.evidence import Series
from reports.charts.palette import Look

LOOK = Look("series-1", "o", ())


def ratios() -> Series:
    return Series("sweep", "batch", "reserved_bytes.initial", "", True, "malloc", "bfc", LOOK, LOOK, [])


def labels(axes_ticks: list[float], limits: tuple[float, float]) -> list[str]:
    return [tick_text(tick, limits, ratios()) for tick in effect_ticks(axes_ticks, limits, ratios())]


def test_ratios_of_many_times_are_labelled_by_round_factors_from_one_on() -> None:
    assert labels([-200.0, 0.0, 200.0, 400.0, 600.0], (-60.0, 690.0)) == ["1×", "200×", "400×", "600×"]


def test_small_ratios_are_labelled_as_changes_from_nothing() -> None:
    found = [label.replace("\u202f", " ") for label in labels([-0.5, 0.0, 0.5, 1.0], (-0.7, 1.1))]
    assert found == ["−50 %", "0", "+50 %", "+100 %"]


def test_every_tick_lies_within_the_limits() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(200):
        low, high = -chance.uniform(0, 5), chance.uniform(0.1, 1000)
        step = (high - low) / chance.randrange(2, 12)
        ticks = effect_ticks([low + step * place for place in range(12)], (low, high), ratios())
        assert all(low <= tick <= high for tick in ticks)
