"""Sizes of results that depend on values: what masks select, equal values that are found, and largest values."""

import pytest
from conftest import printed_by

UNKNOWN = """
import torch
x = torch.randn(100, 8, device="cuda")
unknown = (x @ torch.randn(8, 3, device="cuda")).long()
"""


@pytest.mark.program("""
import torch
def selected(device):
    edges = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 2, 2, 1, 4, 0]]).to(device)
    weights = torch.arange(36.0).view(6, 6).to(device)
    differ = edges[0] != edges[1]
    return [part.tolist() for part in (
        edges[:, differ], edges[:, ~differ], edges[..., differ], edges[1, differ], weights[differ, 1:3],
        weights[None, :, differ], weights[edges[0, :3], differ])]
print(selected("cuda") == selected("cpu"))
""")
def test_a_mask_beside_other_parts_of_an_index_selects_the_same_elements(printed):
    assert printed == ["True"]


@pytest.mark.program("""
import torch
weights = torch.nn.Parameter(torch.randn(6, 3, device="cuda"))
kept = weights[torch.arange(6).cuda() % 3 != 0]
kept.sum().backward()
print(len(kept), weights.grad is not None)
""")
def test_a_known_mask_selects_rows_of_a_parameter(printed):
    assert printed == ["4 True"]


@pytest.mark.program("""
import torch
table = torch.zeros(4, 5, device="cuda")
mask = torch.ones(4, dtype=torch.bool).cuda()
try:
    table[:, mask]
except IndexError as error:
    print("shape of the mask" in str(error))
""")
def test_a_mask_of_another_shape_is_refused_as_on_a_card(printed):
    assert printed == ["True"]


@pytest.mark.program("""
import torch
numbers, weights = torch.tensor([1, 4, 2]).cuda(), torch.randn(3, device="cuda").relu()
print(len(torch.bincount(numbers, weights=weights)), len(torch.bincount(numbers, weights, 7)),
      len(numbers.bincount(weights, minlength=2)))
""")
def test_weights_need_not_be_known_for_counts(printed):
    assert printed == ["5 7 5"]


@pytest.mark.program("""
import torch
words = torch.randint(0, 50, (4, 100))
table = torch.nn.EmbeddingBag(50, 8, sparse=True).cuda()
table(words.cuda()).sum().backward()
print(table.weight.grad._nnz(), table.weight.grad.coalesce()._nnz(), table.weight.grad.coalesce().is_coalesced())
""")
def test_sparse_elements_whose_places_are_unknown_are_all_kept(printed):
    assert printed == ["400 400 True"]


@pytest.mark.program("""
import torch
dense = torch.zeros(4, 6)
dense[0, 1], dense[2, 3], dense[3, 3] = 1, 2, 3
on_gpu = dense.cuda()
sparse = on_gpu.to_sparse()
print(sparse._nnz(), on_gpu.to_sparse_csr()._nnz(), on_gpu.to_sparse_csc()._nnz(), on_gpu.to_sparse_bsr((2, 2))._nnz())
print(sparse.indices().tolist(), tuple(sparse.values().shape), tuple(sparse.t().shape), sparse.t()._nnz())
rows = dense.to_sparse_csr().cuda()
print(rows.crow_indices().tolist(), tuple(rows.values().shape), tuple(dense.to_sparse().cuda().t().shape))
print(sparse.sum(0)._nnz(), torch.sum(sparse, 1)._nnz(), rows.sum(1, keepdim=True)._nnz(), sparse.sum().item())
graph = torch.zeros(300, 300)  # with more elements than are followed of a dense tensor
graph[3, 5], graph[3, 7], graph[9, 5] = 1, 2, 3
graph = graph.to_sparse().cuda()
print((graph + graph).coalesce()._nnz(), torch.sparse.sum(graph, 1)._nnz(), graph[3]._nnz(), graph.select(1, 5)._nnz(),
      graph.index_select(0, torch.tensor([9, 1]).cuda())._nnz())
""")
def test_a_sparse_tensor_has_the_elements_that_are_not_zero(printed):
    assert printed == ["3 3 3 2", "[[0, 2, 3], [1, 3, 3]] (3,) (6, 4) 3", "[0, 1, 1, 2, 3] (3,) (6, 4)", "2 3 3 6.0",
                       "3 2 2 2 1"]


@pytest.mark.program("""
import torch
depths = torch.rand(2, 1, 128, 160)  # more than are followed otherwise
depths[depths < 0.3] = 0
predicted = torch.randn(2, 1, 128, 160, device="cuda")
on_gpu = depths.cuda()
half = depths.to("cuda", torch.float16).squeeze(1)[:, :64]
print(len(predicted[on_gpu > 0]) == int((depths > 0).sum()),
      int((half >= 0.5).sum()) == int((depths.half()[:, 0, :64] >= 0.5).sum()))
measured = torch.randn(300, 200)
measured[::3] = float("nan")
copied = torch.empty(300, 200, device="cuda").copy_(measured)
print(len(copied[~torch.isnan(copied)]), tuple(copied[torch.tensor([0, 2]).cuda(), [1, 2]].shape))
depths.fill_(1)  # The copy on the GPU stays as it was.
copied.zero_()
print((on_gpu > 0).sum().item(), copied.isnan().any().item())
""")
def test_large_copies_are_known_to_what_they_are_compared_with(printed):
    assert printed == ["True True", "40000 (2,)", "0 False"]


