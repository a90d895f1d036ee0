"""The role of memory in training programs of several kinds. Expected bytes follow from the sizes of tensors."""

import pytest
from conftest import MIB


def roles_of(answer, status=0):
    assert answer.status == status, answer.output + answer.errors
    device = answer.figures["frameworks"][0]["devices"][0]
    return {share["name"]: share["bytes"] for share in device["roles"]}


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_checkpointing_keeps_are_activations(gpu, pytorch, reentrant):
    roles = roles_of(gpu("rtx4090", python=pytorch, program=f"""
import torch
from torch.utils.checkpoint import checkpoint
layers = [torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512)).cuda()
          for _ in range(6)]
x = torch.randn(4096, 512, device="cuda", requires_grad=True)
for layer in layers:
    x = checkpoint(layer, x, use_reentrant={reentrant})
x.sum().backward()
"""))
    # The inputs of the second to sixth layer and the result, until the backward pass frees the last input.
    assert 5 * 8 * MIB <= roles["activations"] <= 6 * 8 * MIB


def test_what_compiled_code_keeps_are_activations(gpu, pytorch):
    roles = roles_of(gpu("rtx4090", python=pytorch, program="""
import torch
model = torch.compile(torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda(),
                      backend="aot_eager")
model(torch.randn(4096, 512, device="cuda")).sum().backward()
"""))
    assert roles["activations"] == 4 * 8 * MIB


def test_what_a_loss_outside_of_modules_keeps_is_an_activation(gpu, pytorch):
    roles = roles_of(gpu("rtx4090", python=pytorch, program="""
import torch
model = torch.nn.Linear(64, 16384, bias=False).cuda()
targets = torch.zeros(1024, dtype=torch.long, device="cuda")
logits = model(torch.randn(1024, 64, device="cuda"))
torch.nn.functional.cross_entropy(logits, targets).backward()
"""))
    # The logits and the logarithms of their softmax, and the sum of the weights of the targets.
    assert 128 * MIB <= roles["activations"] < 129 * MIB


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
