"""`caching` and `expandable` answer as PyTorch's own allocator does, after each request of random programs:
allocated and reserved bytes, the number of segments, and refusals."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from conftest import HEADROOM, MIB
from programs import answers_of_headroom, divergence, random_program, split

SERVER = Path(__file__).with_name("pytorch_caching.py")
PROGRAMS, LENGTH, LARGEST, STREAMS = 100, 150, 48 * MIB, 3

# Values of PYTORCH_ALLOC_CONF; each runs in a process of its own.
SETTINGS = [
    {},
    {"max_split_size_mb": 20},
    {"max_split_size_mb": 24, "max_non_split_rounding_mb": 22},
    {"roundup_power2_divisions": 1},
    {"large_segment_size_mb": 12, "roundup_power2_divisions": 16, "max_split_size_mb": 14},
    {"large_segment_size_mb": 32, "roundup_power2_divisions": 4},
    {"garbage_collection_threshold": 0.6, "max_split_size_mb": 21},
    {"garbage_collection_threshold": 0.8},
    {"expandable_segments": True},
    {"expandable_segments": True, "max_split_size_mb": 24},
    {"expandable_segments": True, "large_segment_size_mb": 12, "roundup_power2_divisions": 4},
]


def strategy_of(settings, fraction):
    """Headroom's names for these settings."""
    name = "expandable" if "expandable_segments" in settings else "caching"
    parameters = [f"{key.removesuffix('_mb')}={value}{'MiB' if key.endswith('_mb') else ''}"
                  for key, value in settings.items() if key != "expandable_segments"]
    return f"{name}({','.join([f'fraction={fraction}', *parameters])})"


def random_fraction(chance, settings):
    """The fraction of the device that PyTorch may use. PyTorch collects garbage only if it is below 1."""
    whole = 0.99 if "garbage_collection_threshold" in settings else 1
    return chance.choice([whole, round(chance.uniform(0.4, 0.95), 3)])


def answers_of_pytorch(python, programs, fractions, settings, capacity, tmp_path):
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    requests.write_text("\n".join(
        line for program, fraction in zip(programs, fractions) for line in program.lines(fraction)))
    served = subprocess.run(
        [HEADROOM, "gpu", "rtx4090", "--memory", str(capacity), "--until-step", "all", "--out",
         str(tmp_path / "out"), "--", str(python), str(SERVER), str(requests), str(answers)],
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "HEADROOM_GPU_VALUES": "off",
             "PYTORCH_ALLOC_CONF": ",".join(f"{key}:{value}" for key, value in settings.items())})
    assert answers.exists(), served.stdout + served.stderr
    return split(answers.read_text().splitlines(), programs)


def without_place(answer):
    """Removes addresses, which differ between processes."""
    *place, allocated, reserved, segments = answer.split()
    return "refused" in place, allocated, reserved, segments


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_answer_is_that_of_pytorch(pytorch, tmp_path, settings):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    capacity = chance.randrange(128, 385, 2) * MIB
    fractions = [random_fraction(chance, settings) for _ in range(PROGRAMS)]
    programs = [random_program(chance, LENGTH, 1, LARGEST, capacity * fraction, STREAMS)
                for fraction in fractions]
    theirs = answers_of_pytorch(pytorch, programs, fractions, settings, capacity, tmp_path)
    ours = answers_of_headroom(programs, [
        f"meta(capacity={capacity},granule=2MiB) 0 {strategy_of(settings, fraction)}" for fraction in fractions])
    for program, fraction, their, our in zip(programs, fractions, theirs, ours):
        their, our = ([without_place(answer) for answer in answers] for answers in (their, our))
        assert divergence(program, their, our) == "", (capacity, fraction)
    # Some requests must be refused, or the programs would not show how either allocator runs out of memory.
    assert any("refused" in answer for answers in theirs for answer in answers)
