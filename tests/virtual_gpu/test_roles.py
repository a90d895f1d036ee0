"""The role of memory in training programs of several kinds. Expected bytes follow from the sizes of tensors."""

import pytest
from conftest import MIB


def roles_of(answer, status=0):
    assert answer.status == status, answer.output + answer.errors
    device = answer.figures["frameworks"][0]["devices"][0]
    return {share["name"]: share["bytes"] for share in device["roles"]}


def library(name, text):
    """Returns the first lines of a program for which `text` is installed as the file `name`."""
    return f"""
import pathlib, sys, tempfile
place = tempfile.TemporaryDirectory()
sys.path.insert(0, place.name)
installed = pathlib.Path(place.name, {name!r})
installed.parent.mkdir(parents=True, exist_ok=True)
installed.write_text({text!r})
"""


@pytest.mark.program("""
import copy
import torch
def main():
    frozen = torch.nn.Linear(1024, 1024, bias=False).cuda().requires_grad_(False)
    head = torch.nn.Linear(1024, 1024, bias=False).cuda()
    average = copy.deepcopy(head)
    optimizer = torch.optim.SGD(head.parameters())
    for _ in range(2):
        head(frozen(torch.randn(64, 1024, device="cuda"))).sum().backward()
        optimizer.step()
        with torch.no_grad():
            average.weight.lerp_(head.weight, 0.01)
main()
""")
def test_weights_that_no_optimizer_changes_are_weights(recorded):
    assert recorded.roles["weights"] == 3 * 4 * MIB


@pytest.mark.program("""
import gc
import torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 1024, bias=False), torch.nn.Linear(1024, 8, bias=False)).cuda()
model[0].requires_grad_(False)
gc.freeze()
optimizer = torch.optim.SGD(model[1].parameters())
for _ in range(2):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
""")
def test_weights_that_are_hidden_from_the_garbage_collector_are_weights_of_their_module(recorded):
    assert recorded.roles["weights"] == 4 * MIB + 4 * 8 * 1024
    modules = {module["name"]: module["roles"] for module in recorded.devices[0]["modules"]}
    assert modules["model.0"]["weights"] == 4 * MIB


@pytest.mark.program("""
import gc
import torch
weight = torch.zeros(8, device="cuda")
print(gc.isenabled(), len(gc.get_objects()) < 50_000)
""")
def test_what_the_import_of_pytorch_made_is_not_searched_for_garbage(recorded):
    assert recorded.printed == ["True True"]


@pytest.mark.program(library("jax.py", "") + """
import gc
import torch
class Holder:
    pass
holder = Holder()
holder.itself, holder.tensor = holder, torch.zeros(1 << 20, device="cuda")
del holder
try:
    import jax
except ImportError:  # an empty file is not all of JAX
    pass
gc.collect()
print(torch.cuda.memory_allocated())
""")
def test_memory_is_freed_by_the_garbage_collector_also_after_the_import_of_another_framework(recorded):
    assert recorded.printed == ["0"]


@pytest.mark.program("""
import torch
def main():
    model = torch.nn.Linear(1024, 1024, bias=False).cuda()
    for _ in range(2):
        model.zero_grad()
        model(torch.randn(64, 1024, device="cuda")).sum().backward()
        torch.zeros(8 << 20, device="cuda")  # the peak is beside the gradients
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-0.1)
main()
""")
def test_weights_and_gradients_are_told_where_no_optimizer_is_used(recorded):
    roles = recorded.roles
    assert roles["weights"] == roles["gradients"] == 4 * MIB


@pytest.mark.program("""
import torch
model = torch.nn.Linear(1024, 1024, bias=False, device="cuda", dtype=torch.bfloat16)
model.weight.main_grad = torch.zeros(4 << 20, device="cuda")[:1 << 20].view(1024, 1024)  # of a larger buffer
updated = model.weight.detach().float()
optimizer = torch.optim.SGD([updated], momentum=0.9)
for _ in range(2):
    model(torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)).sum().backward()
    model.weight.main_grad.add_(model.weight.grad)
    model.weight.grad, updated.grad = None, model.weight.main_grad.clone()
    optimizer.step()
""")
def test_gradients_that_are_summed_in_a_buffer_of_megatron_are_gradients(recorded):
    assert recorded.roles["gradients"] == 16 * MIB + 4 * MIB


FASTAI = """
from collections import defaultdict
class Optimizer:
    def __init__(self, parameters, callbacks):
        self.param_lists, self.cbs, self.state = [list(parameters)], callbacks, defaultdict(dict)
    @property
    def param_groups(self):
        return [{"params": parameters} for parameters in self.param_lists]
    def step(self, closure=None):
        for parameter in self.param_lists[0]:
            for callback in self.cbs:
                self.state[parameter].update(callback(parameter, **self.state[parameter]))
        return "stepped"
"""


