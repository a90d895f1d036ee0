"""A made-up run of any number of configurations, to see how the report grows with them."""

from __future__ import annotations

from pathlib import Path

from fixture import Fixture, cell_of, run_of, write_files
from fixture_recording import GIB
from fixture_verdicts import verdicts_of


def write_large_run(directory: Path, cells: int) -> Path:
    """Two cells an experiment; four in ten measured, with ten samples each; on six devices."""
    fixture = Fixture(directory)
    for pair in range(cells // 2):
        batch = 1 + pair % 128
        if pair % 5 < 2:
            device = f"host(capacity={2 + pair % 3}GiB)"
            for slow, arm in ((1.0, "off"), (1.02, "on")):
                cell = cell_of(device, batch, f"bfc(growth={arm})", optimizer=("sgd", "adam")[pair // 128 % 2])
                cell["cell_id"] += f"/{pair}"
                name = "preallocate" if arm == "off" else "growth"
                fixture.host(f"large/host/batch={pair}", name, cell, arm == "on", slow)
        else:
            device = f"meta(card=c{pair % 3})"
            for arm in ("off", "on"):
                cell = cell_of(device, batch, f"bfc(growth={arm})", precision=("f32", "mixed")[pair // 128 % 2])
                cell["cell_id"] += f"/{pair}"
                name = "preallocate" if arm == "off" else "growth"
                fixture.meta(f"S02/c{pair % 3}/batch={pair}", name, cell, arm == "on", 2 * GIB)
    fixture.host("S03/host", "preallocate", cell_of("host(capacity=4GiB)", 16, "bfc(growth=off)"), False, 1.0)
    fixture.host("S03/host", "growth", cell_of("host(capacity=4GiB)", 16, "bfc(growth=on)"), True, 1.006)
    fixture.host("S03/host", "malloc", cell_of("host(capacity=4GiB)", 16, "malloc"), True, 1.31)
    write_files(directory, run_of(len(fixture.samples)), fixture.samples, verdicts_of(fixture.matrix))
    return directory
