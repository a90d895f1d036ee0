"""Known values that a program reads as text, or that PyTorch's own Python code reads."""

import pytest


@pytest.mark.program("""
import torch
known = torch.arange(3, device="cuda") + 1
print(known, f"{known.sum()} {known.max() / 2:.1f}", 2 in known, 7 in known, torch.is_nonzero(known[0]), [known[2]])
large, unknown = torch.arange(2000, device="cuda") * 2, torch.randn(2, device="cuda")
print(str(large), unknown, f"{unknown[0]:.2f}", 2 in unknown)
""")
def test_a_known_value_is_printed_as_on_a_card(printed):
    assert printed == [
        "tensor([1, 2, 3], device='cuda:0') 6 1.5 True False True [tensor(3, device='cuda:0')]",
        "tensor([   0,    2,    4,  ..., 3994, 3996, 3998], device='cuda:0') tensor([0., 0.], device='cuda:0') 0.00 False"]


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
