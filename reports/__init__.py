"""The report people read: result files in, one self-contained HTML page out.

read → chart → render. Reads result files only; never recomputes a verdict.
"""
