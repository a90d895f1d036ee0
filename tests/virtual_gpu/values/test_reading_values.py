"""Known values that a program reads as text, or that PyTorch's own Python code reads."""

import pytest
from conftest import printed_by


@pytest.mark.program("""
import torch
known = torch.arange(3, device="cuda") + 1
print(known, f"{known.sum()} {known.max() / 2:.1f}", 2 in known, 7 in known, torch.is_nonzero(known[0]), [known[2]])
large, unknown = torch.arange(2000, device="cuda") * 2, torch.randn(2, device="cuda")
print(str(large), unknown, f"{unknown[0]:.2f}", 2 in unknown, f"{known}" == str(known))
""")
def test_a_known_value_is_printed_as_on_a_card(printed):
    assert printed == [
        "tensor([1, 2, 3], device='cuda:0') 6 1.5 True False True [tensor(3, device='cuda:0')]",
        "tensor([   0,    2,    4,  ..., 3994, 3996, 3998], device='cuda:0') tensor([0., 0.], device='cuda:0') "
        "0.00 False True"]


@pytest.mark.program("""
import numpy, torch
known, host = torch.arange(3).cuda(), torch.arange(3)
for call in (known.numpy, lambda: numpy.array(known), lambda: known.masked_select(host > 1),
             lambda: torch.bincount(known, weights=host), lambda: known.repeat_interleave(host)):
    try:
        print(call())
    except (RuntimeError, TypeError) as error:
        print(str(error).split(",")[0].split(".")[0])
print(known.numpy(force=True))
""")
def test_known_values_on_a_gpu_and_tensors_of_the_host_do_not_mix(printed):
    to_numpy, others = "can't convert cuda:0 device type tensor to numpy", "Expected all tensors to be on the same device"
    assert printed == [to_numpy] * 2 + [others] * 3 + ["[0 1 2]"]


@pytest.mark.program("""
import torch
def shapes(device):
    parts = [torch.randn(3, 8, device=device), torch.randn(5, 8, device=device)]
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged, device=device)
    ends = torch.tensor([0, 3, 8]).to(device)
    lengths = torch.nested.nested_tensor_from_jagged(torch.randn(8, 4, device=device), lengths=ends.diff())
    heads = torch.nn.Linear(8, 32, device=device)(jagged).unflatten(-1, [4, 8]).transpose(1, 2)
    attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
    return [*jagged.unbind(), *lengths.unbind(), jagged.to_padded_tensor(0.0), jagged.mean(dim=1),
            *attended.transpose(1, 2).unbind()]
print([part.shape for part in shapes("cuda")] == [part.shape for part in shapes("cpu")])
""")
def test_jagged_tensors_have_parts_of_the_lengths_that_they_were_made_of(printed):
    assert printed == ["True"]


@pytest.mark.program("""
import torch
unknown = torch.randn(8, device="cuda")
distance, count = unknown.max() - unknown.min(), (unknown > 0).sum()
print(3 / distance.item() * 2, 5 / float(distance), 2.5 / count.item(), 7 // count.item(), 7 % (1 / distance).item())
exec("print(3 / distance.item(), 5 // count.item())")  # without a file
print(2 / len([1]), distance.item(), distance.item() / 2, "%.1f" % distance.item(), type(count.item()))
""")
def test_a_program_may_divide_by_what_it_reads_though_it_is_not_computed(printed):
    assert printed == ["6.0 5.0 2.5 7 0.0", "3.0 5", "2.0 0.0 0.0 0.0 <class 'int'>"]


@pytest.mark.program("""
import math, torch
from math import log10
def decibels(error):
    return 0 if error == 0 else -10 * math.log10(error)
class Mean:
    total = count = value = 0
    def add(self, value, times=1):
        self.total, self.count = self.total + value * times, self.count + times
        self.value = self.total / self.count
def train(mean):
    for _ in range(2):
        loss = torch.randn(8, device="cuda").square().mean()
        mse = loss.item()
        mean.add(loss.item(), 8)
        print(10 * log10(1 / math.sqrt(mse)), decibels(loss.item()), math.log(loss))
    return loss.item()
mean = Mean()
print(1 / train(mean), math.log(mean.value))
""")
def test_a_program_may_divide_later_by_a_number_that_is_not_computed(printed):
    assert printed == ["0.0 -0.0 0.0"] * 2 + ["1.0 0.0"]


