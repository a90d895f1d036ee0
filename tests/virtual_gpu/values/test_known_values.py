"""Values that follow from what a program copied to the virtual GPU, so that its code takes the path that it
takes on a real card."""

import re

import pytest
from conftest import printed_by

TINY_MODEL = """
import torch
from transformers import AutoModelForCausalLM, LlamaConfig
torch.manual_seed(0)
model = AutoModelForCausalLM.from_config(LlamaConfig(
    hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=4, vocab_size=512)).cuda()
tokens = torch.randint(0, 512, (4, 512)).cuda()
def peak(**inputs):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    model(input_ids=tokens, labels=tokens, **inputs).loss.backward()
    model.zero_grad(set_to_none=True)
    return torch.cuda.max_memory_allocated()
peak()
"""


def test_of_the_programs_that_run_together_only_generation_decides_by_unknown_values(run_together, pytorch):
    differences = run_together(pytorch)[0].figures["frameworks"][0]["differences"]
    decided = " ".join(text.partition("taken as 0: ")[2] for text in differences)
    assert set(re.findall(r"test_\w+\.py", decided)) <= {"test_generation_ends_at_its_greatest_length.py"}


@pytest.mark.program(TINY_MODEL + """
without = peak()
mask = torch.ones(4, 512, dtype=torch.long).cuda()
print(peak(attention_mask=mask) - without)
mask[0, :7] = 0
print(peak(attention_mask=mask) - without)
""")
def test_a_mask_that_masks_nothing_costs_no_more_than_itself(printed):
    unmasked, masked = map(int, printed)
    assert unmasked == 4 * 512 * 8
    # A mask that excludes tokens is expanded to one value for each pair of tokens.
    assert masked >= 4 * 512 * 512


QUESTIONS = """
import torch
mask = torch.tensor([[1, 1, 0], [1, 0, 0]]).to("cuda")
data = torch.randn(2, 3, 5, device="cuda")
lengths = mask.sum(-1)
"""


ANSWERS = {
    "lengths.tolist()": "[2, 1]",
    "bool((mask == 1).all())": "False",
    "bool((mask <= 1).all())": "True",
    "int(lengths.max())": "2",
    "tuple(mask.nonzero().shape)": "(3, 2)",
    "tuple(data[mask.bool()].shape)": "(3, 5)",
    "tuple(torch.masked_select(data[..., 0], mask.bool()).shape)": "(3,)",
    "tuple(torch.masked_select(data[..., :1, 0], mask.bool()).shape)": "(3,)",
    "torch.repeat_interleave(torch.arange(2, device='cuda'), lengths).tolist()": "[0, 0, 1]",
    "tuple(data.repeat_interleave(lengths, dim=0).shape)": "(3, 3, 5)",
    "tuple(torch.repeat_interleave(data, lengths[:1], 1).shape)": "(2, 6, 5)",
    "torch.arange(4, device='cuda').cumsum(0).cpu().tolist()": "[0, 1, 3, 6]",
    "mask.mul_(2).sum().item()": "6",
}


@pytest.mark.program(QUESTIONS + "".join(f"print({question})\n" for question in ANSWERS))
def test_what_follows_from_a_copied_tensor_is_known(printed):
    assert dict(zip(ANSWERS, printed)) == ANSWERS


@pytest.mark.program("""
import torch
held = torch.full((64, 64), 7.0).cuda()
del held  # its memory serves the next tensor
data = torch.randn(64, 64, device="cuda")
loss = (data @ data).mean()
print(loss.item(), bool(torch.isfinite(loss)), bool(torch.isnan(data).any()))
""")
def test_what_a_kernel_computed_from_data_reads_as_zero_and_is_taken_to_be_finite(printed):
    assert printed == ["0.0 True False"]


