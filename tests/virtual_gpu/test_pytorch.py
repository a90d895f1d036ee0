"""PyTorch's ordinary wheel on the virtual GPU. Skipped unless `scripts/setup --with pytorch` has been run."""

import random
import re
import subprocess
from pathlib import Path

import pytest
from conftest import HEADROOM, MIB

TRAIN = """
import sys
import torch
width, steps = int(sys.argv[1]), int(sys.argv[2])
model = torch.nn.Sequential(*[torch.nn.Linear(width, width, bias=False) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(steps):
    batch = torch.randn(64, width, device="cuda")
    model(batch).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("allocated", torch.cuda.max_memory_allocated(), "reserved", torch.cuda.max_memory_reserved())
"""


def roles(answer):
    device = answer.figures["frameworks"][0]["devices"][0]
    return {share["name"]: share["bytes"] for share in device["roles"]}


@pytest.fixture(scope="module")
def width():
    return random.randrange(1024, 2048, 128)


@pytest.fixture(scope="module")
def trained(shared_gpu, pytorch, width):
    answer = shared_gpu("rtx4090", "--html", program=TRAIN, python=pytorch, arguments=[str(width), "3"])
    assert answer.status == 0, answer.errors
    return answer


def test_weights_gradients_and_optimizer_state_are_told_apart_to_the_byte(trained, width):
    weights = 4 * width * width * 4
    found = roles(trained)
    assert found["weights"] == weights, width
    # Adam keeps a step count of each weight on the host and two moments on the device.
    assert found["optimizer state"] == 2 * weights, width
    assert found["gradients"] <= weights


def test_the_roles_add_up_to_what_pytorch_says_it_allocated(trained):
    device = trained.figures["frameworks"][0]["devices"][0]
    assert sum(roles(trained).values()) == device["peak_allocated_bytes"]


def test_counters_of_pytorch_and_the_ledger_agree(trained):
    said = trained.output.split()
    device = trained.figures["frameworks"][0]["devices"][0]
    assert int(said[said.index("allocated") + 1]) == device["peak_allocated_bytes"]
    assert int(said[said.index("reserved") + 1]) == device["peak_reserved_bytes"]
    assert device["peak_reserved_bytes"] == trained.figures["peak_bytes"]


def test_the_program_stops_at_the_step_it_was_told(gpu, pytorch):
    answer = gpu("rtx4090", "--until-step", "2", program=TRAIN, python=pytorch,
                 arguments=["256", "1000"])
    framework = answer.figures["frameworks"][0]
    assert (framework["steps"], framework["stopped_at_step"]) == (2, True)
    assert answer.status == 0


def test_a_program_that_looks_for_pytorch_before_it_imports_it_is_recorded(gpu, pytorch):
    """As libraries do to see whether PyTorch is installed, such as datasets and transformers."""
    answer = gpu("rtx4090", "--until-step", "2", python=pytorch, arguments=["256", "1000"], program="""
import importlib.util
print(importlib.util.find_spec("torch").name, importlib.util.find_spec("torch.optim.optimizer").name)
""" + TRAIN)
    assert answer.status == 0, answer.errors
    assert answer.figures["frameworks"][0]["steps"] == 2


@pytest.mark.parametrize("device, status", [("cpu", 2), ("nothing that is a device", 1)])
def test_a_build_of_pytorch_without_cuda_is_named_with_what_to_install(gpu, pytorch, device, status):
    """The program itself says that its build has no CUDA."""
    answer = gpu("l4", "--until-step", "3", python=pytorch, environment={"CUDA_VISIBLE_DEVICES": ""}, program=f"""
import torch
torch.version.cuda = None
weight = torch.zeros(4, requires_grad=True, device={device!r})
optimizer = torch.optim.SGD([weight])
for _ in range(9):
    weight.sum().backward()
    optimizer.step()
    print("a step")
""")
    assert answer.status == status
    assert answer.output.count("a step") == (2 if device == "cpu" else 0)
    assert "is a build without CUDA, which uses no GPU" in answer.output
    assert "pip install --force-reinstall torch==" in answer.output


def test_a_program_that_fails_before_it_allocates_has_no_history_to_replay(gpu, pytorch):
    answer = gpu("l4", python=pytorch, program="import torch; torch.cuda.init(); raise ValueError('of the program')")
    assert answer.first_line.startswith("FAILED: the program ended with status 1 before any optimizer step of PyTorch")
    assert "\n  ValueError: of the program\n" in answer.output
    assert "headroom replay" not in answer.output


