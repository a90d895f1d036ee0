"""The operators that Liger-Kernel compares itself with, at its shapes: each `pass` is run several times and
the median of PyTorch's peaks of allocated bytes printed, one line of JSON per row, as its benchmark does.

Arguments: a JSON object per row, with `kernel`, `pass` and the numbers of its configuration."""

import gc
import json
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn

import without_values

ITERATIONS = 4  # the first pass has no gradients yet; the others are alike


def random(*shape, dtype=torch.float32, grad=True):
    return torch.randn(*shape, dtype=dtype, device="cuda", requires_grad=grad)


def classes(limit, *shape):
    return torch.randint(limit, shape, device="cuda")


def passes(forward, gradient, kind, keep=True):
    """The function whose peak counts. `gradient` makes the output's gradient; a loss has none."""

    def full():
        output = forward()
        output.backward(gradient(output) if gradient else None, retain_graph=keep)

    if kind == "full":
        return full
    if kind == "forward":
        return forward
    output = forward()
    given = gradient(output)
    return lambda: output.backward(given, retain_graph=True)


def cross_entropy(row):
    tokens = row["B"] * row["T"]
    scores, target = random(tokens, row["V"]), classes(row["V"], tokens)
    return passes(lambda: F.cross_entropy(scores, target), None, row["pass"], keep=False)


def twins(*shapes, dtype):
    """Linear layers, and the same again: the benchmark keeps the other side's weights beside them."""
    both = [
        nn.Linear(inputs, outputs, bias=False, dtype=dtype).cuda()
        for _ in range(2)
        for inputs, outputs in shapes
    ]
    return both[: len(shapes)], both[len(shapes) :]


def fused_linear_cross_entropy(row):
    (head,), other = twins((row["H"], row["V"]), dtype=row["dtype"])
    hidden, target = random(row["BT"], row["H"], dtype=row["dtype"]), classes(row["V"], row["BT"])

    def forward(_other=other):
        return F.cross_entropy(head(hidden), target)

    return passes(forward, None, row["pass"], keep=False)


def log_odds(chosen, rejected):
    ratio = torch.log1p(-torch.exp(chosen)) - torch.log1p(-torch.exp(rejected))
    return F.logsigmoid((chosen - rejected) - ratio)


def preference_in_bfloat16(head, hidden, target):
    """The benchmark's first version, which measured T = 4096."""
    half, logits = len(hidden) // 2, head(hidden)
    likelihood = F.cross_entropy(logits[:half].flatten(0, 1), target[:half].flatten())
    means = F.log_softmax(logits, dim=-1).mean(dim=-1)
    odds = 0.1 * log_odds(means[:half], means[half:])
    return likelihood - odds.mean()


def preference_in_float32(head, hidden, target):
    """Its second version, which measured T = 1024."""
    half = len(hidden) // 2
    logits = (hidden @ head.weight.t()).float()
    likelihood = F.cross_entropy(logits[:half].flatten(0, 1), target[:half].flatten())
    counts = target != -100
    labels = torch.where(target == -100, 0, target)
    chosen = torch.gather(logits.log_softmax(-1), dim=2, index=labels.unsqueeze(2)).squeeze(2)
    means = (chosen * counts).sum(-1) / counts.sum(-1)
    odds = 0.1 * log_odds(means[:half], means[half:])
    return likelihood - odds.mean()


def fused_linear_orpo_loss(row):
    (head,), other = twins((row["H"], row["V"]), dtype=row["dtype"])
    hidden = random(row["B"], row["T"], row["H"], dtype=row["dtype"])
    target = classes(row["V"], row["B"], row["T"])
    loss = preference_in_bfloat16 if row["T"] == 4096 else preference_in_float32

    def forward(_other=other):
        return loss(head, hidden, target)

    return passes(forward, None, row["pass"], keep=False)


