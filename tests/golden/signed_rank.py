#!/usr/bin/env python3
"""Writes signed_rank.csv: exact Wilcoxon signed-rank figures as SciPy computes them.

Run with Debian's interpreter (python3-scipy 1.10.1):  tests/golden/signed_rank.py

Rows: cdf,n,k,P(T+ <= k)   and   p,n,<differences joined by blanks>,two-sided p.
The cdf is asked for through wilcoxon() itself, on differences built to have T+ = k.
"""
import pathlib

import numpy
from scipy.stats import wilcoxon


def differences_with_statistic(n, k):
    """Magnitudes 1 … n, the positive ones chosen greedily to sum to k."""
    values = [-float(rank) for rank in range(1, n + 1)]
    for rank in range(n, 0, -1):
        if rank <= k:
            values[rank - 1] = float(rank)
            k -= rank
    return values


def main():
    rows = []
    for n in (1, 2, 5, 6, 9, 10, 12, 15, 20, 30, 45):
        total = n * (n + 1) // 2
        for k in sorted({0, 1, 2, total // 8, total // 4, total // 2, total - 1, total}):
            p = wilcoxon(differences_with_statistic(n, k), alternative="less", mode="exact").pvalue
            rows.append(f"cdf,{n},{k},{p!r}")
    generator = numpy.random.default_rng(20250917)
    for n in (5, 8, 10, 10, 12, 15, 24):
        values = generator.normal(0.3, 1.0, n).round(6)
        p = wilcoxon(values, mode="exact").pvalue
        rows.append(f"p,{n},{' '.join(str(v) for v in values)},{p!r}")
    pathlib.Path(__file__).with_suffix(".csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