@pytest.mark.program("""
import torch
flags, rank = torch.tensor([1, 0, 1]), 0
for moved in (flags.to(rank), flags.to(rank, torch.int32), flags.to(device=rank), torch.as_tensor(flags, device=rank),
              flags.type("torch.cuda.LongTensor"), flags.type(torch.cuda.LongTensor)):
    print((2 * moved).tolist())
print((torch.ones_like(flags, device=rank) + 1).tolist())
""")
def test_a_card_may_be_named_by_its_number_or_by_a_type_of_tensor(printed):
    assert printed == ["[2, 0, 2]"] * 6 + ["[2, 2, 2]"]


@pytest.mark.program("""
import torch
loss, infinity = torch.randn(8, device="cuda").sum(), float("inf")
for worst in (infinity, torch.tensor(infinity), torch.tensor(infinity, device="cuda")):
    print(bool(loss < worst), bool(worst > loss), bool(loss.abs() == worst), bool(loss.ge(worst)))
print(bool(-infinity <= loss), bool(loss == loss), bool((loss != loss).any()))
""")
def test_a_comparison_with_infinity_or_itself_is_that_of_a_finite_value(printed):
    """The first loss is the best so far, and is therefore saved."""
    assert printed == ["True True False False"] * 3 + ["True True False"]


@pytest.mark.program("""
import torch
loss, number = torch.randn(8, device="cuda").sum(), torch.tensor([3, 5]).cuda().sum()
both = torch.stack([loss, number.float()])
total, count = (both + both).tolist()
print(total / count, count)
print(torch.stack([loss, loss]).tolist())
""")
def test_a_number_is_known_beside_a_sum_of_losses(recorded):
    assert recorded.printed == ["0.0 16.0", "[0.0, 0.0]"]
    assert "read as 0, since a virtual GPU does not compute them: program.py:4, program.py:7" in recorded.differences


@pytest.mark.program("""
import torch
loss = torch.randn(3, device="cuda").sum()
best = min(1.0, loss.item())
count = torch.arange(3, device="cuda").sum().item()
history = loss.expand(2).tolist()
""")
def test_lines_at_which_a_program_read_an_unknown_value_are_named(recorded):
    """Early stopping is an example: it compares values that it has read."""
    assert "read as 0, since a virtual GPU does not compute them: program.py:4, program.py:6" in recorded.differences


@pytest.mark.program(QUESTIONS + """
begins = lengths.new_empty(3)
begins.narrow(0, 0, 1).zero_()
torch.cumsum(lengths, 0, out=begins.narrow(0, 1, 2))
print(begins.tolist())
rows = torch.arange(6, device="cuda").view(2, 3)
row = rows[0]
row.add_(10)
rows[0, 1] = 7
print(rows.tolist(), row.tolist())
row.copy_(data[0, 0, :3])
print(rows.tolist())  # unknown, although a part of it was known before
""")
def test_a_change_of_a_part_is_one_of_the_whole(printed):
    assert printed == ["[0, 2, 3]", "[[10, 7, 12], [3, 4, 5]] [10, 7, 12]", "[[0, 0, 0], [0, 0, 0]]"]


@pytest.mark.program("""
import torch
flags = torch.ones(4, dtype=torch.long).cuda()
view = flags[:2]
view += torch.randn(2, device="cuda").sum().long()
if flags.all():
    print("known")
""")
def test_a_known_tensor_that_data_changed_is_not_known_any_more(recorded):
    assert recorded.printed == []
    assert "decided by values that a virtual GPU does not compute, taken as 0: program.py:6" \
        in recorded.differences


@pytest.mark.program(TINY_MODEL + """
for options in ({}, {"do_sample": True, "top_p": 0.9}):
    print(tuple(model.generate(tokens[:, :8], max_new_tokens=5, **options).shape))
model.generate(tokens[:, :8], max_new_tokens=5, num_beams=2)
""")
def test_generation_ends_at_its_greatest_length(printed):
    """The drawn tokens are unknown, but it is known that the greatest length is reached."""
    assert printed == ["(4, 13)"] * 2


