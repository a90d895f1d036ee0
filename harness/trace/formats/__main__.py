"""python3 -m harness.trace.formats FILE OUT [--to FORMAT]: converts an allocation history of any known
format, to Headroom's own format by default. `headroom replay` and `headroom export` call this."""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from harness.trace.file import MAGIC, TraceFileError
from harness.trace.isolation import bound_memory, bound_time, end_with_parent, forbid_programs_and_network

from . import minimalloc, pytorch, rmm, stalloc
from .builder import FormatError, TraceBuilder
from .history import History

FORMATS = {
    "PyTorch memory snapshot": pytorch,
    "RMM log": rmm,
    "MiniMalloc CSV": minimalloc,
    "STAlloc text": stalloc,
}
WRITERS = {module.__name__.rpartition(".")[2]: module.write for module in FORMATS.values()}
OWN = "headroom"
USAGE_ERROR = 2
UNFINISHED = ".unfinished"
HEAD_BYTES = 4096
GZIP = b"\x1f\x8b"
NOT_SOUND = (FormatError, TraceFileError, csv.Error)


def most_for_reading(size: int) -> int:
    """Returns the bytes of memory that a file of `size` bytes can need."""
    return 512 * 2**20 + 200 * size


def import_history(path: Path, head: bytes, out: BinaryIO):
    """Converts `path` to a Headroom trace. Raises FormatError."""
    for name, module in FORMATS.items():
        if module.matches(head):
            builder = TraceBuilder(out, allocator=name)
            module.read(path, builder)
            if builder.events == 0:
                raise FormatError(f"is a {name} without a single allocation")
            builder.finish()
            return
    packed = "; unpack it first (gunzip)" if head.startswith(GZIP) else ""
    raise FormatError(f"is none of these: Headroom trace, {', '.join(FORMATS)}{packed}")


def convert(path: Path, out: Path, target: str):
    """Writes a trace in another format. `out` gets its name when it is complete."""
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if not head:
        raise FormatError("is empty; record it again")
    own = head.startswith(MAGIC)
    size = path.stat().st_size
    bound_time(60 + size // 2**17)
    # Headroom's own traces are compressed, so that one byte can stand for many events.
    bound_memory(4 * 2**30 + 4000 * size if own else most_for_reading(size))
    unfinished = out.with_name(out.name + UNFINISHED)
    try:
        with unfinished.open("wb") as stream:
            if own:
                with path.open("rb") as trace:
                    _export(trace, stream, target)
            elif target == OWN:
                import_history(path, head, stream)
            else:
                with tempfile.TemporaryFile() as trace:
                    import_history(path, head, trace)
                    _export(trace, stream, target)
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def _export(trace: BinaryIO, out: BinaryIO, target: str):
    if target == OWN:
        raise FormatError("is a Headroom trace already")
    WRITERS[target](History(trace), out)


def why_not(error: OSError, out: Path) -> str:
    """Names the file as the user did, not by its temporary name."""
    if error.filename is None or Path(error.filename).name == out.name + UNFINISHED:
        return f"{out}: cannot be written: {error.strerror}; name a file in a directory that can be written to"
    return f"{error.filename}: {error.strerror}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--to", choices=(OWN, *WRITERS), default=OWN)
    options = parser.parse_args()
    end_with_parent()
    forbid_programs_and_network()
    try:
        convert(options.file, options.out, options.to)
    except NOT_SOUND as error:
        print(f"{options.file}: {error}", file=sys.stderr)
    except UnicodeDecodeError as error:
        print(f"{options.file}: is not UTF-8 text (byte {error.start})", file=sys.stderr)
    except MemoryError:
        print(f"{options.file}: asks for more memory than a file of its length can need", file=sys.stderr)
    except OSError as error:
        print(why_not(error, options.out), file=sys.stderr)
    else:
        return 0
    return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
