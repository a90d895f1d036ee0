"""`bfc` answers as TensorFlow's own allocator does: the address of each block, the bytes in use, the regions,
and refusals. The device places the regions of both at the same addresses; descending ones are printed as if
they ascended."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from conftest import MIB
from programs import answers_of_headroom, divergence, random_program, split

SERVER = Path(__file__).with_name("tensorflow_bfc.cpp")
ENDLESS_BELOW = 4096  # below this limit, TensorFlow 2.21 loops forever if the device refuses regions


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Compiles a program that runs TensorFlow's allocator."""
    from conftest import python_of

    python = python_of("tensorflow")
    wheel = next(python.parents[1].glob("lib/python*/site-packages/tensorflow"))
    program = tmp_path_factory.mktemp("server") / "tensorflow_bfc"
    subprocess.run(
        ["c++", "-std=c++17", "-w", f"-I{wheel / 'include'}", "-D_GLIBCXX_USE_CXX11_ABI=1", str(SERVER), "-o",
         str(program), f"-L{wheel}", "-l:libtensorflow_framework.so.2", "-l:libtensorflow_cc.so.2",
         f"-Wl,-rpath,{wheel}"], check=True)
    return program


class Setting:
    """Random settings of an allocator, on a device that is partly used by others."""

    def __init__(self, chance, tight):
        self.capacity = chance.randrange(8 * MIB, 600 * MIB, 256)
        self.taken = chance.randrange(0, self.capacity // 2, 256) if tight else 0
        self.limit = self.capacity if tight else chance.randrange(self.capacity // 2, self.capacity + 1, 256)
        self.growth = chance.random() < 0.7
        self.garbage_collection = chance.random() < 0.6
        self.order = chance.choice(["ascending", "descending"])
        self.fragmentation = chance.choice([0, 0, round(chance.uniform(0.001, 0.5), 3)])

    def of_tensorflow(self):
        return (f"{self.capacity} {self.taken} {self.limit} {self.growth:d} {self.garbage_collection:d} "
                f"{self.fragmentation} {self.order}")

    def of_headroom(self):
        flags = {True: "on", False: "off"}
        return (f"meta(capacity={self.capacity},granule=256) {self.taken} "
                f"bfc(limit={self.limit},growth={flags[self.growth]},regions={self.order},"
                f"garbage_collection={flags[self.garbage_collection]},fragmentation_fraction={self.fragmentation})")


def answers_of_tensorflow(server, programs, settings):
    text = "\n".join(line for program, setting in zip(programs, settings)
                     for line in program.lines(setting.of_tensorflow()))
    served = subprocess.run([str(server)], input=text + "\n", capture_output=True, text=True, timeout=300,
                            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert served.returncode == 0, served.stderr[-2000:]
    return split(served.stdout.splitlines(), programs)


@pytest.mark.parametrize("count,tight", [(250, False), (450, True)], ids=["roomy", "tight"])
def test_every_answer_is_that_of_tensorflow(server, count, tight):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    settings = [Setting(chance, tight) for _ in range(count)]
    programs = [
        random_program(chance, 300, ENDLESS_BELOW if tight else 1, setting.capacity // 3,
                       setting.limit - setting.taken, trims=False)
        for setting in settings]
    theirs = answers_of_tensorflow(server, programs, settings)
    ours = answers_of_headroom(programs, [setting.of_headroom() for setting in settings])
    for program, setting, their, our in zip(programs, settings, theirs, ours):
        assert divergence(program, their, our) == "", setting.of_headroom()
    # Some requests must be refused, or the programs would not show how either allocator runs out of memory.
    assert any("refused" in answer for answers in theirs for answer in answers)
