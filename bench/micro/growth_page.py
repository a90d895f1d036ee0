"""What growth.py measured, as a figure and tables of the documentation."""

from __future__ import annotations

import contextlib
import io
import math
import statistics
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE, FIGURE = REFERENCE / "micro-benchmarks.md", REFERENCE / "growth.svg"
BEGIN, END = "<!-- growth.py draw -->", "<!-- end of growth.py draw -->"

PEER = "tcmalloc"
# The longest time that an allocation and its release may take on a training step, relative to tcmalloc.
LIMITS = {"caching": 1.3, "expandable": 1.3, "bfc(growth=on)": 1.0, "pool": 1.0, "planned": 1.0}

Row = dict[str, Any]


def ratios(rows: list[Row]) -> dict[str, float]:
    """The time of each strategy over that of the peer, on a training step."""
    step = {row["what"]: row["seconds"] for row in rows if row["size"] == 0}
    return {name: step[name] / step[PEER] for name in LIMITS if name in step}


def slope(rows: list[Row]) -> float:
    """The exponent with which seconds grow with size: least squares of logarithms."""
    points = [(math.log(row["size"]), math.log(row["seconds"])) for row in rows]
    return statistics.linear_regression(*zip(*points)).slope


def series(record: dict[str, Any]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for part, measured in record.items():
        for row in measured["rows"]:
            if part != "instances" and row["size"] > 0:
                found.setdefault((part, row["what"]), []).append(row)
    return {key: sorted(rows, key=lambda row: row["size"]) for key, rows in found.items()}


UNITS = {"planning": "buffers", "replay": "events", "meta": "events", "report": "configurations",
         "allocators": "live blocks"}  # fmt: skip


def time_text(value: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if value >= size or unit == "ns":
            return f"{value / size:.3g} {unit}"
    return ""


def remark(row: Row) -> str:
    words = []
    if "percent_above_bound" in row:
        words.append(f"{row['percent_above_bound']:.3f} % above the bound")
    if "solved_of_10" in row:
        words.append(f"{row['solved_of_10']:.0f} of 10 solved within a second each")
    if "html_bytes" in row:
        words.append(f"{row['html_bytes'] / 1e6:.1f} MB")
    if "layers" in row:
        words.append(f"{row['layers']} layers, {row['size'] / row['seconds'] / 1e6:.0f} M events/s")
    return ", ".join(words)


def table(record: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("| part | what | size in | time by size | grows as size to the | at the largest |")
        print("|---|---|---|---|---:|---|")
        for (part, what), rows in series(record).items():
            times = "; ".join(f"{row['size']:,}: {time_text(row['seconds'])}" for row in rows)
            print(f"| {part} | {what} | {UNITS[part]} | {times} | {slope(rows):.2f} | {remark(rows[-1])} |")
        if "instances" in record:
            print("\n| instance | buffers | above the lower bound | time | fits its capacity |")
            print("|---|---:|---:|---:|---|")
            for row in record["instances"]["rows"]:
                fits = {True: "yes", False: "no", None: "not found"}[row["fits"]] if "fits" in row else "–"
                above = f"{row['percent_above_bound']:.3f} %"
                print(f"| {row['what']} | {row['size']:,} | {above} | {time_text(row['seconds'])} | {fits} |")
        if "allocators" in record:
            print(f"\n| allocator | of {PEER}'s time on a training step | limit |")
            print("|---|---:|---:|")
            for name, ratio in ratios(record["allocators"]["rows"]).items():
                print(f"| {name} | {ratio:.2f} | {LIMITS[name]} |")
        print()
        for part, measured in record.items():
            print(
                f"- {part}: {measured['processor']}, {measured['date']}, commit {measured['commit']}, "
                f"load {measured['load']} at the end"
            )
    return out.getvalue()


def write_page(record: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot, ticker

    parts = [part for part in UNITS if part in record]
    figure, places = pyplot.subplots(1, len(parts), figsize=(3.1 * len(parts), 4.4), layout="constrained", squeeze=False)
    for part, axes in zip(parts, places[0]):
        for (of, what), rows in series(record).items():
            if of == part:
                label = f"{what}: {slope(rows):.2f}"
                axes.plot([row["size"] for row in rows], [row["seconds"] for row in rows], "o-", label=label)
        axes.set(xscale="log", yscale="log", title=part, xlabel=UNITS[part], ylabel="seconds")
        for axis in (axes.xaxis, axes.yaxis):
            low, high = axis.get_view_interval()
            axis.set_view_interval(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)), ignore=True)
            axis.set_minor_formatter(ticker.NullFormatter())
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(fontsize=7, title="grows as size to the", title_fontsize=7, loc="upper center",
                    bbox_to_anchor=(0.5, -0.2))  # fmt: skip
    figure.savefig(FIGURE, metadata={"Date": None})
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(record)}\n{END}{rest.split(END)[1]}")
