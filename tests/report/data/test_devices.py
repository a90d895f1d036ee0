"""Whether a device's figures are measured, virtual or simulated."""

from __future__ import annotations

import pytest

from reports.data.axes import axes_of
from reports.data.devices import simulated, simulated_device


@pytest.mark.parametrize(("name", "expected"), [("meta", True), ("host", False), ("cuda", False), ("newer", False)])
def test_files_without_traits_are_read_by_the_name_of_the_device(name: str, expected: bool) -> None:
    assert simulated({"device_class": name}) is expected


def test_what_the_file_says_of_its_device_counts_before_its_name() -> None:
    assert simulated({"device_class": "newer", "device_traits": {"simulated": True}})


def test_a_device_is_known_by_its_spec_too() -> None:
    assert simulated_device("meta(card=v100-16gb)") and not simulated_device("host(capacity=4GiB)")


def test_what_a_device_is_worth_is_no_axis_of_a_configuration() -> None:
    assert axes_of({"allocator": "bfc", "device_traits": {"simulated": True}}) == {"allocator": "bfc"}
