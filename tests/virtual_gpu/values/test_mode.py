"""How the mode that follows values lies among other things that observe or replace calls of PyTorch."""

import pytest
from conftest import printed_by


@pytest.mark.program("""
import torch
class Cut(torch.autograd.Function):
    @staticmethod
    def forward(context, data, lengths):
        context.save_for_backward(lengths)
        return data * 2
    @staticmethod
    def backward(context, gradient):
        lengths, = context.saved_tensors
        print((lengths + 1).tolist())
        return gradient, None
data = torch.randn(3, device="cuda", requires_grad=True)
Cut.apply(data, torch.tensor([1, 2, 3]).cuda()).sum().backward()
torch.autograd.grad(Cut.apply(data, torch.tensor([4, 5, 6]).cuda()).sum(), data)
torch.autograd.backward(Cut.apply(data, torch.tensor([7, 8, 9]).cuda()).sum())
""")
def test_values_are_known_in_the_backward_pass(printed):
    assert printed == ["[2, 3, 4]", "[5, 6, 7]", "[8, 9, 10]"]


def test_an_encoder_takes_the_fast_path_that_it_takes_on_a_real_card(gpu, pytorch):
    """The fast path holds less than the path of training; it is left if its inner calls are followed."""
    program = """
import torch
layer = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True)
encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda().eval()
batch = torch.randn(32, 128, 256, device="cuda")
def peak():
    torch.cuda.reset_peak_memory_stats()
    encoder(batch)
    return torch.cuda.max_memory_allocated()
with torch.no_grad():
    fast = peak()
    torch.backends.mha.set_fastpath_enabled(False)
    print(fast, peak() > fast)
"""
    followed, not_followed = (
        printed_by(gpu("rtx4090", python=pytorch, program=program, environment={"HEADROOM_GPU_VALUES": way}))
        for way in ("on", "off"))
    assert followed == not_followed
    assert followed[0].endswith("True")


@pytest.mark.program("""
import torch
torch.set_default_device("cuda")
scores = torch.randn(4, 100)
print(tuple(scores.topk(3)[1].shape), len(scores.argmax(1).unique()) > 1, len(torch.randperm(5).unique()))
print(bool(torch.isfinite(scores).all()), scores.sum().item())
torch.set_default_device(None)
""")
def test_values_are_followed_where_the_gpu_is_the_default_device(printed):
    assert printed == ["(4, 3) True 5", "True 0.0"]


@pytest.mark.program("""
import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, vmap
x = torch.randn(8, device="cuda")
print(*[tuple(f(torch.sin)(x).shape) for f in (jacfwd, jacrev)], tuple(hessian(lambda x: (x ** 3).sum())(x).shape))
model = torch.nn.Linear(8, 4).cuda()
def loss(weights, x):
    return functional_call(model, weights, x[None]).sum()
per_sample = vmap(grad(loss), (None, 0))(dict(model.named_parameters()), torch.randn(5, 8, device="cuda"))
print(tuple(per_sample["weight"].shape), *[tuple(vmap(f)(torch.randn(5, 8, device="cuda")).shape)
                                           for f in (torch.argmax, torch.argsort)])
""")
def test_functions_of_torch_func_run(recorded):
    assert recorded.printed == ["(8, 8) (8, 8) (8, 8)", "(5, 4, 8) (5,) (5, 8)"]


@pytest.mark.program("""
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
state = torch.cuda.get_rng_state()
with FakeTensorMode() as mode:
    print(state.is_quantized, mode.from_tensor(state).shape)
""")
def test_the_compiler_may_look_at_tensors_that_have_values(printed):
    assert printed == ["False torch.Size([16])"]


@pytest.mark.program("""
import torch
class Net(torch.nn.Module):
    def forward(self, x, mask):
        rows = torch.stack([x.sum(), x.mean()])
        chosen = torch.where(mask | (x > 0), torch.zeros_like(x), torch.full_like(x, 2.0))
        return torch.logical_or(mask, mask), rows, chosen
mask = torch.tensor([True, False, True])
print(torch.fx.symbolic_trace(Net())(torch.randn(3, device="cuda"), mask.cuda())[0].tolist())
""")
def test_a_program_is_traced_symbolically(printed):
    assert printed == ["[True, False, True]"]


@pytest.mark.program("""
import torch
from torch.overrides import handle_torch_function, has_torch_function_unary, has_torch_function_variadic
def doubled(x):
    if has_torch_function_unary(x):
        return handle_torch_function(doubled, (x,), x)
    assert x.is_cuda
    return torch.cat([x, x])
def joined(x, y):
    if has_torch_function_variadic(x, y):
        return handle_torch_function(joined, (x, y), x, y)
    assert x.is_cuda
    return torch.cat([x, y])
class Own(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
known = torch.arange(2).cuda()
with Own():
    print(joined(known, known).tolist())
print(doubled(known).tolist())
""")
def test_values_are_known_in_functions_of_libraries_that_modes_can_observe(printed):
    assert printed == ["[0, 1, 0, 1]"] * 2
