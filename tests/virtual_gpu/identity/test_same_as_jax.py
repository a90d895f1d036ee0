"""`bfc` without garbage collection answers as JAX's allocator does: the place of each block, the bytes in
use, and the regions. No request is refused, because JAX waits 10 s before it refuses."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from conftest import HEADROOM, MIB
from programs import answers_of_headroom, divergence, random_program, split

SERVER = Path(__file__).with_name("jax_bfc.py")


def answers_of_jax(python, program, environment, capacity, tmp_path):
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    requests.write_text("\n".join(program.lines("")))
    served = subprocess.run(
        [HEADROOM, "gpu", "rtx4090", "--memory", str(capacity), "--out", str(tmp_path / "out"), "--", str(python),
         str(SERVER), str(requests), str(answers)],
        capture_output=True, text=True, timeout=600, env={**os.environ, **environment})
    assert answers.exists(), served.stdout + served.stderr
    return split(answers.read_text().splitlines(), [program])[0]


def from_the_first_block(answers):
    """Returns (place, in use, regions). Places are relative, because the first region may lie anywhere."""
    rows = [[int(word) for word in answer.split()] for answer in answers]
    first = rows[0][0]
    return [[place - first for place in row[:-2]] + row[-2:] for row in rows]


def as_if_regions_ascended(answers):
    """Turns places of regions that descend, which begin with the first block, into those that
    from_the_first_block would return if every region lay behind the one before it."""
    rows = from_the_first_block(answers)
    top, ends = rows[0][-1], [0]  # ends: bytes of all regions up to each one
    for row in rows:
        if row[-1] > ends[-1]:
            ends.append(row[-1])
        for at, place in enumerate(row[:-2]):
            below_top = top - place
            region = next(k for k, end in enumerate(ends) if end >= below_top)
            row[at] = ends[region - 1] + ends[region] - below_top
    return rows


@pytest.mark.parametrize("environment,growth", [
    ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, "on"),
    ({}, "off"),
], ids=["growth", "preallocated"])
def test_every_answer_is_that_of_jax(jax, tmp_path, environment, growth):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    capacity = chance.randrange(256, 1025, 8) * MIB
    program = random_program(chance, 2000, 1, capacity // 64, capacity // 4, trims=False)
    theirs = answers_of_jax(jax, program, environment, capacity, tmp_path)
    strategy = f"bfc(fraction=0.75,garbage_collection=off,growth={growth},regions=descending)"
    ours, = answers_of_headroom([program], [f"meta(capacity={capacity},granule=2MiB) 0 {strategy}"])
    # Headroom also prints the size of each block and the number of regions.
    ours = [" ".join(words[:-4] + words[-3:-1]) for words in map(str.split, ours)]
    assert divergence(program, as_if_regions_ascended(theirs), from_the_first_block(ours)) == ""
