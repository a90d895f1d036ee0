"""Operators of PyTorch, with the samples of PyTorch's own tests. Skipped unless `scripts/setup --with pytorch` has been
run."""

import random

PROGRAM = """
import random
import sys
import types
import unittest
import torch
from torch.utils import _pytree
sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)  # of tests that do not run here
from torch.testing._internal.common_methods_invocations import op_db

OTHER = {  # not compared, because of what PyTorch does on the virtual GPU
    "as_strided.partial_views": "its samples are parts of a larger tensor",
    "index_fill.": "refuses the gradient of an empty index into a scalar",
    "linalg.eig.": "refuses an empty batch",
    "linalg.eigvals.": "refuses an empty batch",
    "native_batch_norm.": "returns the statistics in evaluation as well",
    "_native_batch_norm_legit.": "returns the statistics in evaluation as well",
}
NOT_ON_A_GPU = ("not supported on CUDA", "to be on cpu", "not implemented for", "Could not run")


def tensors(values):
    return [value for value in _pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]


def on_gpu(values):
    def copy(value):
        is_tensor = isinstance(value, torch.Tensor)
        return value.detach().cuda().requires_grad_(value.requires_grad) if is_tensor else value
    return _pytree.tree_map(copy, values)


def trained(operator, tensor, arguments, options):
    results = operator(tensor, *arguments, **options)
    losses = [result.sum() for result in tensors(results) if result.requires_grad and result.is_floating_point()]
    if losses:
        sum(losses).backward()
    return [(tuple(result.shape), result.dtype) for result in tensors(results)]


random.seed(SEED)
torch.manual_seed(SEED)
compared = 0
for operator in random.sample([one for one in op_db if torch.float32 in one.supported_dtypes("cuda")], 100):
    name = operator.name + "." + operator.variant_test_name
    samples = operator.sample_inputs("cpu", torch.float32, requires_grad=operator.supports_autograd)
    for sample, _ in zip(samples, range(9)) if name not in OTHER else ():
        try:
            expected = trained(operator, sample.input, sample.args, sample.kwargs)
        except Exception:
            continue  # this sample is not for a CPU
        options = {key: "cuda" if key == "device" else on_gpu(value) for key, value in sample.kwargs.items()}
        try:
            found = trained(operator, on_gpu(sample.input), on_gpu(sample.args), options)
        except Exception as error:
            if any(words in str(error) for words in NOT_ON_A_GPU):
                continue
            found = error
        compared += 1
        if found != expected:
            print("differs:", name, found, "for", expected)
print("compared:", compared)
"""


def test_results_of_operators_have_the_shapes_that_they_have_on_a_cpu(gpu, pytorch):
    seed = random.randrange(1 << 32)
    answer = gpu("h200", python=pytorch, program=PROGRAM.replace("SEED", str(seed)))
    lines = answer.output.splitlines()
    assert not [line for line in lines if line.startswith("differs:")], f"seed {seed}: {answer.output}"
    assert int(next(line for line in lines if line.startswith("compared:")).split()[1]) > 100, answer.errors
