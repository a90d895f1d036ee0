"""Headroom's trace files from Python, a chunk at a time as NumPy arrays. README.md describes the
format; the C++ beside this is the other reader and writer of it."""

from .layout import EXTENSION, MAGIC, TraceFileError
from .reading import Trace, TraceReader, read_trace
from .writing import TraceWriter

__all__ = ["EXTENSION", "MAGIC", "Trace", "TraceFileError", "TraceReader", "TraceWriter", "read_trace"]
