"""The figures of results.csv as Markdown, between two comments of README.md."""

import csv
import math
import statistics
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 2**20
FAR = 0.05  # rows with a larger error are named, with what is known about them
BEGIN = "<!-- what follows is written by measure.py -->"
END = "<!-- measure.py's part ends here -->"


@dataclass
class Statistics:
    """Summary of relative errors, (said - measured) / measured. Under-estimates are those below zero: the bytes
    that a user would be short of."""

    rows: int
    median: float  # of the absolute errors
    within: float  # nine of ten absolute errors do not exceed this
    signed_median: float
    under: int  # rows
    under_median: float  # of the under-estimates alone, below zero; 0 = none
    under_worst: float


def statistics_of(errors):
    sizes = sorted(abs(error) for error in errors)
    under = [error for error in errors if error < 0]
    return Statistics(
        rows=len(errors),
        median=statistics.median(sizes),
        within=sizes[math.ceil(0.9 * len(sizes)) - 1],
        signed_median=statistics.median(errors),
        under=len(under),
        under_median=statistics.median(under) if under else 0.0,
        under_worst=min(under, default=0.0),
    )


def percent(value, signed=False):
    text = f"{100 * value:{'+' if signed else ''}.2f}"
    return (text if float(text) else "0.00") + " %"


def line(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def summary_line(kind, who, errors):
    if not errors:
        return line(kind, who, 0, *[""] * 6)
    s = statistics_of(errors)
    return line(
        kind,
        who,
        s.rows,
        percent(s.median),
        percent(s.within),
        percent(s.signed_median, True),
        f"{s.under} ({s.under / s.rows:.0%})",
        percent(s.under_median),
        percent(s.under_worst),
    )


# The environment of a row on the virtual GPU, and the source of its convolution workspaces.
WAYS = {
    ("pytorch-2.6", ""): "virtual GPU, PyTorch 2.6",
    ("pytorch-2.6", "cuDNN"): "virtual GPU, PyTorch 2.6, workspaces by cuDNN's heuristics",
    ("pytorch-2.6", "none"): "virtual GPU, PyTorch 2.6, no workspaces",
    ("pytorch", ""): "virtual GPU, PyTorch 2.15",
    ("pytorch", "cuDNN"): "virtual GPU, PyTorch 2.15, workspaces by cuDNN's heuristics",
    ("pytorch", "none"): "virtual GPU, PyTorch 2.15, no workspaces",
}
ESTIMATORS = {
    "xmem": "xMem",
    "dnnmem": "DNNMem",
    "schedtune": "SchedTune",
    "llmem": "LLMem",
    "memtracker": "MemTracker",
    "accelerate": "accelerate estimate-memory",
    "deepspeed": "DeepSpeed's ZeRO estimator",
    "megatron": "Megatron-LM's formula",
}


class Table:
    def __init__(self, all_rows, results):
        self.rows = all_rows
        self.results = {(r["row"], r["environment"], r["workspaces"]): r for r in results}

    def virtual(self, row, way):
        """Returns the virtual GPU's bytes, including the constant for the code of kernels; None = no figure."""
        result = self.results.get((row.name, *way))
        if result is None or not result["virtual_bytes"]:
            return None
        return int(result["virtual_bytes"]) + int(result["constant_bytes"])

    def error(self, row, way):
        said = self.virtual(row, way)
        return None if said is None else said / row.measured_bytes - 1

    def ways(self, of_kind):
        """The environments in which rows of a kind were run, that of the measured runs first."""
        names = {row.name for row in of_kind}
        run = {(r["environment"], r["workspaces"]) for r in self.results.values() if r["row"] in names}
        return [way for way in WAYS if way in run]

    def of_kind(self):
        kinds = {}
        for row in self.rows:
            kinds.setdefault(row.kind, []).append(row)
        return kinds

    def summary(self):
        yield line(
            "what ran", "who says", "rows", "median error", "9 of 10 within", "signed median",
            "under-estimates", "their median", "the worst",
        )
        yield line("---", "---", *["---:"] * 7)
        for kind, of_kind in self.of_kind().items():
            for way in self.ways(of_kind):
                errors = [self.error(row, way) for row in of_kind]
                yield summary_line(kind, WAYS[way], [e for e in errors if e is not None])
            for name, title in ESTIMATORS.items():
                errors = [
                    row.estimates[name] / row.measured_bytes - 1
                    for row in of_kind
                    if name in row.estimates
                ]
                if errors:
                    yield summary_line(kind, title, errors)

    def far(self):
        with open(HERE / "known.csv", newline="") as lines:
            known = list(csv.DictReader(lines))
        for row in self.rows:
            way = ("pytorch-2.6", row.workspaces[0])
            error = self.error(row, way)
            if error is None or abs(error) <= FAR:
                continue
            reasons = [k["known"] for k in known if fnmatchcase(row.name, k["rows"])]
            yield f"- {row.name}: {percent(error, True)}. {' '.join(reasons) or 'Not explained.'}"

    def without_figure(self):
        for row in self.rows:
            for way in (("pytorch-2.6", workspaces) for workspaces in row.workspaces):
                result = self.results.get((row.name, *way))
                if result is None:
                    yield f"- {row.name} ({WAYS[way]}): not run yet"
                elif not result["virtual_bytes"]:
                    yield f"- {row.name} ({WAYS[way]}): {result['verdict']}. {result['note']}"

    def each(self, kind, of_kind):
        ways = self.ways(of_kind)
        estimators = [name for name in ESTIMATORS if any(name in row.estimates for row in of_kind)]
        yield line(
            "row", "measured, MiB", *[f"{WAYS[way]}, MiB | error" for way in ways],
            *[ESTIMATORS[name] for name in estimators],
        )
        yield line("---", *["---:"] * (1 + 2 * len(ways) + len(estimators)))
        for row in of_kind:
            said = [
                cell
                for way in ways
                for cell in (mib(self.virtual(row, way)), signed(self.error(row, way)))
            ]
            others = [
                percent(row.estimates[name] / row.measured_bytes - 1, True)
                if name in row.estimates
                else ""
                for name in estimators
            ]
            yield line(
                row.name,
                mib(row.measured_bytes),
                *said,
                *others,
            )

    def provenance(self):
        values = self.results.values()
        for name, title in (
            ("framework", "Framework"),
            ("transformers", "transformers"),
            ("cudnn", "cuDNN"),
            ("headroom", "Headroom"),
            ("date", "Date"),
        ):
            found = sorted({r[name] for r in values if r[name]})
            if found:
                yield f"{title}: {', '.join(found)}. "

    def text(self):
        parts = ["".join(self.provenance()).strip(), "", *self.summary(), ""]
        parts += ["## Rows more than 5 % off", "", *(list(self.far()) or ["None."]), ""]
        parts += ["## Rows without a figure", "", *(list(self.without_figure()) or ["None."]), ""]
        parts += ["## Every row", ""]
        for kind, of_kind in self.of_kind().items():
            constant = of_kind[0].constant_bytes // MIB
            title = kind[0].upper() + kind[1:]
            parts += [f"### {title}", ""]
            if constant:
                parts += [f"The virtual GPU's figures include a constant of {constant} MiB.", ""]
            parts += [*self.each(kind, of_kind), ""]
        return "\n".join(parts)


def signed(error):
    return "" if error is None else percent(error, True)


def mib(value):
    if value is None:
        return ""
    return f"{value / MIB:,.1f}" if value >= MIB else f"{value / MIB:.4f}"


def write(readme, all_rows, results):
    before, rest = readme.read_text().split(BEGIN)
    _, after = rest.split(END)
    text = Table(all_rows, results).text()
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
