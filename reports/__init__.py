"""The report people read: result files in, one self-contained HTML page out.

data ← charts ← views ← exports and render: each knows only what stands before it. Reads result
files only; never recomputes a verdict.
"""
