"""Values that are drawn on a virtual GPU, because a real one would draw them or because they are not known."""

import pytest
from conftest import printed_by


def test_no_program_here_decides_by_a_value_taken_as_zero(run_together, pytorch):
    differences = run_together(pytorch)[0].figures["frameworks"][0]["differences"]
    assert not any("taken as 0" in difference for difference in differences), differences


@pytest.mark.program("""
import torch
flags = torch.ones(4, dtype=torch.long).cuda()
view = flags[:2]
view += torch.randn(2, device="cuda").argmax()
if flags.all():
    print("known")
""")
def test_a_known_tensor_of_which_a_part_was_drawn_is_drawn(recorded):
    assert recorded.printed == ["known"]
    assert "decided by values drawn at random here: program.py:6" in recorded.differences


@pytest.mark.program("""
import torch
logits = torch.randn(4, 1000, device="cuda") @ torch.randn(1000, 1000, device="cuda")
tokens = torch.multinomial(logits.softmax(-1), num_samples=1)
print(len(set(tokens.flatten().tolist())) > 1, tuple(tokens.shape))
actions = torch.distributions.Categorical(logits=logits).sample((50,))
print(actions.unique().numel() > 100, tuple(actions.shape))
chosen = torch.multinomial(logits.softmax(-1), 1000)  # without replacement
print((chosen.sort().values == torch.arange(1000, device="cuda")).all().item())
print(len(torch.multinomial(logits.exp().cpu(), 20).unique()) > 40, torch.multinomial(torch.eye(3)[1], 1).item())
""")
def test_what_is_sampled_of_unknown_probabilities_is_drawn(recorded):
    assert recorded.printed == ["True (4, 1)", "True (50, 4)", "True", "True 1"]
    assert "decided by values drawn at random here: program.py:7" in recorded.differences


@pytest.mark.program("""
import numpy, torch
chances = torch.randn(1000, device="cuda").softmax(-1).cpu().numpy()
chosen = {numpy.random.choice(1000, p=chances) for _ in range(20)}
print(len(chosen) > 10, numpy.random.choice(3, p=torch.tensor([0, 1.0, 0])))
""")
def test_numpy_chooses_among_what_a_virtual_gpu_gave_probabilities_that_it_did_not_compute(recorded):
    assert recorded.printed == ["True 1"]
    assert "decided by values drawn at random here: program.py:4" in recorded.differences


@pytest.mark.program("""
import torch
scores = torch.randn(1000, 8, device="cuda").softmax(-1)
weights, chosen = scores.topk(2, dim=-1)
counts = [len(torch.where(chosen == expert)[0]) for expert in range(8)]
print(sum(counts), min(counts) > 150, max(counts) < 350)
print(len(chosen[:, 0].unique()), bool((chosen[:, 0] == chosen[:, 1]).any()))
single = scores.argmax(-1)
print(int(torch.bincount(single, minlength=8).sum()), len(torch.where(scores > 0.5)[0]))
_, first = scores.max(dim=-1)
print(len(first.unique()), len(scores.min(0).indices.unique()) > 1, scores.max().item(), scores.max(scores).shape[0])
""")
def test_a_router_spreads_its_tokens_over_the_experts(recorded):
    assert recorded.printed == ["2000 True True", "8 False", "1000 0", "8 True 0.0 1000"]
    # The seed is fixed, so runs repeat. Eight shares of 250 lie within 6 standard deviations.
    assert "drawn at random here: program.py:5" in recorded.differences
    assert "(--mask-share 0.5 selects half): program.py:9" in recorded.differences


DETECTION = """
import sys
import torch
import torchvision
device = sys.argv[1]
model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
    weights=None, weights_backbone=None, num_classes=5, box_batch_size_per_image=64).to(device).train()
pooled = model.roi_heads.box_roi_pool
pooled.register_forward_pre_hook(lambda module, given: print([len(boxes) for boxes in given[1]]))
boxes = torch.tensor([[10.0, 20.0, 150.0, 180.0], [30.0, 30.0, 90.0, 60.0]]).to(device)
targets = [{"boxes": boxes, "labels": torch.tensor([1, 2]).to(device)} for _ in range(2)]
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
for _ in range(2):
    losses = model(list(torch.rand(2, 3, 320, 320).to(device)), targets)
    optimizer.zero_grad()
    sum(losses.values()).backward()
    optimizer.step()
"""