def distill_jsd_loss(row):
    (student, teacher), other = twins(
        (row["H"] // 2, row["V"]), (row["H"], row["V"]), dtype=row["dtype"]
    )
    inputs = torch.rand(row["BT"], row["H"] // 2, device="cuda", dtype=row["dtype"])
    student_inputs = inputs.detach().clone().requires_grad_(True)
    other = [*other, inputs, inputs.detach().clone()]
    teacher_inputs = torch.rand(row["BT"], row["H"], device="cuda", dtype=row["dtype"])
    target = classes(row["V"], row["BT"])

    def logits_and_loss():
        student_scores = student_inputs @ student.weight.t()
        with torch.no_grad():
            teacher_scores = teacher_inputs @ teacher.weight.t()
        students, teachers = student_scores.float(), teacher_scores.float()
        torch.all(target == row["ignore_index"])
        return students, teachers, F.cross_entropy(students, target)

    def divergence(students, teachers):
        students = students / 1.0  # a copy that lives until the end, as in the benchmark
        teachers = teachers / 1.0
        student_shares = F.softmax(students, dim=-1)
        teacher_shares = F.softmax(teachers, dim=-1)
        middle = torch.log((student_shares + teacher_shares) / 2)
        of_student, of_teacher = (
            F.kl_div(middle, torch.log(shares), reduction="batchmean", log_target=True)
            for shares in (student_shares, teacher_shares)
        )
        return (of_student + of_teacher) / 2

    def forward(_other=other):
        students, teachers, hard = logits_and_loss()
        soft = divergence(students, teachers)
        return row["weight_hard_loss"] * hard + row["weight_soft_loss"] * soft.mean()

    return passes(forward, None, row["pass"], keep=False)


def geglu(row):
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    config = LlamaConfig(
        hidden_size=row["hidden_size"],
        intermediate_size=row["intermediate_size"],
        hidden_act=row["hidden_act"],
    )
    x = random(row["bsz"], row["T"], row["hidden_size"], dtype=row["dtype"])
    layer = LlamaMLP(config=config).to("cuda").to(row["dtype"])
    return passes(lambda: layer(x), torch.randn_like, row["pass"])


def normalised(layer, other, x):
    """A normalisation and its counterpart, whose weights the benchmark keeps beside it."""
    gradient = torch.randn_like(x)
    x.requires_grad_(True)

    def full(_other=other):
        layer(x).backward(gradient, retain_graph=True)

    return full


def layer_norm(row):
    other, layer = (nn.LayerNorm(row["N"], eps=row["eps"]).to("cuda") for _ in range(2))
    return normalised(layer, other, random(row["M"], row["N"], dtype=row["dtype"], grad=False))


def rms_norm(row):
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    other, layer = (LlamaRMSNorm(row["H"], eps=row["eps"]).to("cuda") for _ in range(2))
    return normalised(layer, other, random(row["M"], row["H"], dtype=row["dtype"], grad=False))


def group_norm(row):
    channels = row["C"]
    groups = channels // row["channels_per_group"]
    other, layer = (nn.GroupNorm(groups, channels, eps=row["eps"]).to("cuda") for _ in range(2))
    x = random(row["M"], channels, row["H"], dtype=row["dtype"], grad=False)
    return normalised(layer, other, x)  # the benchmark does so for all passes


def rope(row):
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    tokens, width = row.get("seq_len", row.get("T")), row.get("hidden_size", row.get("H"))
    heads, pairs, dtype = row["num_q_heads"], row["num_kv_heads"], row["dtype"]
    config = LlamaConfig(hidden_size=width, num_attention_heads=heads)
    angles = LlamaRotaryEmbedding(config=config, device="cuda")
    q = random(1, tokens, heads, width // heads, dtype=dtype).transpose(1, 2)
    k = random(1, tokens, pairs, width // heads, dtype=dtype).transpose(1, 2)
    gradients = torch.randn_like(q), torch.randn_like(k)
    positions = torch.arange(tokens, device="cuda").unsqueeze(0)
    cosine, sine = angles(k, positions)

    def full(_held=(angles, positions)):
        outputs = apply_rotary_pos_emb(q, k, cosine, sine)
        torch.autograd.grad(outputs, (q, k), gradients, allow_unused=True, retain_graph=True)

    return full


def kl_div(row):
    tokens = row["B"] * row["T"]
    scores = random(tokens, row["V"]).log_softmax(dim=-1)
    target = random(tokens, row["V"], grad=False).softmax(dim=-1)
    return passes(lambda: F.kl_div(scores, target, reduction="batchmean"), None, row["pass"])


def softmax(row):
    x = random(row["N"], dtype=row["dtype"])  # a vector: the benchmark leaves M out
    return passes(lambda: F.softmax(x, dim=-1), torch.ones_like, row["pass"])


def megatron_swiglu(row):
    x = random(row["S"], row["B"], 2 * row["ffn_local"], dtype=torch.bfloat16)

    def full():
        x.grad = None
        gate, up = torch.chunk(x, 2, -1)
        output = F.silu(gate) * up
        output.sum().backward()

    return full


def fused_moe(row):
    """A loop over the experts. Which tokens go to which expert is drawn on the processor, since kernels of
    a virtual GPU do nothing; so the counts are as random as the benchmark's, not the same."""
    tokens, experts, width, chosen = row["T"], row["E"], row["H"], row["K"]
    inner, dtype = row["intermediate_dim"], row["dtype"]
    x = random(tokens, width, dtype=dtype)
    gate_up = random(experts, 2 * inner, width, dtype=dtype) * 0.02
    down = random(experts, width, inner, dtype=dtype) * 0.02
    logits = random(tokens, experts, grad=False)
    index = torch.topk(logits, chosen, dim=-1).indices.to(torch.int32)
    weights = torch.softmax(torch.gather(logits, 1, index.long()), dim=-1).to(dtype)
    weights.requires_grad_(True)
    del logits
    torch.manual_seed(42)
    drawn = torch.topk(torch.rand(tokens, experts, device="cpu"), chosen, dim=-1).indices
    routes = [(drawn == expert).T.nonzero().T.contiguous() for expert in range(experts)]

    def forward():
        final = torch.zeros_like(x)
        with torch.no_grad():
            mask = F.one_hot(index.long(), num_classes=experts).permute(2, 1, 0)
            torch.greater(mask.sum(dim=(-1, -2)), 0)
        for expert, route in enumerate(routes):
            if route.numel() == 0:
                continue
            place, token = route.to("cuda").unbind()
            current = x[token]
            gate, up = F.linear(current, gate_up[expert]).chunk(2, dim=-1)
            current = F.silu(gate) * up
            current = F.linear(current, down[expert])
            current = current * weights[token, place, None]
            final.index_add_(0, token, current.to(final.dtype))
        return final

    return passes(forward, torch.randn_like, row["pass"])


def peak_of(function):
    """Median of the peaks, bytes."""
    peaks = []
    for _ in range(ITERATIONS):
        torch.cuda.memory.reset_peak_memory_stats()
        function()
        peaks.append(torch.cuda.max_memory_allocated())
    return int(statistics.median(peaks))


def main():
    without_values.install()
    for argument in sys.argv[1:]:
        row = json.loads(argument)
        if "dtype" in row:
            row["dtype"] = getattr(torch, row["dtype"].removeprefix("torch."))
        peak = peak_of(globals()[row["kernel"]](row))
        print(json.dumps({"peak_allocated_bytes": peak}), file=sys.stderr, flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
