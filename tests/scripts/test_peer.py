"""scripts/peer --device cuda, with stand-ins for the program and for a Python that has PyTorch."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = {"peak_allocated_bytes": 2_000_000_000, "peak_reserved_bytes": 3_000_000_000}
HEADROOM = """#!{python}
import json, pathlib, sys
if sys.argv[1] == "export-state":
    folder = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
    (folder / "manifest.json").write_text(json.dumps({{"steps": [{{"loss": 2.0}}, {{"loss": 1.5}}]}}))
else:
    cell = json.loads(sys.argv[2])["cell"]
    steps = cell["warmup_steps"] + cell["measured_steps"]
    time = 12_000_000 if cell["execution"] == "captured" else 16_000_000
    memory = {{kind: {{"overall_peak": 10**9}} for kind in ("allocated_bytes", "reserved_bytes")}}
    print(json.dumps({{"status": "ok", "step_time_ns": [time + 5_000_000] * steps, "stall_time_ns": [5_000_000] * steps,
                      "loss": [2.0, 1.5] + [1.0] * (steps - 2), "memory": memory}}))
"""
PYTORCH = """#!{python}
import json, sys
if sys.argv[1] == "-c":
    sys.exit("no jax" if "jax" in sys.argv[2] else print("True"))
steps = int(sys.argv[sys.argv.index("--steps") + 1])
seconds = 0.010 if "--compile" in sys.argv else 0.020 if "--fused-attention" in sys.argv else 0.030
print(json.dumps({{"torch": "2.99", "backend": "native", "step_seconds": [seconds] * steps,
                  "loss": [2.0, {second_loss}] + [1.0] * (steps - 2), **{sample}}}))
"""


@pytest.fixture
def peer(tmp_path):
    """peer(second_loss) runs the comparison with a PyTorch whose second step has that loss."""
    clone = tmp_path / "clone"
    for folder in ("scripts", "bench/peers"):
        shutil.copytree(ROOT / folder, clone / folder)
    (clone / "build").mkdir()

    def program(path, text):
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run(second_loss):
        program(clone / "build" / "headroom", HEADROOM.format(python=sys.executable))
        text = PYTORCH.format(python=sys.executable, second_loss=second_loss, sample=SAMPLE)
        python = program(tmp_path / "python", text)
        command = [clone / "scripts" / "peer", "--device", "cuda", "bert-base", "--blocks", "2", "--python", python]
        return subprocess.run(command, capture_output=True, text=True)

    return run


def test_the_fastest_way_of_headroom_is_compared_with_the_fastest_of_pytorch(peer):
    result = peer(second_loss=1.5)
    assert result.returncode == 0, result.stderr
    assert "Headroom, captured takes 0.600 of the time of PyTorch, scaled_dot_product_attention." in result.stdout
    compiled = "PyTorch, compile, scaled_dot_product_attention"
    assert f"Headroom, captured takes 1.200 of the time of {compiled}." in result.stdout


def test_a_framework_that_is_missing_is_named(peer):
    assert "has no jax" in peer(second_loss=1.5).stderr


def test_losses_that_disagree_are_an_error(peer):
    result = peer(second_loss=1.6)
    assert result.returncode == 1
    assert "not the same training" in result.stderr
