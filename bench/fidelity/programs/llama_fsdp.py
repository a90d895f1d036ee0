"""Trains Llama 3.1 8B as one of the ranks over which FSDP2 shards it, as torchtitan did at the end of 2024:
weights in float32, computed in bfloat16, gradients reduced in float32; of each block the results of
attention and of every second matrix product are kept, the others computed again."""

import argparse
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

WIDTH, LAYERS, HEADS, KEY_HEADS, HIDDEN, VOCABULARY = 4096, 32, 32, 8, 14336, 128256
HEAD = WIDTH // HEADS
KEPT = {
    torch.ops.aten.mm.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops.aten._scaled_dot_product_flash_attention.default,
}


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-5)
        return wide.type_as(x) * self.weight


def rotated(x, turns):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[None, : x.shape[1], None]).flatten(3).type_as(x)


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.hidden_norm = RMSNorm(), RMSNorm()
        self.query, self.output = linear(WIDTH, WIDTH), linear(WIDTH, WIDTH)
        self.key, self.value = linear(WIDTH, KEY_HEADS * HEAD), linear(WIDTH, KEY_HEADS * HEAD)
        self.gate, self.up, self.down = linear(WIDTH, HIDDEN), linear(WIDTH, HIDDEN), linear(HIDDEN, WIDTH)

    def attention(self, x, turns):
        batch, sequence, _ = x.shape
        query, key, value = self.query(x), self.key(x), self.value(x)
        query, key, value = (t.view(batch, sequence, -1, HEAD) for t in (query, key, value))
        query, key = rotated(query, turns), rotated(key, turns)
        shape = (batch, sequence, KEY_HEADS, HEADS // KEY_HEADS, HEAD)
        key, value = (
            t[:, :, :, None].expand(shape).reshape(batch, sequence, HEADS, HEAD) for t in (key, value)
        )
        query, key, value = (t.transpose(1, 2) for t in (query, key, value))
        result = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(result.transpose(1, 2).contiguous().view(batch, sequence, -1))

    def forward(self, x, turns):
        x = x + self.attention(self.attention_norm(x), turns)
        normed = self.hidden_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    def __init__(self, sequence):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.output = RMSNorm(), linear(WIDTH, VOCABULARY)
        self.register_buffer("turns", torch.empty(sequence, HEAD // 2, dtype=torch.complex64))

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.turns)
        return self.output(self.norm(x))


def contexts():
    products = defaultdict(int)

    def policy(context, function, *_, **__):
        keep = function in KEPT
        if function == torch.ops.aten.mm.default:
            products[context.is_recompute] += 1
            keep = products[context.is_recompute] % 2 == 1
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def shard(model):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for at, block in enumerate(model.blocks):
        block = checkpoint_wrapper(block, context_fn=contexts, preserve_rng_state=False)
        model.blocks[at] = block
        fully_shard(block, mp_policy=policy, reshard_after_forward=at < LAYERS - 1)
    fully_shard(model, mp_policy=policy)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("batch", type=int)
    parser.add_argument("--sequence", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()

    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl")
    with torch.device("meta"):
        model = Llama(options.sequence)
    shard(model)
    model.to_empty(device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, foreach=True)
    for _ in range(options.steps):
        tokens = torch.randint(0, VOCABULARY, (options.batch, options.sequence)).to("cuda")
        labels = torch.randint(0, VOCABULARY, (options.batch, options.sequence)).to("cuda")
        optimizer.zero_grad()
        scores = model(tokens)
        loss = F.cross_entropy(scores.flatten(0, 1).float(), labels.flatten(0, 1))
        del scores
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()


if __name__ == "__main__":
    main()
