"""Unknown values that are taken to be finite, equal or valid, as in training that goes well. Skipped unless
`scripts/setup --with pytorch` has been run."""

import pytest


@pytest.mark.program("""
import torch
boxes = torch.randn(5, 4, device="cuda").sigmoid()
assert (boxes[:, 2:] >= boxes[:, :2]).all()
assert torch.all(boxes[:, :2] <= boxes[:, 2:])
assert (boxes >= 0).all()  # nflows checks this before it takes a square root
print(len(boxes[boxes[:, 2] >= boxes[:, 0]]), bool((boxes >= 0.5).all()))
""")
def test_boxes_that_a_network_finds_pass_the_check_of_their_corners(recorded):
    assert recorded.printed == ["0 False"]
    assert "compared values that a virtual GPU does not compute, taken as equal: program.py:4, program.py:5, " \
        "program.py:6" in recorded.differences


@pytest.mark.program("""
import torch
unknown = torch.randn(3, device="cuda")
print(unknown == None, None != unknown, unknown == "a", None in [unknown])
try:
    unknown < None
except TypeError:
    print("TypeError")
""")
def test_unknown_values_may_be_compared_with_what_is_no_number(recorded):
    assert recorded.printed == ["False True False False", "TypeError"]


@pytest.mark.program("""
import torch
x = torch.randn(8, 16, device="cuda")
one, other = x @ x.T, torch.einsum("ik,jk->ij", x, x)
print(torch.allclose(one, other, atol=1e-3), one.equal(other))
torch.testing.assert_close(one, other)
known = torch.arange(3, device="cuda")
print(torch.equal(known, known + 1), torch.allclose(known, known.clone()), torch.equal(one, other[:4]))
""")
def test_unknown_values_are_taken_to_be_equal_to_what_they_are_compared_with(recorded):
    assert recorded.printed == ["True True", "False True False"]
    assert "taken as equal: program.py:5, program.py:6\n" in recorded.differences


@pytest.mark.program("""
import torch
torch.distributions.Distribution.set_default_validate_args(True)  # as Pyro does
scale = torch.randn(4, device="cuda").exp()
print(torch.distributions.Normal(0.0, scale).sample().shape)
print(torch.distributions.Gamma(scale, scale, validate_args=True).log_prob(scale).shape)
try:
    torch.distributions.Normal(0.0, torch.tensor([1, -1], device="cuda"), validate_args=True)
except ValueError:
    print("invalid")
matrix = torch.randn(300, 300, device="cuda")
def bytes_of(validate):
    torch.cuda.reset_peak_memory_stats()
    torch.distributions.Categorical(matrix.exp(), validate_args=validate)
    return torch.cuda.max_memory_allocated()
print(bytes_of(True) > bytes_of(False))
print(torch.normal(matrix, matrix.exp()).shape)
""")
def test_parameters_of_distributions_are_taken_to_be_valid(recorded):
    assert recorded.printed == ["torch.Size([4])", "torch.Size([4])", "invalid", "True",
                                  "torch.Size([300, 300])"]
    assert "taken as" not in recorded.differences


@pytest.mark.program("""
import torch
from torch.nn.functional import cross_entropy, embedding
places, scores = torch.tensor([0, 7, 12], device="cuda"), torch.randn(3, 10, device="cuda")
embedding(places, torch.randn(10, 4, device="cuda"))
cross_entropy(scores, places)
scores.gather(dim=1, index=places[:, None])
embedding(places, torch.randn(13, 4, device="cuda"))
cross_entropy(scores, places, ignore_index=12)
embedding(scores.argmax(1), torch.randn(2, 4, device="cuda"))
""")
def test_known_indices_outside_of_what_they_choose_from_are_named(recorded):
    assert "indices outside of what they choose from, at which a real card stops the program: " \
        "program.py:5, program.py:6, program.py:7" in recorded.differences
