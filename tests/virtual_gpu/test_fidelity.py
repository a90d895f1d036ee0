"""The comparison with measured runs: that it makes rows, and that its statistics are right."""

import csv
import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import HEADROOM, environment_python

FIDELITY = Path(__file__).resolve().parents[2] / "bench" / "fidelity"
sys.path.append(str(FIDELITY))  # its programs import each other


def module_of(name):
    """Imports a module of bench/fidelity, a folder of programs that is not a package."""
    specification = importlib.util.spec_from_file_location(f"fidelity_{name}", FIDELITY / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look themselves up there
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def statistics_of():
    return module_of("table").statistics_of


def test_statistics_are_of_absolute_errors_and_tell_the_under_estimates_apart(statistics_of):
    made_up = [0.01, -0.02, 0.03, -0.04, 0.05, 0.06, 0.07, 0.08, 0.09, -0.5]
    s = statistics_of(made_up)
    assert s.rows == 10
    assert s.median == pytest.approx(0.055)
    assert s.within == 0.09
    assert s.signed_median == pytest.approx(0.04)
    assert (s.under, s.under_median, s.under_worst) == (3, -0.04, -0.5)


def test_rows_that_are_all_exact_have_no_under_estimate(statistics_of):
    s = statistics_of([0.0, 0.0])
    assert (s.median, s.within, s.under, s.under_worst) == (0.0, 0.0, 0, 0.0)


def test_every_row_has_a_name_of_its_own():
    names = module_of("rows").names()
    assert len(names) == len(set(names))


def test_rows_are_run_once_and_have_bytes_and_their_source(tmp_path):
    environment = next(
        (name for name in ("pytorch-2.6", "pytorch") if has_environment(name)), None
    )
    if environment is None:
        pytest.skip("PyTorch is not set up: scripts/setup --with pytorch-2.6")
    results = tmp_path / "results.csv"
    command = [sys.executable, FIDELITY / "measure.py", "softmax", "N=128", "--results", results,
               "--headroom", HEADROOM, "--environment", environment]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    with open(results, newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["row"] for row in rows] == [
        "softmax full N=128 dtype=torch.float32 RTX 3090",
        "softmax full N=128 dtype=torch.bfloat16 RTX 3090",
    ]
    assert all(int(row["virtual_bytes"]) > 0 for row in rows), first.stdout
    assert all(row["framework"].startswith("PyTorch 2.") for row in rows)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == ""


def test_the_peaks_of_a_record_are_those_of_all_logs_of_its_first_program(tmp_path):
    log = "import torch\n{0}\n=====\nRunning PyTorch 2.8.0+cu128\npeak memory allocated: {1} MiB reserved: {2} MiB\n"
    for name, program, *peaks in (("a", "# one", 20, 30), ("b", "# one", 21, 29), ("c", "# another", 50, 60)):
        (tmp_path / f"{name}.txt").write_text(log.format(program, *peaks))
    program, version, peaks = module_of("speedruns").logs_of(tmp_path)
    assert (program, version, peaks) == ("import torch\n# one", "2.8.0+cu128", [(20, 30), (21, 29)])


def test_the_weights_of_llama_are_as_many_as_its_authors_say_and_take_no_room(tmp_path):
    module_of("peft_methods").write_model(tmp_path)
    with open(tmp_path / "model.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    assert sum(math.prod(tensor["shape"]) for tensor in header.values()) == 3_212_749_824
    assert (tmp_path / "model.safetensors").stat().st_blocks * 512 < 1 << 20


def test_only_experiments_that_ended_well_are_repeated(tmp_path):
    results = tmp_path / "method_comparison" / "MetaMathQA" / "results"
    results.mkdir(parents=True)
    for name, status in (("lora/a", "success"), ("oft/b", "failed")):
        result = {"run_info": {"experiment_name": name}, "train_info": {"status": status}}
        (results / name.replace("/", "--")).with_suffix(".json").write_text(json.dumps(result))
    assert list(module_of("peft_methods").measured(tmp_path)) == ["lora/a"]


def has_environment(name):
    return os.access(environment_python(name), os.X_OK)