@pytest.mark.program("""
import torch
unknown = torch.randn(4, device="cuda") > 0
no, yes = torch.zeros(4, dtype=torch.bool).cuda(), torch.ones(4, dtype=torch.bool).cuda()
counts = (9 * torch.randn(4, device="cuda")).long()
print(bool((unknown | yes).all()), bool((no & unknown).any()), int((counts & no).max()))
if (unknown | no).any():
    print("known")
if (counts | yes).any():
    print("known")
""")
def test_a_known_operand_that_settles_the_result_makes_it_known(recorded):
    assert recorded.printed == ["True False 0"]
    assert "program.py:7, program.py:9" in recorded.differences


@pytest.mark.program("""
import torch
mask = torch.tensor([True, False, True, True]).cuda()
table = torch.zeros(4, 5, device="cuda")
table[mask] = torch.randn(3, 5, device="cuda")
table[mask, 0] = torch.randn(3, device="cuda")
flags = torch.zeros(4, dtype=torch.long).cuda()
flags[mask] = 7
print(flags.tolist())
""")
def test_a_known_mask_takes_values(printed):
    assert printed == ["[7, 0, 7, 7]"]


@pytest.mark.program("""
import torch
scores = torch.randn(50, 3, 20, device="cuda").log_softmax(-1).requires_grad_()
lengths = torch.tensor([4, 2, 3]).cuda()
targets = torch.randint(1, 20, (9,)).cuda()
torch.nn.functional.ctc_loss(scores, targets, torch.full((3,), 50).cuda(), lengths).backward()
print(tuple(scores.grad.shape))
""")
def test_lengths_that_were_copied_are_known_to_the_ctc_loss(printed):
    assert printed == ["(50, 3, 20)"]


@pytest.mark.program("""
import torch
lengths = torch.tensor([3, 5, 2]).cuda()
longest, x = lengths.max(), torch.ones(4, 8, 2, device="cuda")
print(torch.arange(longest).tolist(), torch.arange(start=1, end=longest, device="cuda").tolist())
print((torch.arange(longest, device="cuda")[None] < lengths[:, None]).sum().item())
x[:, :longest] = 0
for made in (x[:, :longest], x[0][longest:], torch.zeros(longest, 2), torch.empty((longest, 2), device="cuda"),
             x.new_zeros(longest, 2), x.narrow(1, 0, longest), x[0, 0].expand(longest, 2), x[0].repeat(longest, 1),
             x.view(longest - 1, 16), torch.nn.functional.pad(x, (0, longest)), x[0, :, 0].topk(longest).values):
    print(*made.shape)
""")
def test_sizes_and_bounds_that_follow_from_copied_lengths_are_known(printed):
    assert printed == ["[0, 1, 2, 3, 4] [1, 2, 3, 4]", "10", "4 5 2", "3 2", "5 2", "5 2", "5 2", "4 5 2", "5 2", "40 2",
                     "4 16", "4 8 7", "5"]


@pytest.mark.program("""
import torch
for fused in (False, True):
    weights = torch.ones(4, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([weights], fused=fused)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=2)
    for _ in range(5):
        scaler.scale(weights.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        print(scaler.get_scale())
        if scaler.get_scale() < 1024:
            print("skipped")
""")
def test_the_scale_of_a_gradient_scaler_grows_as_long_as_no_gradient_overflows(printed):
    assert printed == 2 * ["1024.0", "2048.0", "2048.0", "4096.0", "4096.0"]


@pytest.mark.program(QUESTIONS + """
places = torch.arange(5, device="cuda")
unknown = (data > 0).long()
print(int(unknown.clone().zero_().add_(1).sum()), int(torch.ones_like(unknown).sum()))
print(int(torch.full_like(unknown, 3).sum()), int(unknown.new_full((2,), fill_value=7).sum()))
print(int(unknown.clone().copy_(mask[..., None]).sum()))
print(int(torch.empty_like(unknown[0, 0]).scatter_(0, places, places).sum()))
""")
def test_what_replaces_every_element_is_known_whatever_was_there(printed):
    assert printed == ["30 30", "90 14", "15", "10"]


