"""python3 -m harness.memory.foreign FILE OUT: turns an allocation history of another program into
a Headroom trace. `headroom replay` calls it."""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

from . import minimalloc, pytorch, rmm, stalloc
from .builder import FormatError, TraceBuilder

FORMATS = {
    "PyTorch memory snapshot": pytorch,
    "RMM log": rmm,
    "MiniMalloc CSV": minimalloc,
    "STAlloc text": stalloc,
}
USAGE_ERROR = 2
HEAD_BYTES = 4096


def bound_memory(path: Path):
    """A file may ask for what it likes; it gets at most what files of its length can need."""
    limit = 512 * 2**20 + 200 * path.stat().st_size
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def convert(path: Path, out: Path):
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    for name, module in FORMATS.items():
        if module.matches(head):
            builder = TraceBuilder(allocator=name)
            module.read(path, builder)
            if len(builder) == 0:
                raise FormatError(f"is a {name} without a single allocation")
            builder.write(out)
            return
    raise FormatError(f"is none of these: Headroom trace, {', '.join(FORMATS)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    try:
        bound_memory(options.file)
        convert(options.file, options.out)
    except FormatError as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return USAGE_ERROR
    except UnicodeDecodeError as error:
        print(f"{options.file}: is no text in UTF-8 (byte {error.start})", file=sys.stderr)
        return USAGE_ERROR
    except MemoryError:
        print(f"{options.file}: asks for more memory than a file of its length can need", file=sys.stderr)
        return USAGE_ERROR
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
