"""Whether a device's figures are measured, virtual or simulated, according to result files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Traits:
    simulated: bool  # counted without computing: its bytes are exact, and there are no times of training
    gpu: bool  # a real one
    virtual: bool  # a framework's own code on a card that is not there: its bytes, and no times

    @property
    def basis(self) -> str:
        return "simulated" if self.simulated else "virtual" if self.virtual else "measured"


# Traits of devices in older files and in traces, which do not record them.
_UNSAID: dict[str, dict[str, bool]] = {
    "cuda": {"has_driver": True},
    "meta": {"simulated": True},
    "virtual": {"virtual_card": True},
}


def traits_of(cell: dict[str, Any]) -> Traits:
    said = cell.get("device_traits") or _UNSAID.get(cell["device_class"], {})
    return Traits(*(said.get(trait, False) for trait in ("simulated", "has_driver", "virtual_card")))


def simulated(cell: dict[str, Any]) -> bool:
    return traits_of(cell).simulated


NEARNESS = ("measured", "virtual", "simulated")  # the nearest first to what claims are about: a framework on a GPU


def basis(entry: dict[str, Any]) -> str:
    """The word for where the figures of a configuration or of a verdict come from."""
    return entry.get("basis") or traits_of(entry).basis


def simulated_device(spec: str) -> bool:
    """The same for a device's spec, which is all that a trace has: "meta(card=v100-16gb)"."""
    return simulated({"device_class": spec.partition("(")[0]})
