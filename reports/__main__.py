"""python3 -m reports RUN_DIR [--html FILE --md FILE …]: writes the report, or exports;
python3 -m reports watch DIR [--out FILE]: the page of a watched process tree;
python3 -m reports gpu DIR [--out FILE]: the page of a program on a virtual GPU.
The last line is the path of the last file."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from pathlib import Path

from harness.trace.isolation import bound_memory, end_with_parent, forbid_programs_and_network
from reports.data.gpu import read_gpu
from reports.data.read import InputError, read_changes, read_run
from reports.data.watch import read_watch
from reports.exports import FORMATS
from reports.render import render, render_changes, render_page
from reports.views.first_screen.closing import closing
from reports.views.gpu import build_gpu
from reports.views.watch import build_watch

USAGE_ERROR = 2


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    write = _page if words[0:1] and words[0] in PAGES else _report
    try:
        written = write(words)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    except MemoryError:
        print("error: the report needs more than half of this machine's memory.", file=sys.stderr)
        return USAGE_ERROR
    for target in written:
        print(target.resolve())
    return 0


def _watch_page(directory: Path) -> str:
    return render_page("watch.html", watch=build_watch(read_watch(directory)))


def _gpu_page(directory: Path) -> str:
    try:
        return render_page("gpu.html", gpu=build_gpu(read_gpu(directory)))
    except (KeyError, TypeError, AttributeError) as error:  # no schema describes gpu.json
        raise InputError(f"{directory}: this is not what `headroom gpu` writes ({error!r}).") from None


PAGES = {"watch": _watch_page, "gpu": _gpu_page}


def _page(words: list[str]) -> list[Path]:
    parser = argparse.ArgumentParser(prog="headroom report", description="Writes the one HTML page of a directory.")
    parser.add_argument("directory", type=Path, metavar="DIR", help=f"what `headroom {words[0]}` wrote")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: DIR/report.html")
    options = parser.parse_args(words[1:])
    target: Path = options.out or options.directory / "report.html"
    _write(target, PAGES[words[0]](options.directory))
    return [target]


def _report(words: list[str]) -> list[Path]:
    options = _parse(words)
    directory: Path = options.run_directory
    changes = read_changes(options.changes, options.before) if options.before else None
    data = read_run(directory)
    wanted = [format for format in FORMATS if getattr(options, format.name) is not None]
    of_one_run = [format.name for format in wanted if not format.compares] + ["share"] * bool(options.share)
    if changes and of_one_run:
        raise InputError(f"--{of_one_run[0]} is of one run: leave out {options.before} to have it.")
    written = []
    page_wanted = options.html or not (wanted or options.share)
    if page_wanted:
        target = options.html or directory / ("changes.html" if changes else "report.html")
        _write(target, render_changes(data, changes) if changes else render(data))
        written.append(target)
    for format in wanted:
        _write(getattr(options, format.name), format.write(data, changes))
        written.append(getattr(options, format.name))
    if options.share:
        try:
            options.share.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{options.share}: cannot be created: {error.strerror}. Name another folder.") from None
        from reports.share import shared_files  # takes a while to import, for what few ask for

        for name, content in shared_files(data, options.address):
            _write(options.share / name, content)
        written.append(options.share)
    if page_wanted and not changes:
        print(closing(data), end="")
    return written


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="headroom report", description="Writes the HTML report of a run directory, or exports."
    )
    parser.add_argument("run_directory", type=Path, metavar="RUN_DIR", help="what `headroom run` wrote")
    parser.add_argument("--html", type=Path, metavar="FILE", help="default: RUN_DIR/report.html")
    for format in FORMATS:
        parser.add_argument(f"--{format.name}", type=Path, metavar="FILE")
    parser.add_argument("--share", type=Path, metavar="FOLDER", help="the report, and a page with a preview image for each finding")
    parser.add_argument("--address", default="", metavar="URL", help="where FOLDER will be on the web: preview images need it")
    parser.add_argument("--before", type=Path, metavar="RUN_DIR", help="the earlier of two runs; needs --changes")
    parser.add_argument("--changes", type=Path, metavar="FILE", help="headroom compare BEFORE RUN_DIR --json")
    options = parser.parse_args(words)
    if (options.before is None) != (options.changes is None):
        parser.error("--before and --changes go together")
    if options.address and not options.share:
        parser.error("--address belongs to --share FOLDER")
    return options


def _write(target: Path, content: str | bytes) -> None:
    """Writes the file whole or not at all: on a full disk, an older report stays as it was."""
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".report-", delete=False) as stream:
            temporary = Path(stream.name)
            stream.write(content if isinstance(content, bytes) else content.encode(errors="replace"))
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InputError(f"{target}: cannot be written: {error.strerror}. Name another file.") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    gc.disable()  # the process is short, and garbage collection would take an eighth of its time
    end_with_parent()
    forbid_programs_and_network()
    bound_memory(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    sys.exit(main())