@pytest.mark.program(library("fastai/optimizer.py", FASTAI) + """
import torch
from fastai.optimizer import Optimizer
def average_grad(parameter, grad_avg=None):
    grad_avg = torch.zeros_like(parameter) if grad_avg is None else grad_avg
    return {"grad_avg": grad_avg.mul_(0.9).add_(parameter.grad)}
def momentum_step(parameter, grad_avg):
    parameter.data.add_(grad_avg, alpha=-0.1)
    return {}
def main():
    model = torch.nn.Linear(1024, 1024, bias=False).cuda()
    optimizer = Optimizer(model.parameters(), [average_grad, momentum_step])
    for _ in range(3):
        model(torch.randn(64, 1024, device="cuda")).sum().backward()
        assert optimizer.step() == "stepped"
        torch.zeros(8 << 20, device="cuda")  # the peak is beside the gradients
main()
""")
def test_optimizers_of_fastai_count_and_have_their_state(recorded):
    """A file with the interface of fastai's own optimizers, which are no subclasses of PyTorch's."""
    roles = recorded.roles
    assert roles["weights"] == roles["gradients"] == roles["optimizer state"] == 4 * MIB
    assert recorded.steps == 3


@pytest.mark.program("""
import torch
def main():
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(4)]).cuda()
    optimizers = [torch.optim.Adam([parameter], foreach=False) for parameter in model.parameters()]
    for _ in range(3):
        model(torch.randn(64, 1024, device="cuda")).sum().backward()
        torch.zeros(8 << 20, device="cuda")  # the peak is beside the gradients
        for optimizer in optimizers:
            optimizer.step()
main()
""")
def test_one_optimizer_per_parameter_makes_one_step_after_a_backward_pass(recorded):
    """So does Pyro's optimizer. Matrices are often trained by Muon, and the rest by AdamW."""
    roles = recorded.roles
    assert roles["weights"] == roles["gradients"] == 16 * MIB
    assert roles["optimizer state"] == 32 * MIB
    assert recorded.steps == 3


@pytest.mark.program("""
import torch
one, other = (torch.nn.Linear(8, 8).cuda() for _ in range(2))
optimizers = [torch.optim.SGD(layer.parameters()) for layer in (one, other)]
for _ in range(2):
    for layer, optimizer in zip((one, other), optimizers):
        layer(torch.ones(4, 8, device="cuda")).sum().backward()
        optimizer.step()
for _ in range(2):
    for parameter in other.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizers[1].step()
""")
def test_steps_after_several_backward_passes_or_after_none_count_each(recorded):
    """As those of the two networks of a GAN, and of gradients that the program calculates itself."""
    assert recorded.steps == 6


def test_gradients_are_told_where_the_backward_pass_ran_out_of_memory(gpu, pytorch):
    """Six weights of 16 MiB. The first step trains three of them; in the second one, the gradients of the
    others do not fit."""
    answer = gpu("rtx4090", "--memory", "222MiB", python=pytorch, program="""
import torch
layers = torch.nn.ModuleList(torch.nn.Linear(2048, 2048, bias=False) for _ in range(6)).cuda()
optimizer = torch.optim.SGD(layers.parameters(), momentum=0.9)
for depth in (3, 6):
    x = torch.randn(16, 2048, device="cuda")
    for layer in layers[:depth]:
        x = layer(x)
    x.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
    roles = roles_of(answer, status=3)
    assert answer.figures["frameworks"][0]["steps"] == 1
    assert (roles["weights"], roles["optimizer state"]) == (96 * MIB, 48 * MIB)
    assert roles["gradients"] >= 16 * MIB


@pytest.mark.program("""
import torch
model = torch.nn.Linear(1024, 1024, bias=False).cuda()
optimizer = torch.optim.SGD(model.parameters())
for step in range(12):
    model(torch.randn(16, 1024, device="cuda")).sum().backward()
    model(torch.randn(16384 if step == 10 else 16, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
def test_gradients_are_told_where_a_late_step_has_the_peak(recorded):
    assert recorded.roles["gradients"] == 4 * MIB


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.program("""
import torch
from torch.utils.checkpoint import checkpoint
layers = [torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512)).cuda()
          for _ in range(6)]
x = torch.randn(4096, 512, device="cuda", requires_grad=True)
for layer in layers:
    x = checkpoint(layer, x, use_reentrant=reentrant)
x.sum().backward()
""")
def test_what_checkpointing_keeps_are_activations(recorded, reentrant):
    # The inputs of the second to sixth layer and the result, until the backward pass frees the last input.
    assert 5 * 8 * MIB <= recorded.roles["activations"] <= 6 * 8 * MIB


@pytest.mark.program("""
import torch
model = torch.compile(torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda(),
                      backend="aot_eager")
model(torch.randn(4096, 512, device="cuda")).sum().backward()
""")
def test_what_compiled_code_keeps_are_activations(recorded):
    assert recorded.roles["activations"] == 4 * 8 * MIB


@pytest.mark.program("""
import torch
model = torch.nn.Linear(64, 16384, bias=False).cuda()
targets = torch.zeros(1024, dtype=torch.long, device="cuda")
logits = model(torch.randn(1024, 64, device="cuda"))
torch.nn.functional.cross_entropy(logits, targets).backward()
""")
def test_what_a_loss_outside_of_modules_keeps_is_an_activation(recorded):
    # The logits and the logarithms of their softmax, and the sum of the weights of the targets.
    assert 128 * MIB <= recorded.roles["activations"] < 129 * MIB


def test_what_a_forward_pass_held_when_memory_ran_out_are_activations(gpu, pytorch):
    roles = roles_of(gpu("rtx4090", "--memory", "200MiB", python=pytorch, program="""
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512, bias=False) for _ in range(8)]).cuda()
for batch in (16384, 1024):
    try:
        model(torch.randn(batch, 512, device="cuda")).sum().backward()
    except torch.OutOfMemoryError:
        print("halved")
"""))
    assert roles["activations"] >= 64 * MIB


@pytest.mark.program("""
import os, tempfile
import torch
torch.cuda.memory._record_memory_history(max_entries=10)
model = torch.nn.Linear(1024, 1024, bias=False).cuda()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(3):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
own = tempfile.NamedTemporaryFile()
torch.cuda.memory._dump_snapshot(own.name)
torch.cuda.memory._record_memory_history(enabled=None)
print(os.path.getsize(own.name) > 1000)
""")
def test_a_program_that_records_its_own_history_is_told_about_as_well(recorded):
    assert recorded.roles["weights"] == 4 * MIB
    assert recorded.printed == ["True"]


@pytest.mark.program("""
import torch
table = torch.nn.Embedding(100_000, 64, sparse=True).cuda()
optimizer = torch.optim.SparseAdam(table.parameters())
for _ in range(3):
    table(torch.arange(8192).cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
def test_sparse_gradients_are_gradients(recorded):
    roles = recorded.roles
    assert roles["weights"] == 100_000 * 64 * 4
    assert roles["optimizer state"] == 2 * roles["weights"]


@pytest.mark.program("""
import torch
class Causal(torch.nn.Linear):
    def __init__(self):
        super().__init__(1024, 1024, bias=False)
        self.register_buffer("mask", torch.ones(2048, 1024).tril())
model = torch.nn.Sequential(Causal(), torch.nn.Linear(1024, 1024, bias=False)).cuda()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(2):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
""")
def test_buffers_are_told_and_belong_to_their_module(recorded):
    roles = recorded.roles
    assert (roles["weights"], roles["buffers"]) == (2 * 4 * MIB, 8 * MIB)
    modules = recorded.devices[0]["modules"]
    assert {"model.0": 8 * MIB, "model.1": 0} == {
        module["name"]: module["roles"].get("buffers", 0) for module in modules if module["name"].startswith("model.")}


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.program("""
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512, bias=False) for _ in range(4)]).cuda()
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=5, line_search_fn=search)
x = torch.randn(64, 512, device="cuda")
def closure():
    optimizer.zero_grad()
    loss = (model(x) - 1).pow(2).mean()
    loss.backward()
    return loss
