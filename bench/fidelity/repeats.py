"""What the programs share that repeat published runs: where things are, and a CSV with a line per run."""

import csv
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADROOM = Path(os.environ.get("HEADROOM_BUILD", HERE.parents[1] / "build")) / "headroom"


def read_lines(file):
    """Returns the lines of a CSV by their first column; none if it does not exist yet."""
    if not file.exists():
        return {}
    with open(file, newline="") as rows:
        return {next(iter(row.values())): row for row in csv.DictReader(rows)}


def write_lines(file, columns, lines):
    with open(file, "w", newline="") as rows:
        writer = csv.DictWriter(rows, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def checkout(clone, commit, place):
    """Makes `place` a folder with the files of a commit, unless it exists, and returns it. The clone stays as it is."""
    if not place.exists():
        place.mkdir(parents=True)
        packed = subprocess.run(["git", "-C", clone, "archive", commit], check=True, capture_output=True)
        subprocess.run(["tar", "x", "-C", place], check=True, input=packed.stdout)
    return place
