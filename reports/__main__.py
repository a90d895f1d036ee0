"""python3 -m reports [watch] DIR [--out FILE]: writes the page; the last line says where it lies."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from reports.read import InputError, read_run
from reports.read_watch import read_watch
from reports.render import render, render_page
from reports.view_cost import build_cost
from reports.view_watch import build_watch

USAGE_ERROR = 2


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    watched = words[:1] == ["watch"]
    parser = argparse.ArgumentParser(
        prog="python3 -m reports watch" if watched else "python3 -m reports",
        description="Writes the HTML page of a watched process tree."
        if watched
        else "Writes the HTML report of a run directory; `watch DIR` that of a watched process tree.",
    )
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help=f"what `headroom {'watch' if watched else 'run'}` wrote"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: DIR/report.html")
    options = parser.parse_args(words[1:] if watched else words)
    target = options.out or options.directory / "report.html"
    try:
        if watched:
            _write(target, render_page("watch.html", watch=build_watch(read_watch(options.directory))))
            print(target.resolve())
            return 0
        data = read_run(options.directory)
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
