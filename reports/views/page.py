"""The page of one run: its data and its sections."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any, Callable

import reports.views
from reports.charts.evidence import ArmIndex
from reports.charts.palette import AllocatorLooks
from reports.data.read import RunData
from reports.data.spread import spread


class Page:
    """One run, and what its sections show. Sections that need each other look each other up."""

    def __init__(self, data: RunData) -> None:
        self.data = data
        self.verdicts: dict[str, Any] = data.verdicts or {}
        self.matrix: list[dict[str, Any]] = self.verdicts.get("matrix", [])
        self.claims: list[dict[str, Any]] = self.verdicts.get("claims", [])
        self.looks = AllocatorLooks({record["cell"]["allocator"] for record in (*data.samples, *self.matrix)})
        self.arms = ArmIndex(data.samples, self.matrix)
        # Control experiments test the instrument; their configurations are not results.
        self.measured = [sample for sample in data.samples if sample["experiment"] not in data.controls]
        self.entries = [entry for entry in self.matrix if entry["experiment"] not in data.controls]
        self._built: dict[str, Any] = {}

    def __getitem__(self, address: str) -> Any:
        """The content of the section at `address`; None if this run has nothing for it."""
        if address not in self._built:
            section = next(section for section in sections() if section.address == address)
            self._built[address] = section.build(self) or None
        return self._built[address]

    def draw(self) -> None:
        """Builds the sections with charts in parallel. This process builds the last and largest one."""
        drawn = [section for section in reversed(sections()) if section.charts and section.address not in self._built]
        built = spread(lambda section: section.build(self) or None, drawn, fewest=1)
        self._built.update((section.address, content) for section, content in zip(drawn, built))


@functools.lru_cache(maxsize=1)
def page_of(data: RunData) -> Page:
    """The page of a run. The report and the text on the terminal share it, and with it the sections."""
    return Page(data)


@dataclass(frozen=True)
class Section:
    """A section of the page, registered by being the SECTION of a module of reports.views. Its template,
    ADDRESS.html, finds what `build` returned under the name of the address."""

    address: str  # on the page
    title: str
    about: str  # its content in half a sentence
    place: int  # on the page, from small to large
    build: Callable[[Page], Any]  # returns None if the run has nothing for this section
    count: Callable[[Any], int] | None = None  # from the built content; shown beside the title
    charts: bool = False  # whether it may have so many that drawing them takes long


@functools.cache
def sections() -> list[Section]:
    """All sections in the order of the page."""
    names = [module.name for module in pkgutil.iter_modules(reports.views.__path__)]
    modules = [importlib.import_module(f"reports.views.{name}") for name in names]
    found = [module.SECTION for module in modules if hasattr(module, "SECTION")]
    return sorted(found, key=lambda section: section.place)
