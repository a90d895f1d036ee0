"""PyTorch with one of Headroom's allocators in place of its own, on a virtual GPU and on the CPU."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import HEADROOM

SIZES = ("peak_requested_bytes", "peak_allocated_bytes", "peak_reserved_bytes")

# Trains on the device that its first argument names, and uses a second stream where there are streams.
TRAIN = """
import sys
import torch
device = sys.argv[1]
torch.manual_seed(0)
model = torch.nn.Sequential(*[layer for width in (700, 900, 1300) for layer in
                              (torch.nn.LazyLinear(width), torch.nn.ReLU())]).to(device)
model(torch.zeros(1, 500, device=device))
optimizer = torch.optim.Adam(model.parameters())
side = torch.cuda.Stream() if device == "cuda" else None
rows = 800 if device == "cuda" else 200  # a CPU computes
for step in range(4):
    batch = torch.randn(rows + rows // 8 * step, 500).to(device)
    loss = model(batch).square().mean()
    if side is not None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            copies = [batch * 2 for _ in range(3)]
        batch.record_stream(side)
        del copies
    loss.backward()
    del batch
    optimizer.step()
    optimizer.zero_grad()
    if device == "cpu":
        print("loss", loss.item())
if device == "cuda":
    print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
    del model, optimizer, loss
    torch.cuda.empty_cache()
    print("left", torch.cuda.memory_allocated())
"""

# Requests more than there is, catches the error, and goes on.
REFUSED = """
import sys
import torch
device = sys.argv[1]
kept = torch.zeros(1000, device=device)
try:
    torch.empty(900 * 2**20, dtype=torch.uint8, device=device)
except torch.OutOfMemoryError as error:
    print("refused:", error)
assert (kept == 0).all() or device == "cuda"
print("goes on with", len(torch.ones(1000, device=device)))
"""


def by_allocator(figures):
    return {run["allocator"]: run for run in figures["allocators"]}


def replayed(snapshot, allocator, capacity):
    """Returns the peaks of an allocator under a recorded history that Headroom replays."""
    done = subprocess.run(
        [HEADROOM, "replay", "--json", "--capacity", str(capacity), "--granule", "256", "--allocator", allocator,
         str(snapshot)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["strategies"]
    return [row["requested_bytes_peak"], row["allocated_bytes_peak"], row["reserved_bytes_peak"]]


SERVED = ["caching", "bfc(growth=on)", "pool", "tlsf", "expandable", "malloc"]
SERVED_FULL = ["caching", "bfc(growth=on)", "limit(500MiB)|caching"]


def each(allocators):
    return [word for allocator in allocators for word in ("--allocator", allocator)]


@pytest.fixture(scope="module")
def served_gpu(shared_gpu, pytorch):
    """TRAIN on a GPU with PyTorch's own allocator and with each of SERVED."""
    return shared_gpu("rtx4090", *each(SERVED), program=TRAIN, python=pytorch, arguments=["cuda"])


@pytest.fixture(scope="module")
def full_gpu(shared_gpu, pytorch):
    """REFUSED on a GPU with PyTorch's own allocator and with each of SERVED_FULL."""
    return shared_gpu("rtx4090", "--memory", "800MiB", *each(SERVED_FULL), program=REFUSED, python=pytorch,
                      arguments=["cuda"])


def output_of(answer, allocator):
    """What the program printed under the allocator with this number; 0 is PyTorch's own."""
    return (Path(answer.figures["directory"]) / f"allocator-{allocator}/output.txt").read_text()


def takes_what_pytorch_takes(answer, allocator):
    own, served = answer.figures["allocators"][0], by_allocator(answer.figures)[allocator]
    assert served["verdict"] == "fits", answer.output
    assert [served[size] for size in SIZES] == [own[size] for size in SIZES]
    assert own["peak_reserved_bytes"] > 0
    assert "PyTorch's own" in answer.output and allocator in answer.output


def test_pytorchs_own_rules_take_what_pytorch_takes(served_gpu):
    takes_what_pytorch_takes(served_gpu, "caching")


@pytest.mark.parametrize("allocator,settings", [
    ("caching(max_split_size=21MiB)", "max_split_size_mb:21"),
    ("expandable", "expandable_segments:True"),
])
def test_pytorchs_own_rules_take_what_pytorch_takes_with_other_settings(gpu, pytorch, allocator, settings):
    answer = gpu("rtx4090", "--allocator", allocator, program=TRAIN, python=pytorch, arguments=["cuda"],
                 environment={"PYTORCH_ALLOC_CONF": settings})
    takes_what_pytorch_takes(answer, allocator)


@pytest.mark.parametrize("allocator", SERVED)
def test_the_program_sees_the_figures_of_the_allocator(served_gpu, allocator):
    served = by_allocator(served_gpu.figures)[allocator]
    output = output_of(served_gpu, 1 + SERVED.index(allocator))
    assert f"peak {served['peak_allocated_bytes']} {served['peak_reserved_bytes']}" in output


@pytest.mark.parametrize("allocator", SERVED)
def test_what_a_gpu_is_served_is_what_replay_foretells(served_gpu, allocator):
    served = by_allocator(served_gpu.figures)[allocator]
    snapshot = Path(served_gpu.figures["directory"]) / served_gpu.figures["frameworks"][0]["snapshot"]
    assert [served[size] for size in SIZES] == replayed(snapshot, allocator, served_gpu.figures["memory_bytes"])


@pytest.mark.parametrize("allocator", SERVED_FULL)
def test_a_gpu_that_is_full_ends_in_pytorchs_own_error(full_gpu, allocator):
    output = output_of(full_gpu, 1 + SERVED_FULL.index(allocator))
    assert "refused: CUDA out of memory. Tried to allocate 900.00 MiB" in output
    assert "goes on with 1000" in output
    assert by_allocator(full_gpu.figures)[allocator]["verdict"] == "fits"


def test_a_program_that_does_not_catch_the_error_does_not_fit(gpu, pytorch):
    answer = gpu("rtx4090", "--memory", "800MiB", "--allocator", "caching", python=pytorch, program="""
import torch
torch.empty(900 * 2**20, dtype=torch.uint8, device="cuda")
""")
    assert [run["verdict"] for run in answer.figures["allocators"]] == ["does not fit", "does not fit"]


def test_a_graph_whose_memory_would_not_be_kept_is_refused(gpu, pytorch, tmp_path):
    answer = gpu("l4", "--allocator", "caching", python=pytorch, program="""
import torch
x, graph = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
print("captured")
""")
    assert [run["verdict"] for run in answer.figures["allocators"]] == ["fits", "failed"]
    output = next(tmp_path.rglob("allocator-1/output.txt")).read_text()
    assert "captured" not in output
    assert "the program captures a CUDA graph" in output


@pytest.mark.parametrize("allocator,complaint", [
    ("cashing", "did you mean"),
    ("caching(max_split=1MiB)", "max_split"),
    ("guard(backward=1GiB)|caching", "guard needs to know the role and phase"),
    ("limit(1GiB)|planned", "planned needs to know which blocks outlast a step"),
])
def test_an_allocator_that_cannot_serve_is_refused_at_once(gpu, allocator, complaint):
    answer = gpu("rtx4090", "--allocator", allocator, program="print('started')")
    assert answer.status == 2
    assert "--allocator: " in answer.errors and complaint in answer.errors
    assert "started" not in answer.output


@pytest.fixture
def on_cpu(tmp_path, pytorch):
    """on_cpu(program, *options): runs it with `headroom capture`. The CUDA wheel needs the outer virtual GPU to
    be imported at all; capture finds no GPU."""
    return lambda program, *options: captured_in(tmp_path, pytorch, program, options)


def captured_in(place, pytorch, program, options):
    script, records = place / "train.py", place / "captured"
    script.write_text(program)
    done = subprocess.run(
        [HEADROOM, "gpu", "rtx4090", "--until-step", "all", "--out", str(place / "outside"), "--", "env",
         "CUDA_VISIBLE_DEVICES=", "OMP_NUM_THREADS=1", HEADROOM, "capture", "--out", str(records), *options, "--",
         str(pytorch), str(script), "cpu"],
        capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    figures = json.loads((records / "gpu.json").read_text())
    outputs = [path.read_text() for path in sorted(records.glob("allocator-*-round-1/output.txt"))]
    return figures, outputs, done.stdout + done.stderr


SERVED_ON_CPU = ["caching", "bfc(growth=on)", "tlsf", "poison|bfc(growth=on)"]


@pytest.fixture(scope="module")
def served_cpu(tmp_path_factory, pytorch):
    """TRAIN on the CPU with PyTorch's own allocator and with each of SERVED_ON_CPU, and the recorded history."""
    place = tmp_path_factory.mktemp("cpu")
    captured = captured_in(place, pytorch, TRAIN, [*each(SERVED_ON_CPU), "--capacity", "1GiB"])
    return *captured, place / "captured" / captured[0]["frameworks"][0]["snapshot"]


@pytest.mark.parametrize("allocator", SERVED_ON_CPU[:3])
def test_what_a_cpu_is_served_is_what_replay_foretells(served_cpu, allocator):
    figures, _, said, snapshot = served_cpu
    served = by_allocator(figures)[allocator]
    assert [served[size] for size in SIZES] == replayed(snapshot, allocator, 2**30), said


def test_training_on_the_cpu_gives_the_same_losses(served_cpu):
    figures, (own, *served), said, _ = served_cpu
    assert own.count("loss") == 4
    assert served == [own] * len(SERVED_ON_CPU), said
    assert all(run["peak_resident_bytes"] > 0 for run in figures["allocators"])


@pytest.fixture(scope="module")
def full_cpu(tmp_path_factory, pytorch):
    """REFUSED and a few steps on the CPU with PyTorch's own allocator and with caching, in three rounds."""
    return captured_in(tmp_path_factory.mktemp("full"), pytorch, REFUSED + """
layer = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(layer.parameters())
for _ in range(3):
    layer(torch.ones(512, 512)).sum().backward()
    optimizer.step()
""", ["--allocator", "caching", "--capacity", "500MiB", "--rounds", "3"])


def test_a_cpu_that_is_full_ends_in_pytorchs_own_error(full_cpu):
    figures, (_, served), _ = full_cpu
    assert "refused: DefaultCPUAllocator: can't allocate memory: you tried to allocate 943718400 bytes" in served
    assert "goes on with 1000" in served
    assert figures["allocators"][1]["verdict"] == "fits"


def test_threads_and_forked_workers_are_served(on_cpu):
    _, (own, served), said = on_cpu("""
import threading
import torch
data = torch.utils.data.TensorDataset(torch.arange(4000.0).reshape(1000, 4))
total = [0.0] * 4
def work(which):
    for seed in range(200):
        total[which] += float(torch.full((seed * 97 % 5000 + 1,), 1.0).sum())
threads = [threading.Thread(target=work, args=[which]) for which in range(4)]
for thread in threads:
    thread.start()
batches = [batch.sum().item() for (batch,) in torch.utils.data.DataLoader(data, 100, num_workers=2)]
for thread in threads:
    thread.join()
print(sum(batches), total)
""", "--allocator", "poison|caching", "--capacity", "1GiB")
    assert own == served, said
    assert own.strip()


def test_rounds_compare_the_time_of_a_step(full_cpu):
    figures, _, said = full_cpu
    for run in figures["allocators"]:
        assert len(run["step_us_of_rounds"]) == 3 and min(run["step_us_of_rounds"]) > 0
    assert " ms" in said and "ratio" in said