@pytest.mark.program("""
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
packed = pack_padded_sequence(torch.randn(3, 9, 4).cuda(), torch.tensor([2, 9, 5]), True, enforce_sorted=False)
print(pad_packed_sequence(packed, batch_first=True)[1].tolist())
""")
def test_lengths_of_packed_sequences_come_back_in_their_order(printed):
    assert printed == ["[2, 9, 5]"]


@pytest.mark.program("""
import torch
from torch.optim.swa_utils import AveragedModel, update_bn
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).cuda()
average = AveragedModel(model)
average.update_parameters(model)
update_bn([torch.randn(8, 4).cuda()] * 3, average)
print(int(average.module[1].num_batches_tracked))
""")
def test_averages_of_batch_normalisation_are_computed_anew(printed):
    assert printed == ["3"]


@pytest.mark.program("""
import torch
encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 2, dropout=0), 1).cuda()
mask = torch.nn.Transformer.generate_square_subsequent_mask(512, device="cuda")
print(torch.nn.modules.transformer._detect_is_causal_mask(mask, None, 512))
encoder(torch.randn(512, 4, 64, device="cuda"), mask=mask)
""")
def test_an_encoder_recognises_the_mask_of_a_causal_network(printed):
    """Attention then needs no mask."""
    assert printed == ["True"]


@pytest.mark.program("""
import torch
unknown = torch.randn(4, 3, device="cuda")
known = torch.tensor([[0.0], [1.0], [2.0], [2.0]]).cuda()
row = torch.arange(12).cuda()
print(known.expand_as(unknown)[:, 2].tolist(), known.view(4).to(unknown).tolist(), row.type_as(unknown).tolist()[5],
      row.view_as(unknown).tolist()[3], row.reshape_as(unknown).tolist()[2])
print(unknown.new_tensor([3, 4]).tolist(), unknown.new_full((2,), known[1, 0]).tolist(), int((known > 1).sum()))
""")
def test_a_tensor_that_gives_only_its_type_and_shape_need_not_be_known(printed):
    """YOLO's anchors, for instance, are numbers that take the type of the network's output."""
    assert printed == ["[0.0, 1.0, 2.0, 2.0] [0.0, 1.0, 2.0, 2.0] 5.0 [9, 10, 11] [6, 7, 8]", "[3.0, 4.0] [1.0, 1.0] 2"]


@pytest.mark.program("""
import torch
scores, mask = torch.randn(1024, 1024, device="cuda"), torch.ones(1024, 1024, dtype=torch.bool).triu(1).cuda()
labels = torch.arange(4).cuda()
def filled():
    scores[mask] = -1e9
    scores[:, mask[0]] = torch.tensor(0.5)
    labels[labels > 1] = 7
    return labels.tolist() if not torch.cuda.is_current_stream_capturing() else labels.shape
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
print(filled(), torch.cuda.max_memory_allocated() - before < 2048)
with torch.cuda.graph(torch.cuda.CUDAGraph()):
    print(filled())
""")
def test_filling_by_a_mask_takes_no_memory_for_positions(printed):
    assert printed == ["[0, 1, 7, 7] True", "torch.Size([4])"]


def test_values_are_not_followed_where_they_are_switched_off(gpu, pytorch):
    answer = gpu("rtx4090", python=pytorch, program=QUESTIONS + "print(bool((mask <= 1).all()))",
                 environment={"HEADROOM_GPU_VALUES": "off"})
    assert printed_by(answer) == ["False"]


@pytest.mark.program("""
import torch
kept = [torch.full((1 << 23,), number).cuda() for number in range(1, 21)]  # 64 MiB each
print(kept[0].max().item(), kept[-1].max().item(), kept[-10].max().item())
del kept[5:]
kept[0].fill_(7)
print(kept[0].max().item())
""")
def test_the_oldest_large_values_are_forgotten_when_all_would_take_too_much_memory(printed):
    assert printed == ["0 20 11", "7"]
