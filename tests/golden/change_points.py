#!/usr/bin/env python3
"""Writes change_points.csv: divergences, t-tests and change points as NumPy and SciPy compute them.

Run with Debian's interpreter (python3-scipy 1.10.1):  tests/golden/change_points.py

Rows: split,<values joined by blanks>,index,divergence,p   and   points,<values>,<indices>.
Every split is computed afresh from its distance matrices.
"""
import pathlib

import numpy
from scipy.spatial.distance import cdist, pdist
from scipy.stats import ttest_ind

SHORTEST = 3
LEVEL = 0.001


def divergence(left, right):
    left, right = left[:, None], right[:, None]
    m, n = len(left), len(right)
    distance = 2 * cdist(left, right).mean() - pdist(left).mean() - pdist(right).mean()
    return m * n / (m + n) * distance


def candidates(values, offset=0):
    splits = range(SHORTEST, len(values) - SHORTEST + 1)
    if not splits:
        return []
    best = max(splits, key=lambda split: divergence(values[:split], values[split:]))
    if ttest_ind(values[:best], values[best:]).pvalue >= 10 * LEVEL:
        return []
    return [
        *candidates(values[:best], offset),
        offset + best,
        *candidates(values[best:], offset + best),
    ]


def change_points(values):
    points = candidates(values)
    while points:
        edges = [0, *points, len(values)]
        p = [
            ttest_ind(values[begin:middle], values[middle:end]).pvalue
            for begin, middle, end in zip(edges, edges[1:], edges[2:])
        ]
        weakest = int(numpy.argmax(p))
        if p[weakest] < LEVEL:
            break
        del points[weakest]
    return points


def text_of(values):
    return " ".join(repr(float(value)) for value in values)


def main():
    generator = numpy.random.default_rng(20261121)
    rows = []
    for size in (5, 8, 13, 30, 50):
        values = generator.lognormal(0.0, 0.5, size)
        for split in sorted({2, size // 2, size - 2}):
            p = ttest_ind(values[:split], values[split:]).pvalue
            rows.append(f"split,{text_of(values)},{split},{divergence(values[:split], values[split:])!r},{p!r}")
    for levels in ((0.0,), (0.0, 0.08), (0.0, 0.05, 0.15), (0.0, 0.1, 0.0), (0.1, 0.0, 0.05, 0.2)):
        for _ in range(4):
            lengths = generator.integers(4, 14, len(levels))
            values = numpy.concatenate(
                [generator.normal(level, 0.02, length) for level, length in zip(levels, lengths)]
            )
            rows.append(f"points,{text_of(values)},{' '.join(map(str, change_points(values)))}")
    pathlib.Path(__file__).with_suffix(".csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
