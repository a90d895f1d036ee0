"""A set of addresses as disjoint ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class AddressRanges:
    """Half-open ranges [begin, end). Adjacent ranges are merged."""

    def __init__(self):
        self._begins: list[int] = []
        self._ends: list[int] = []

    def add(self, begin: int, end: int):
        first = bisect_left(self._ends, begin)
        last = bisect_right(self._begins, end)
        if first < last:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._begins[first:last], self._ends[first:last] = [begin], [end]

    def remove(self, begin: int, end: int):
        first = bisect_right(self._ends, begin)
        last = bisect_left(self._begins, end)
        if first >= last:
            return
        left, right = (self._begins[first], begin), (end, self._ends[last - 1])
        rest = [part for part in (left, right) if part[0] < part[1]]
        self._begins[first:last] = [part[0] for part in rest]
        self._ends[first:last] = [part[1] for part in rest]

    def hold(self, begin: int, end: int) -> bool:
        """Whether the whole range is in the set."""
        place = bisect_right(self._begins, begin) - 1
        return place >= 0 and end <= self._ends[place]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self._begins, self._ends))