def test_an_error_whose_first_line_ends_in_a_colon_is_told_with_the_next_line(gpu, pytorch):
    answer = gpu("l4", python=pytorch, program=r"""
import torch
torch.cuda.init()
raise ValueError('the compiler raised:\n\nNo such kernel')
""")
    assert "\n  ValueError: the compiler raised: No such kernel\n" in answer.output


def test_a_program_that_asks_for_a_gpu_that_is_not_there_is_told_how_to_get_it(gpu, pytorch):
    answer = gpu("l4", python=pytorch, program="import torch; torch.ones(1, device='cuda:1')")
    assert answer.status == 1
    assert "CUDA error: invalid device ordinal\n  The program asked for a GPU that is not there: --gpus N" in answer.output


def test_out_of_memory_is_an_answer_in_pytorchs_own_words(gpu, pytorch):
    answer = gpu("rtx4090", "--memory", "200MiB", program=TRAIN, python=pytorch,
                 arguments=["2048", "3"])
    assert answer.status == 3
    assert answer.first_line.startswith("DOES NOT FIT on rtx4090 (200.00 MiB): out of memory before any optimizer step of")
    assert "CUDA out of memory. Tried to allocate" in answer.output
    assert "program.py:" in answer.output


def test_an_out_of_memory_that_the_program_survives_is_no_failure(gpu, pytorch):
    answer = gpu("rtx4090", "--memory", "200MiB", python=pytorch, program="""
import torch
kept = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
try:
    torch.empty(1 << 30, device="cuda")
except torch.OutOfMemoryError:
    print("went on")
""")
    assert "went on" in answer.output
    assert answer.status == 0, answer.errors
    assert answer.figures["frameworks"][0]["out_of_memory"][0]["requested_bytes"] == 4 << 30
    assert "It ran out of memory 1 time and went on. The peak includes these attempts." in answer.output
    assert re.search(r"The last request was for 4.00 GiB at .*program.py:5\n", answer.output)


TAKES_TOO_MUCH = """
import sys
import torch
import torch.multiprocessing as mp
def train(*_):
    kept = torch.nn.Linear(1024, 1024, bias=False).cuda()
    torch.zeros(1 << 40, device="cuda")
if __name__ == "__main__":
"""
IN_A_CHILD = "child = mp.get_context(METHOD).Process(target=train); child.start(); child.join(); " \
    "sys.exit(child.exitcode)"


@pytest.mark.parametrize("ending", [
    "sys.excepthook = lambda *_: print('shown in its own way'); train()",
    "try:\n        train()\n    except RuntimeError as error:\n        print(error); sys.exit(1)",
    "mp.spawn(train, nprocs=1)",
    IN_A_CHILD.replace("METHOD", "'spawn'"),
    IN_A_CHILD.replace("METHOD", "'fork'"),
], ids=["shown by the program", "caught", "spawned and joined", "spawned", "forked"])
def test_out_of_memory_is_an_answer_however_the_program_ends(gpu, pytorch, ending):
    answer = gpu("rtx4090", python=pytorch, program=TAKES_TOO_MUCH + "    " + ending)
    assert answer.status == 3, answer.output + answer.errors
    assert roles(answer)["weights"] == 4 * MIB


def test_a_program_that_outlives_a_process_without_memory_is_no_failure(gpu, pytorch):
    """As programs do that try configurations in processes of their own."""
    answer = gpu("rtx4090", python=pytorch, program=TAKES_TOO_MUCH + "    " + IN_A_CHILD.replace(
        "METHOD", "'spawn'").replace("child.exitcode", "0"))
    assert answer.status == 0, answer.output + answer.errors


IN_THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor
import torch
def train(elements=1 << 40):
    kept = torch.nn.Linear(1024, 1024, bias=False).cuda()
    torch.zeros(elements, device="cuda")
def in_a_thread():
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
def in_futures(elements):
    with ThreadPoolExecutor(1) as threads:
        return [threads.submit(train, count) for count in elements]
"""


@pytest.mark.parametrize("ending", [
    "in_a_thread()",
    "in_a_thread(); train(1)",
    "in_a_thread(); {}['what the thread would have made']",
    "in_futures([1 << 40])",
], ids=["the end", "something else", "an error that follows", "a future that is not asked"])
def test_an_out_of_memory_in_a_thread_that_the_program_outlives_is_an_answer(gpu, pytorch, ending):
    answer = gpu("rtx4090", python=pytorch, program=IN_THREADS + ending)
    assert answer.status == 3, answer.output + answer.errors
    assert "CUDA out of memory. Tried to allocate 4096.00 GiB" in answer.output
    assert "program.py:7" in answer.output


@pytest.mark.parametrize("ending", [
    """