@pytest.mark.program("""
import torch
class Counts:
    right = wrong = 0
    def add(self, hits):
        self.right += hits.sum().item()
        self.wrong += (~hits).sum().item()
    def precision(self):
        return self.right / (self.right + self.wrong)
def counts(hits):
    return hits.sum().item(), (~hits).sum().item()
positive, of_all = torch.randn(8, device="cuda") > 0, Counts()
of_all.add(positive)
right, wrong = counts(positive)
print(of_all.precision(), f"{right / (right + wrong):.2f}")
""")
def test_a_program_may_divide_later_by_a_count_that_is_no_size(printed):
    assert printed == ["0.5 0.50"]


@pytest.mark.program("""
import torch
positive = torch.randn(8, device="cuda") > 0
count = positive.sum().item()
print(0 if count == 0 else torch.randn(8, 2, device="cuda")[positive].view(count, 2).sum() / count)
""")
def test_a_number_of_what_a_mask_selects_stays_the_number_that_it_selects(printed):
    assert printed == ["0"]


@pytest.mark.program("""
import io, torch
model = torch.nn.Linear(4, 4).cuda()
file = io.BytesIO()
for foreach in True, False:
    optimizer = torch.optim.Adam(model.parameters(), foreach=foreach)
    for step in range(3):
        model(torch.randn(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        if step == 1:
            file.seek(0)
            torch.save(optimizer.state_dict(), file)
            file.seek(0)
            optimizer.load_state_dict(torch.load(file, map_location="cuda"))
    counts = [state["step"] for state in optimizer.state.values()]
    print([(count.device.type, count.item()) for count in counts])
""")
def test_an_optimizer_whose_state_is_loaded_onto_the_gpu_counts_its_steps_on(printed):
    assert printed == ["[('cuda', 3.0), ('cuda', 3.0)]"] * 2


@pytest.mark.program("""
import functools, torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
def policy(context, operator, *inputs, **options):
    saves = operator == torch.ops.aten._to_copy.default
    return CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE
def parts(x, counts):
    return torch.cat([part.sin() for part in x.split(counts.to("cpu").tolist())])
x = torch.randn(8, 4, device="cuda", requires_grad=True)
contexts = functools.partial(create_selective_checkpoint_contexts, policy)
checkpoint(parts, x, torch.tensor([3, 5]).cuda(), use_reentrant=False, context_fn=contexts).sum().backward()
print(x.grad.shape)
""")
def test_known_numbers_are_read_again_by_selective_checkpointing(printed):
    assert printed == ["torch.Size([8, 4])"]


@pytest.mark.program("""
import io
import torch
norm, ones = torch.nn.BatchNorm1d(4).cuda(), torch.nn.init.ones_(torch.nn.Parameter(torch.empty(4, device="cuda")))
for saved in (norm, norm.state_dict(), ones, torch.arange(4, device="cuda"), torch.cuda.get_rng_state()):
    file = io.BytesIO()
    torch.save(saved, file)
    print(b"_headroom" in file.getvalue(), end=" ")
""")
def test_what_is_known_of_a_tensor_is_not_saved_with_it(printed):
    assert printed == ["False " * 5]


@pytest.mark.program("""
import threading
import torch
def first(rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    return rows[: int((counts + 1).sum())].clone()
rows, counts = torch.randn(100, 4, device="cuda"), torch.tensor([3, 4, 5]).cuda()
own = torch.library.custom_op("headroom_test::own", first, mutates_args=())
library = torch.library.Library("headroom_test_other", "DEF")
library.define("first(Tensor rows, Tensor counts) -> Tensor")
library.impl("first", first, "CUDA")
print(len(own(rows, counts)), len(torch.ops.headroom_test_other.first(rows, counts)))
thread = threading.Thread(target=lambda: print(len(first(rows, counts))))
thread.start()
thread.join()
""")
def test_values_are_known_in_operators_written_in_python_and_in_other_threads(printed):
    assert printed == ["15 15", "15"]


def test_replicas_of_a_model_know_the_masks_of_their_parts_of_a_batch(gpu, pytorch):
    answer = gpu("rtx4090", "--gpus", "2", python=pytorch, program="""
import torch
class Net(torch.nn.Module):
    def forward(self, x, mask):
        return torch.tensor([len(x[mask]), int(mask.all())], device=x.device)
mask = torch.arange(10) < 7
for given in (mask, mask.cuda()):
    print(torch.nn.DataParallel(Net().cuda())(torch.randn(10, 8).cuda(), given).tolist())
""")
    assert printed_by(answer) == ["[5, 1, 2, 0]"] * 2
