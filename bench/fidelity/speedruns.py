#!/usr/bin/env python3
"""Repeats training runs of modded-nanogpt on one rank of eight virtual H100s. Its authors ran them on real ones.

bench/fidelity/speedruns.py CLONE DIR NAME... [--python PYTHON]

CLONE is a clone of https://github.com/KellerJordan/modded-nanogpt. Its logs hold the programs themselves and the peaks
that PyTorch counted in them. NAME is a folder of its records, as in 2024-12-17_SparsifyEmbeds. The first of its logs
is repeated with random tokens, the PyTorch of PYTHON, and 126 iterations in place of thousands: the network is
validated before the first one, before the last one and behind it. Later ones are taken to repeat these. DIR gets
the programs, the tokens (220 MB) and the records. Lines of speedruns.csv are replaced or added; bytes are MiB as the
programs print them. Prints a table as Markdown."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy

from repeats import HEADROOM, HERE, read_lines, write_lines

RESULTS = HERE / "speedruns.csv"
PEAK = re.compile(r"^peak memory allocated: (\d+) MiB reserved: (\d+) MiB", re.MULTILINE)
ITERATIONS = re.compile(r"^( +num_iterations *(?:: int)? *= *)\d+", re.MULTILINE)
MAGIC, VERSION, END_OF_TEXT = 20240520, 1, 50256  # of a file of tokens
COLUMNS = ["record", "pytorch", "runs", "allocated_least", "allocated_most", "reserved_least", "reserved_most",
           "here", "virtual_allocated", "virtual_reserved"]  # fmt: skip


def logs_of(folder):
    """Returns the program of a record, its version of PyTorch, and the peaks in all logs of this program."""
    program, version, peaks = None, "", []
    for log in sorted([*folder.rglob("*.txt"), *folder.rglob("*.log")]):
        text = log.read_text(errors="replace")
        code, _, output = text.partition("\n====")
        peak = PEAK.search(output)
        if peak and "import torch" in code and program in (None, code):
            program = code
            version = version or re.search(r"pytorch (\d\S+)", output, re.IGNORECASE)[1]
            peaks.append(tuple(map(int, peak.groups())))
    if program is None:
        sys.exit(f"{folder}: no log with a program and the peaks of both counters")
    return program, version, peaks


def write_tokens(file, count):
    """Writes random tokens of documents whose mean length is that of FineWeb, about 1,000."""
    chance = numpy.random.default_rng(0)
    tokens = chance.integers(0, END_OF_TEXT, count).astype(numpy.uint16)
    starts = numpy.cumsum(chance.exponential(1000, count // 900).astype(int))
    tokens[starts[starts < count]] = END_OF_TEXT
    header = numpy.zeros(256, numpy.int32)
    header[:3] = MAGIC, VERSION, count
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(header.tobytes() + tokens.tobytes())


def repeat(name, options):
    """Returns the line of a record, after it has run on the virtual GPU."""
    folder = next(options.clone.glob(f"records/*/{name}"), None)
    if folder is None:
        sys.exit(f"{options.clone} has no record {name}; `ls {options.clone}/records/*` shows those that there are")
    program, version, peaks = logs_of(folder)
    file = options.directory / f"{name}.py"
    program = ITERATIONS.sub(r"\g<1>126", program) + "\n"
    file.write_text(program)
    (options.directory / "logs" / "final").mkdir(parents=True, exist_ok=True)  # where the programs write
    command = [HEADROOM, "gpu", "h100", "--world", "8", "--until-step", "all", "--out", options.directory / name,
               "--", options.python, file.name]  # fmt: skip
    shutil.rmtree(options.directory / name, ignore_errors=True)  # of a try that did not end
    ran = subprocess.run(command, cwd=options.directory, capture_output=True, text=True)
    logs = sorted(options.directory.glob("logs/**/*.txt"), key=os.path.getmtime)  # some programs print nothing
    own = [text for text in (log.read_text() for log in logs) if text.startswith(program)]
    found = PEAK.search(own[-1].removeprefix(program)) if own else None
    if not found:
        sys.exit(f"{name} did not end:\n{ran.stderr[-2000:]}{ran.stdout[-2000:]}")
    allocated, reserved = zip(*peaks)
    here = re.search(r"of PyTorch (\d[^\s);]*)", ran.stdout)[1]
    return dict(zip(COLUMNS, [name, version, len(peaks), min(allocated), max(allocated), min(reserved), max(reserved),
                              here, *map(int, found.groups())]))  # fmt: skip


def print_table(lines):
    print("| record | PyTorch | allocated (MiB) | virtual | reserved (MiB) | virtual |\n|---|---|---|---|---|---|")
    for row in lines:
        cells = [row["record"], f"{row['pytorch']}, here {row['here']}"]
        for counter in ("allocated", "reserved"):
            least, most = int(row[f"{counter}_least"]), int(row[f"{counter}_most"])
            virtual = int(row[f"virtual_{counter}"])
            cells.append(f"{least:,}" + (f" to {most:,}" if most > least else ""))
            error = (virtual - min(max(virtual, least), most)) / least  # from the nearest of the runs
            among = "the same" if least == most else "among them"
            cells.append(f"{virtual:,} (" + (f"{100 * error:+.2f} %)" if error else f"{among})"))
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_intermixed_args()
    options.directory = options.directory.resolve()
    tokens = options.directory / "data" / "fineweb10B"
    if not tokens.exists():
        write_tokens(tokens / "fineweb_train_000001.bin", 90_000_000)
        write_tokens(tokens / "fineweb_val_000001.bin", 20_971_520)
        for kind in ("train", "val"):
            (tokens / f"fineweb_{kind}_000002.bin").symlink_to(f"fineweb_{kind}_000001.bin")
    for name in options.names:
        line = repeat(name, options)
        lines = {**read_lines(RESULTS), name: line}
        write_lines(RESULTS, COLUMNS, [lines[key] for key in sorted(lines)])
    print_table(read_lines(RESULTS).values())


if __name__ == "__main__":
    main()