for _ in range(3):
    optimizer.step(closure)
print(optimizer.param_groups[0]["tolerance_grad"])
""")
def test_lbfgs_keeps_its_whole_history(recorded, search):
    """It keeps two lists of five vectors, each as long as all weights together, and two more. Up to two of those that
    it has just dropped are still there at the peak."""
    assert 12 * 4 * MIB <= recorded.roles["optimizer state"] < 15 * 4 * MIB
    assert recorded.printed == ["1e-07"]


@pytest.mark.program("""
import torch
class Projection:
    def __init__(self, weight):
        self.weight, self.matrices = weight, [torch.linalg.svd(weight.grad)[2][:128]]
class Projected(torch.optim.SGD):
    def step(self, closure=None):
        for weight in self.param_groups[0]["params"]:
            if not self.state[weight]:
                self.state[weight]["projection"] = Projection(weight)
layer = torch.nn.Linear(1024, 1024, bias=False).cuda()
optimizer = Projected(layer.parameters())
for _ in range(3):
    layer(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
""")
def test_what_an_object_in_the_state_of_an_optimizer_holds_is_state(recorded):
    """GaLore and APOLLO keep projections so. Here, one is a part of a larger matrix."""
    assert recorded.roles["weights"] == recorded.roles["optimizer state"] == 4 * MIB


def test_an_optimizer_that_could_not_be_made_does_not_hide_what_was_held(gpu, pytorch):
    answer = gpu("rtx4090", python=pytorch, program="""
import torch
model = torch.nn.Linear(1024, 1024, bias=False).cuda()
torch.optim.Adam(model.parameters(), lr=-1)
""")
    assert roles_of(answer, status=1)["weights"] == 4 * MIB
    assert "Invalid learning rate" in answer.figures["frameworks"][0]["error"]


@pytest.mark.program("""
import os
import torch
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":1024:3"
model = torch.nn.Linear(64, 64).cuda()
model(torch.ones(8, 64, device="cuda")).sum().backward()
""")
def test_what_cublas_takes_to_work_is_a_workspace(recorded):
    assert recorded.roles["workspaces"] == 3 * MIB


@pytest.mark.program("""
import torch
model = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
model(torch.ones(8, 64, 56, 56, device="cuda")).sum().backward()
""")
def test_what_cudnn_takes_to_work_is_a_workspace(recorded):
    assert recorded.roles["workspaces"] > 0
