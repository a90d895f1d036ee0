"""What the figures of a device are worth. The only place of the report that knows devices by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Traits:
    simulated: bool  # counted without computing: its bytes are exact, and there are no times of training
    gpu: bool  # a real one
    virtual: bool = False  # a framework's own code on a card that is not there: its bytes, and no times


_BY_NAME = {
    "host": Traits(simulated=False, gpu=False),
    "cuda": Traits(simulated=False, gpu=True),
    "meta": Traits(simulated=True, gpu=False),
    "virtual": Traits(simulated=False, gpu=False, virtual=True),
}


def traits_of(cell: dict[str, Any]) -> Traits:
    """From what the result file says of the device of `cell`; of a file that says nothing, by name."""
    known = _BY_NAME.get(cell["device_class"], Traits(simulated=False, gpu=False))
    recorded = cell.get("device_traits") or {}
    return Traits(
        recorded.get("simulated", known.simulated), recorded.get("has_driver", known.gpu), known.virtual
    )


def simulated(cell: dict[str, Any]) -> bool:
    return traits_of(cell).simulated


NEARNESS = ("measured", "virtual", "simulated")  # to the subject of a claim about a framework on a GPU


def basis(cell: dict[str, Any]) -> str:
    """The word for where the figures of `cell` come from."""
    traits = traits_of(cell)
    return "simulated" if traits.simulated else "virtual" if traits.virtual else "measured"


def simulated_device(spec: str) -> bool:
    """By the device's spec, as traces and verdicts have it: "meta(card=v100-16gb)"."""
    return traits_of({"device_class": spec.partition("(")[0]}).simulated
