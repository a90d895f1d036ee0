"""python3 -m reports RUN_DIR [--out FILE]: writes the report; the last line says where it lies."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from reports.read import InputError, read_run
from reports.render import render
from reports.view_cost import build_cost

USAGE_ERROR = 2


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m reports", description="Writes the HTML report of a run directory."
    )
    parser.add_argument("run_directory", type=Path, metavar="RUN_DIR", help="what `headroom run` wrote")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: RUN_DIR/report.html")
    options = parser.parse_args(arguments)
    target = options.out or options.run_directory / "report.html"
    try:
        data = read_run(options.run_directory)
        _write(target, render(data))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    if cost := build_cost(data.run):
        print(f"Cost of measuring: {cost.sentence}")
    print(target.resolve())
    return 0


def _write(target: Path, text: str) -> None:
    """Whole or not at all: a full disk leaves an older report as it was."""
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=".report-", delete=False
        ) as stream:
            temporary = Path(stream.name)
            stream.write(text)
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InputError(f"{target}: cannot be written: {error.strerror}. Choose another place with --out.") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    sys.exit(main())