def smaller():
    try:
        train()
    except torch.OutOfMemoryError:
        train(1)
thread = threading.Thread(target=smaller)
thread.start()
thread.join()
""",
    """
for done in in_futures([1 << 40, 1]):
    if done.exception() is None:
        break
    print("too much")
""",
    """
threading.excepthook = lambda arguments: print("too much")
in_a_thread()
train(1)
""",
], ids=["caught", "asked", "handled"])
def test_a_program_that_goes_on_with_less_after_a_thread_had_too_little_is_no_failure(gpu, pytorch, ending):
    answer = gpu("rtx4090", python=pytorch, program=IN_THREADS + ending)
    assert answer.status == 0, answer.output + answer.errors
    assert answer.figures["frameworks"][0]["out_of_memory"]


def test_an_out_of_memory_that_a_process_passes_on_is_an_answer(gpu, pytorch):
    answer = gpu("rtx4090", python=pytorch, program=TAKES_TOO_MUCH + """
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as processes:
        processes.submit(train).result()
""")
    assert answer.status == 3, answer.output + answer.errors
    assert "CUDA out of memory. Tried to allocate" in answer.output


def test_a_smaller_card_than_the_peak_does_not_serve(gpu, pytorch, trained, width):
    """The verdict agrees with the peak: with 2 MiB less than was reserved the program does not fit, unless
    the allocator manages with less, which PyTorch then shows by reserving less."""
    peak, arguments = trained.figures["peak_bytes"], [str(width), "3"]
    enough = gpu("rtx4090", "--memory", str(peak), program=TRAIN, python=pytorch,
                 arguments=arguments)
    assert enough.status == 0
    less = gpu("rtx4090", "--memory", str(peak - 2 * MIB), program=TRAIN, python=pytorch,
               arguments=arguments)
    assert less.status == 3 or less.figures["peak_bytes"] < peak


CONVOLUTION = """
import torch
layers = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3), torch.nn.BatchNorm2d(64)).cuda()
layers(torch.randn(16, 3, 56, 56, device="cuda")).sum().backward()
"""


@pytest.fixture(scope="module")
def convolved(shared_gpu, pytorch):
    answer = shared_gpu("a100-40gb", program=CONVOLUTION, python=pytorch)
    assert answer.status == 0, answer.errors
    return answer


def test_convolutions_ask_for_the_workspaces_that_cudnn_chooses(convolved):
    assert convolved.figures["cudnn_workspaces"] == "cuDNN's own heuristics"


def test_without_cudnn_the_workspaces_of_convolutions_are_not_known(gpu, pytorch):
    without = gpu("a100-40gb", "--cudnn", "none", program=CONVOLUTION, python=pytorch)
    assert without.figures["sizes_not_known"]


def test_convolution_and_batch_normalisation_leave_nothing_that_is_not_known(convolved):
    assert convolved.figures["sizes_not_known"] == {}


def test_workers_and_pinned_batches_do_not_disturb_the_figures(gpu, pytorch):
    answer = gpu("rtx4090", program="""
