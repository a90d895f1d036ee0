"""The report people read: result files in, one self-contained HTML page out.

data ← charts ← views ← exports and render: each imports only from those before it. Reads result
files only; never recomputes a verdict.
"""

import os

# numpy multiplies only matrices of three rows here. Threads would cost more than they save, and no process
# with threads can be forked safely (data/spread.py).
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
