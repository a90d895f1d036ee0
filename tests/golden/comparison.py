#!/usr/bin/env python3
"""Writes comparison.csv: intervals, words and sample sizes as SciPy's tests give them.

Run with Debian's interpreter (python3-scipy 1.10.1):  tests/golden/comparison.py

Nothing here uses Walsh averages: an interval is what wilcoxon() does not reject, and a word is
read from the tests of the differences shifted by the margin.

Rows, differences joined by blanks:
  interval,<differences>,level,low,high
  mde,<differences>,minimum detectable effect
  word,<differences>,delta,word
  pairs,<differences>,delta,pairs wanted after this pilot
"""
import math
import pathlib

import numpy
from scipy import stats
from scipy.stats.mstats import winsorize


def p_value(values, shift, alternative="two-sided"):
    """Of the hypothesis that the median is `shift`, exactly."""
    return stats.wilcoxon(values - shift, alternative=alternative, mode="exact").pvalue


def border(values, rejected_at, kept_at, alternative, tail):
    """Where rejection ends, by bisection: shifts beyond it are kept."""
    for _ in range(200):
        middle = (rejected_at + kept_at) / 2
        if p_value(values, middle, alternative) <= tail:
            rejected_at = middle
        else:
            kept_at = middle
    return kept_at


def interval(values, level):
    tail = (1 - level) / 2
    center = numpy.median(values)
    span = values.max() - values.min() + 1
    low = border(values, values.min() - span, center, "greater", tail)
    high = border(values, values.max() + span, center, "less", tail)
    return low, high


def word(values, delta):
    positive = stats.trim_mean(values, 0.1) > 0
    beyond = p_value(values, delta, "greater") if positive else p_value(values, -delta, "less")
    if beyond <= 0.025:
        return "WORSE" if positive else "BETTER"
    differs = p_value(values, 0) <= 0.05
    inside_95 = p_value(values, -delta, "greater") <= 0.025 and p_value(values, delta, "less") <= 0.025
    if differs and inside_95:
        return "SMALL"
    # Two one-sided tests at 5 %: equivalent.
    if p_value(values, -delta, "greater") <= 0.05 and p_value(values, delta, "less") <= 0.05:
        return "SAME"
    return "DIRECTION" if differs else "INCONCLUSIVE"


def mde(values):
    n = len(values)
    t = stats.t.ppf([0.975, 0.8], n - 1).sum()
    return t * numpy.std(values, ddof=1) / math.sqrt(n)


def pairs(values, delta):
    n = len(values)
    s = numpy.std(numpy.asarray(winsorize(values, limits=(0.2, 0.2))), ddof=1) / 0.6
    return max(n, math.ceil((stats.t.ppf(0.95, n - 1) * s / (delta / 2)) ** 2))


def main():
    generator = numpy.random.default_rng(20261120)
    rows = []
    for n in (6, 8, 10, 12, 15, 25):
        for _ in range(3):
            values = generator.normal(0.02, 0.03, n).round(6)
            text = " ".join(str(v) for v in values)
            for level in (0.9, 0.95):
                low, high = interval(values, level)
                rows.append(f"interval,{text},{level},{low!r},{high!r}")
            rows.append(f"mde,{text},{mde(values)!r}")
            rows.append(f"pairs,{text},0.03,{pairs(values, 0.03)}")
    counts = {}
    while len(counts) < 6 or min(counts.values()) < 4:
        n = int(generator.integers(8, 20))
        values = generator.normal(generator.normal(0, 0.04), generator.uniform(0.002, 0.06), n).round(6)
        name = word(values, 0.03)
        counts[name] = counts.get(name, 0) + 1
        if counts[name] <= 8:
            rows.append(f"word,{' '.join(str(v) for v in values)},0.03,{name}")
    pathlib.Path(__file__).with_suffix(".csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
