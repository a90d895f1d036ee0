#!/usr/bin/env python3
"""Compares the virtual GPU (`headroom gpu`) with runs that others measured on real ones.

Runs what results.csv does not have yet, one program at a time, and writes the tables into README.md.
Needs a build and an environment of `scripts/setup --with`: pytorch-2.6 has the PyTorch of the measured
runs, pytorch today's."""

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

import rows
import table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COLUMNS = (
    "row environment workspaces verdict measured_bytes virtual_bytes constant_bytes note "
    "framework transformers cudnn headroom date"
).split()
KEY = ("row", "environment", "workspaces")


def python_of(environment):
    """The interpreter of the environment that `scripts/setup --with` makes."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "headroom" / "environments" / environment / "bin" / "python"


def output_of(*command):
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return process.stdout.strip() if process.returncode == 0 else "not known"


def version_in(python, *packages):
    """The version of the first of `packages` that the environment has."""
    program = "import sys, importlib.metadata as m; print(next(d.version for name in sys.argv[1:] "
    program += "for d in m.distributions(name=name)))"
    return output_of(python, "-c", program, *packages)


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


class VirtualGpu:
    """Runs `headroom gpu` with programs of this folder."""

    def __init__(self, headroom, environment):
        self.headroom, self.environment = headroom, environment
        self.python = python_of(environment)
        self.revision = output_of("git", "-C", headroom.resolve().parent, "rev-parse", "--short", "HEAD")
        self.transformers = version_in(self.python, "transformers")
        self.cudnn = version_in(self.python, "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")

    def run(self, card, program, workspaces):
        """The JSON that `headroom gpu` prints ({} = none) and what the program printed."""
        with tempfile.TemporaryDirectory() as directory:
            options = ["--until-step", "all", "--json", "--out", f"{directory}/run"]
            if workspaces == "none":
                options += ["--cudnn", "none"]
            script, *arguments = program
            command = [self.headroom, "gpu", *card, *options, "--"]
            command += [self.python, HERE / "programs" / script, *arguments]
            process = subprocess.run(command, capture_output=True, text=True)
        try:
            return json.loads(process.stdout), process.stderr
        except json.JSONDecodeError:
            return {}, process.stderr

    def result(self, row, workspaces, answer, said, virtual_bytes):
        frameworks = answer.get("frameworks") or [{}]
        note = "" if virtual_bytes else (frameworks[0].get("error") or last_line(said))
        missing = ", ".join(answer.get("not_supported", []))
        return {
            "row": row.name,
            "environment": self.environment,
            "workspaces": workspaces,
            "verdict": answer.get("verdict", "failed"),
            "measured_bytes": row.measured_bytes,
            "virtual_bytes": virtual_bytes or "",
            "constant_bytes": row.constant_bytes,
            "note": (f"needs {missing}" if missing else note).replace("\n", " ")[:200],
            "framework": frameworks[0].get("name", ""),
            "transformers": self.transformers,
            "cudnn": self.cudnn if workspaces == "cuDNN" else "",
            "headroom": self.revision,
            "date": datetime.date.today().isoformat(),
        }

    def training_run(self, row, workspaces):
        """Runs one program for one row: the peak that PyTorch's allocator counted."""
        answer, said = self.run(row.card, row.program, workspaces)
        fits = answer.get("verdict") == "fits"
        devices = answer["frameworks"][0]["devices"] if fits else []
        peak = devices[0][row.counter] if devices else None
        return self.result(row, workspaces, answer, said, peak)

    def operators(self, group):
        """Runs one program for many rows: the peaks that the program itself asks PyTorch for."""
        arguments = [json.dumps(row.program) for row in group]
        answer, said = self.run(group[0].card, ["liger.py", *arguments], "")
        peaks = [
            json.loads(line)["peak_allocated_bytes"]
            for line in said.splitlines()
            if line.startswith('{"peak_allocated_bytes"')
        ]
        peaks += [None] * (len(group) - len(peaks))
        return [self.result(row, "", answer, said, peak) for row, peak in zip(group, peaks)]


def key_of(result):
    return tuple(result[name] for name in KEY)


def read_results(path):
    if not path.exists():
        return []
    with open(path, newline="") as lines:
        return list(csv.DictReader(lines))


def write_results(path, results, columns=COLUMNS, key=KEY):
    order = {name: place for place, name in enumerate(rows.names())}
    results = sorted(results, key=lambda r: (order.get(r["row"], len(order)), *(r[name] for name in key)))
    unfinished = path.with_suffix(".unfinished")
    with open(unfinished, "w", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)
    os.replace(unfinished, path)


def measure(gpu, wanted, path, apart):
    done = {key_of(r) for r in read_results(path) if r["virtual_bytes"]}

    def missing(row, workspaces):
        return (row.name, gpu.environment, workspaces) not in done

    def keep(new):
        replaced = {key_of(r) for r in new}
        write_results(path, [r for r in read_results(path) if key_of(r) not in replaced] + new)
        for r in new:
            virtual = int(r["virtual_bytes"] or 0) + r["constant_bytes"]
            error = f"{100 * (virtual / r['measured_bytes'] - 1):+.2f} %" if r["virtual_bytes"] else ""
            print(f"{r['row']}  {r['workspaces']}  {error or r['note']}", flush=True)

    for row in wanted:
        for workspaces in row.workspaces:
            if row.group is None and missing(row, workspaces):
                keep([gpu.training_run(row, workspaces)])
    operators = [row for row in wanted if row.group is not None and missing(row, "")]
    for _, group in groupby(operators, key=lambda row: row.name if apart else row.group):
        keep(gpu.operators(list(group)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only the rows whose names contain all of them")
    parser.add_argument("--headroom", default=ROOT / "build" / "headroom", type=Path)
    parser.add_argument("--environment", default="pytorch-2.6", help="a name of scripts/setup --with")
    parser.add_argument("--results", default=HERE / "results.csv", type=Path)
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--table", action="store_true", help="run nothing, write the tables")
    parser.add_argument(
        "--apart", action="store_true", help="a process for each operator, not one for many"
    )
    options = parser.parse_args()
    wanted = [row for row in rows.read() if all(word in row.name for word in options.words)]
    if options.list:
        print("\n".join(row.name for row in wanted))
        return
    if not options.table:
        if not python_of(options.environment).exists():
            sys.exit(f"{options.environment} is missing: run scripts/setup --with {options.environment}")
        gpu = VirtualGpu(options.headroom, options.environment)
        measure(gpu, wanted, options.results, options.apart)
    if options.results == HERE / "results.csv":
        table.write(HERE / "README.md", rows.read(), read_results(options.results))


if __name__ == "__main__":
    main()
