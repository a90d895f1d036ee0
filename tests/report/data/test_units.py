"""Numbers for people."""

from __future__ import annotations

import pytest

from reports.data import units


def plain_spaces(text: str) -> str:
    return text.replace(units.NARROW, " ").replace(units.MINUS, "-")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1 023 B"),
        (1024, "1 KiB"),
        (1610612736, "1.50 GiB"),
        (2**30 - 1, "1.00 GiB"),
        (16945512448, "15.8 GiB"),
        (None, "–"),
    ],
)
def test_bytes_are_printed_in_binary_units(value: int | None, text: str) -> None:
    assert plain_spaces(units.bytes_(value)) == text


@pytest.mark.parametrize(("value", "text"), [(16_100_000, "16.1 ms"), (999_999, "1.00 ms"), (2.5e9, "2.50 s")])
def test_times_are_printed_in_the_unit_that_fits(value: float, text: str) -> None:
    assert plain_spaces(units.nanoseconds(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.62, "-62.0 %"), (0.004, "+0.40 %"), (0, "0 %"), (15, "16×"), (1, "+100 %"), (float("nan"), "–")],
)
def test_effects_carry_their_sign_and_become_factors_when_large(value: float, text: str) -> None:
    assert plain_spaces(units.effect(value)) == text


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("reserved_bytes.overall_peak", "bytes"),
        ("steady_step_time_ns", "ns"),
        ("throughput_samples_per_s", "samples/s"),
        ("utilisation", ""),
    ],
)
def test_the_unit_is_read_from_the_name(metric: str, unit: str) -> None:
    assert units.unit_of(metric) == unit
