"""Reads and writes Headroom's trace files in Python, one chunk at a time as NumPy arrays. README.md describes
the format, which the C++ in this folder also reads and writes."""

from .layout import EXTENSION, MAGIC, TraceFileError
from .reading import Trace, TraceReader, read_trace
from .writing import TraceWriter

__all__ = ["EXTENSION", "MAGIC", "Trace", "TraceFileError", "TraceReader", "TraceWriter", "read_trace"]