import torch
def main():
    data = torch.utils.data.TensorDataset(torch.randn(64, 1024))
    loader = torch.utils.data.DataLoader(data, batch_size=16, num_workers=2, pin_memory=True)
    model = torch.nn.Linear(1024, 1024, bias=False).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for (batch,) in loader:
        model(batch.to("cuda", non_blocking=True)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
if __name__ == "__main__":  # from Python 3.14 on, workers import the program
    main()
""", python=pytorch)
    assert answer.status == 0, answer.errors
    assert len(answer.figures["frameworks"]) == 1
    assert roles(answer)["weights"] == 1024 * 1024 * 4


@pytest.mark.parametrize("setting", ["expandable_segments:True", "max_split_size_mb:64"])
def test_settings_of_pytorchs_allocator_are_its_own(gpu, pytorch, setting):
    answer = gpu("rtx4090", program=TRAIN, python=pytorch, arguments=["1024", "3"],
                 environment={"PYTORCH_CUDA_ALLOC_CONF": setting})
    assert answer.status == 0, answer.errors
    device = answer.figures["frameworks"][0]["devices"][0]
    assert device["peak_reserved_bytes"] == answer.figures["peak_bytes"]


@pytest.mark.parametrize("recomputes", [False, True])
@pytest.mark.program("""
import torch
from torch.utils.checkpoint import checkpoint
layers = torch.nn.ModuleList(
    torch.nn.TransformerEncoderLayer(512, 8, batch_first=True) for _ in range(4)).cuda()
optimizer = torch.optim.AdamW(layers.parameters(), fused=True)
scaler = torch.amp.GradScaler("cuda")
for _ in range(3):
    x = torch.randn(8, 128, 512, device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False) if recomputes else layer(x)
        loss = x.float().pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
""")
def test_mixed_precision_and_checkpointing_train(recorded, recomputes):
    # Each layer keeps at least the input and the output of its ReLU, of which checkpointing keeps none.
    kept_by_all = 4 * 2 * 8 * 128 * 2048 * 2
    assert (recorded.roles.get("activations", 0) < kept_by_all) == recomputes


@pytest.mark.program("""
import torch
embedding = torch.nn.Embedding(1000, 64).cuda()
embedding(torch.randint(0, 1000, (8192,)).cuda()).sum().backward()
print(tuple(embedding.weight.grad.shape))
""")
def test_kernels_of_libraries_find_the_parameters_of_a_card_that_has_no_code_of_its_own(recorded):
    """PyTorch's wheels contain no code for 8.9, so such a card runs the code for 8.6. The gradient of an
    embedding sorts its indices by a library that looks up the parameters of that code."""
    assert recorded.printed == ["(1000, 64)"]


def test_the_snapshot_is_what_replay_reads(trained):
    snapshot = f"{trained.figures['directory']}/{trained.figures['frameworks'][0]['snapshot']}"
    replayed = subprocess.run([HEADROOM, "replay", snapshot, "--capacity", "4GiB", "--json"],
                              capture_output=True, text=True)
    assert replayed.returncode == 0, replayed.stderr


def test_the_page_draws_what_was_reserved(trained):
    page = (Path(trained.figures["directory"]) / "report.html").read_text()
    assert "page    " in trained.errors
    assert "It fits: " in page
    reserved = re.search(r'\{"name":"reserved","values":\[([^]]*)\]', page)[1].split(",")
    peak = trained.figures["peak_bytes"] / MIB
    assert abs(max(map(float, reserved)) - peak) < 0.01 * peak


def test_pytorch_counts_the_cards_by_nvml_and_calls_them_as_cuda_does(gpu, pytorch):
    answer = gpu("rtx4090", "--gpus", "2", python=pytorch, program="""
import torch
print("by NVML", torch.cuda._device_count_nvml(), torch.cuda.get_device_name())
""")
    assert "by NVML 2 NVIDIA GeForce RTX 4090\n" in answer.output


def test_the_allocator_of_the_driver_is_told_by_pytorchs_counters(gpu, pytorch):
    answer = gpu("h200", program=TRAIN, python=pytorch, arguments=["512", "3"],
                 environment={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
    assert answer.status == 0, answer.errors
    (framework,) = answer.figures["frameworks"]
    assert framework["steps"] == 3
    assert 0 < framework["devices"][0]["peak_allocated_bytes"] <= framework["devices"][0]["peak_reserved_bytes"]


@pytest.mark.parametrize("allocator", ["native", "cudaMallocAsync"])
def test_a_peak_counts_although_the_program_reset_it(gpu, pytorch, allocator):
    answer = gpu("h200", "--until-step", "all", python=pytorch,
                 environment={"PYTORCH_CUDA_ALLOC_CONF": f"backend:{allocator}"}, program="""
import torch
for size in (1_000_001, 40_000_001, 1_000_001):  # the allocator rounds them up
    torch.cuda.reset_peak_memory_stats()
    torch.zeros(size, dtype=torch.uint8, device="cuda")
    print(torch.cuda.max_memory_allocated())
torch.accelerator.reset_peak_memory_stats()
""")
    assert answer.status == 0, answer.errors
    small, large, again = [int(line) for line in answer.output.splitlines()[:3]]
    assert small == again < large
    assert answer.figures["frameworks"][0]["devices"][0]["peak_allocated_bytes"] == large


def test_gradients_of_filters_of_one_pixel_take_the_workspaces_that_an_h200_took(gpu, pytorch):
    answer = gpu("h200", python=pytorch, program="""
import torch
for channels, filters, pixels, measured in ((64, 64, 56, 524288), (64, 256, 56, 2097152), (128, 512, 28, 8388608)):
    images = torch.zeros(32, channels, pixels, pixels, device="cuda")
    gradients = torch.zeros(32, filters, pixels, pixels, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    torch.nn.grad.conv2d_weight(images, (filters, channels, 1, 1), gradients)
    taken = torch.cuda.memory_stats()["requested_bytes.all.peak"] - before - filters * channels * 4
    assert abs(taken - measured) <= 512, (channels, filters, taken)
""")
    assert answer.status == 0, answer.errors