@pytest.mark.program(UNKNOWN + """
found, places, counts = unknown.unique(return_inverse=True, return_counts=True)
print(len(found), tuple(places.shape), len(counts), len(unknown.unique(dim=0)), len(unknown.unique_consecutive()))
x.to_sparse()
""")
def test_unknown_values_are_taken_to_be_different_from_each_other(recorded):
    assert recorded.printed == ["300 (100, 3) 300 100 300"]
    assert "taken as all different: program.py:" in recorded.differences
    assert "taken as 0: program.py:8" in recorded.differences, "no element of a sparse tensor"


MASKS = """
import torch
losses = torch.randn(100, 100, device="cuda").exp()
hard = losses > 0.7
print(len(losses[hard]), len(losses.masked_select(hard)), len(hard.nonzero()), int(hard.sum()),
      len(torch.where(hard & (losses < 3))[0]))
unclear = losses.log().bool()
print(len(losses[unclear]), len(losses[unclear]), bool((losses >= 0).all()), bool(losses.mean() > 0.7))
losses[unclear] = 0
"""


def test_masks_of_unknown_values_select_nothing(gpu, pytorch):
    answer = gpu("rtx4090", python=pytorch, program=MASKS)
    assert printed_by(answer) == ["0 0 0 0 0", "0 0 True False"]
    assert "selected nothing by masks that a virtual GPU does not compute (--mask-share 0.5 selects half): " \
        "program.py:5, program.py:8, program.py:6" in answer.output


def test_masks_of_unknown_values_select_the_share_that_the_user_names(gpu, pytorch):
    answer = gpu("rtx4090", "--mask-share", "0.25", python=pytorch, program=MASKS)
    first, second = (line.split() for line in printed_by(answer))
    assert len(set(first[:4])) == 1 and 2200 < int(first[0]) < 2800
    assert 500 < int(first[4]) < 750, "a quarter of a quarter"
    assert second[0] == second[1] and 2200 < int(second[0]) < 2800
    assert second[2:] == ["True", "False"]
    assert "decided by values drawn at random here: program.py:5, program.py:8, program.py:6" in answer.output
    assert "selected nothing" not in answer.output


@pytest.mark.program(UNKNOWN + """
[torch.arange(100, 100 + count).cuda() for count in range(1, 300)]  # freed at once
print(torch.bincount(unknown[:, 0]).shape)
""")
def test_the_largest_of_unknown_values_is_not_what_lay_in_its_memory_before(recorded):
    assert recorded.printed == ["torch.Size([1])"]
    assert "decided by values that a virtual GPU does not compute, taken as 0: program.py:" in recorded.differences


@pytest.mark.program("""
import torch
known = torch.tensor([[1.0, 2.0], [0.0, 3.0]]).cuda().requires_grad_()
times = torch.tensor([1, 2]).cuda()
for select in (lambda: known.repeat_interleave(3, 0), lambda: known.repeat_interleave(times, 0),
               lambda: known.to_sparse(), lambda: known[known > 0]):
    known.grad = None
    result = select()
    result.sum().backward()
    print(*result.shape, known.grad is not None)
""")
def test_what_is_selected_of_known_values_has_a_gradient(printed):
    assert printed == ["6 2 True", "3 2 True", "2 2 True", "3 True"]


@pytest.mark.program("""
import torch
import torch.nn.functional as F
def shapes(device):
    x, line = torch.ones(1, 2, 8, 8, device=device), torch.ones(12, device=device)
    h, w = torch.tensor([2, 3], device=device) + 1
    made = [F.interpolate(x, size=(h, w)), F.adaptive_avg_pool2d(x, (h, w)), F.avg_pool2d(x, (h, w)),
            line.unflatten(0, (h, w)), line.as_strided((h, w), (1, h)), x.tile((h, w)),
            torch.broadcast_to(line, (h, 12)), *x.split([h, 8 - h], dim=2), *x.chunk(h, 2), *x.tensor_split(h, dim=2),
            x.unfold(2, h, w), torch.randint(0, 5, (h, w)), torch.randperm(h), torch.tril_indices(h, w),
            torch.multinomial(line, h)]
    return [tuple(one.shape) for one in made]
print(shapes("cuda") == shapes("cpu"))
""")
def test_known_numbers_are_sizes_of_what_is_resized_pooled_or_split(printed):
    assert printed == ["True"]