def test_the_second_stage_of_a_detector_sees_as_many_boxes_as_in_an_untrained_network(gpu, pytorch):
    computed, answer = (
        gpu("rtx4090", python=pytorch, program=DETECTION, arguments=[device]) for device in ("cpu", "cuda"))
    counts = [line for line in computed.output.splitlines() if line.startswith("[")]
    assert len(counts) == 2, computed.errors
    assert printed_by(answer) == counts
    assert "values drawn at random here" in answer.output


@pytest.mark.program("""
import torch
for draw in (True, False):
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    if draw:
        where = torch.rand(10_000, device="cuda") < 0.3
        print(2500 < torch.randn(10_000, 2, device="cuda")[where].shape[0] < 3500)
        print(2500 < int(torch.bernoulli(torch.full((10_000,), 0.3, device="cuda")).sum()) < 3500)
        print(torch.randint(5, 9, (1000,), device="cuda").unique().tolist())
        print(torch.multinomial(torch.tensor([0.0, 1.0, 1.0]).cuda(), 100, replacement=True).unique().tolist())
    print(torch.rand(1).item())
""")
def test_what_the_gpu_would_draw_is_drawn_apart_from_what_the_program_draws(printed):
    *drawn, beside, alone = printed
    assert drawn == ["True", "True", "[5, 6, 7, 8]", "[1, 2]"]
    assert beside == alone


@pytest.mark.program("""
import torch
order = torch.randn(4, 16, device="cuda").argsort(1)
hidden = torch.ones(4, 16, device="cuda")
hidden[:, :4] = 0
hidden = hidden.gather(1, order.argsort(1)).bool()
print(tuple(torch.randn(4, 16, 8, device="cuda")[hidden].shape))
nearest = torch.randn(99, 9, device="cuda").argmin(1)
print(len(torch.randn(50, device="cuda").sort()[1].unique()), len(nearest.unique()))
""")
def test_an_order_that_is_drawn_can_be_undone(printed):
    """A masked autoencoder hides three quarters of its tokens in an order that the GPU finds by sorting."""
    assert printed == ["(48, 8)", "50 9"]


@pytest.mark.program("""
import torch
for tokens, experts in ((100, 4), (4096, 64)):
    logits = torch.randn(tokens, 32, device="cuda") @ torch.randn(32, experts, device="cuda")
    chosen = torch.topk(logits, 2).indices
    sent = torch.zeros_like(logits).int().scatter(1, chosen, 1).bool()
    on_processor = torch.empty(experts, dtype=torch.int64)
    on_processor.copy_(sent.sum(dim=0), non_blocking=True)
    print(sent.sum(dim=0).to("cpu").sum().item(), on_processor.sum().item())
""")
def test_how_many_tokens_a_router_sends_is_known_on_the_processor(printed):
    assert printed == ["200 200", "8192 8192"]


@pytest.mark.program("""
import torch
from torch.utils.checkpoint import checkpoint
router, experts = torch.nn.Linear(16, 4).cuda(), torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(4)).cuda()
counts = []
def layer(tokens):
    chosen = torch.topk(router(tokens).softmax(-1), 2)[1]
    result = torch.zeros_like(tokens)
    for number, expert in enumerate(experts):
        rows = torch.where(chosen == number)[0]
        counts.append(len(rows))
        result.index_add_(0, rows, expert(tokens[rows]))
    return result
for reentrant, preserve in ((False, True), (True, True), (False, False), (True, False)):
    counts.clear()
    tokens = torch.randn(512, 16, device="cuda", requires_grad=True)
    checkpoint(layer, tokens, use_reentrant=reentrant, preserve_rng_state=preserve).sum().backward()
    print(len(counts), sum(counts[:4]), counts[:4] == counts[4:])
""")
def test_checkpointing_repeats_the_choice_of_experts(printed):
    assert printed == ["8 1024 True"] * 4


@pytest.mark.program("""
import resource
import torch
table = torch.linspace(-1, 1, 16, device="cuda")
def nearest(weights):
    return (weights.unsqueeze(-1) - table).abs().min(-1).indices
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kept = [nearest(torch.randn(1 << 20, device="cuda"))]
before = used()
kept += [nearest(torch.randn(1 << 20, device="cuda")) for _ in range(32)]  # 256 MiB on the card
print(used() - before < 64 << 10 or used() - before)
print(len(nearest(torch.randn(1 << 12, device="cuda")).unique()))
""")
def test_the_nearest_numbers_of_weights_that_are_quantized_are_not_drawn(printed):
    assert printed == ["True", "16"]
