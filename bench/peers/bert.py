"""BERT with a masked-language-model head in PyTorch: a model as peer_model.py describes it. It is
written like Hugging Face's: three projections, heads split by views, an additive mask. The scores
of attention are tensors, as in Headroom, unless `fused_attention` is set."""

import torch
from torch import nn


class Attention(nn.Module):
    fused_attention = False

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(hidden, hidden))
        self.norm = nn.LayerNorm(hidden, eps=1e-12)

    def split(self, x):
        """[batch, sequence, hidden] → [batch, heads, sequence, width]"""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = (self.split(each(x)) for each in (self.query, self.key, self.value))
        if self.fused_attention:
            context = nn.functional.scaled_dot_product_attention(query, key, value, mask.to(query.dtype))
        else:
            scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5 + mask
            context = scores.softmax(-1) @ value
        context = context.transpose(1, 2).reshape(x.shape)
        return self.norm(self.output(context) + x)


class FeedForward(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.inner = nn.Linear(hidden, 4 * hidden)
        self.output = nn.Linear(4 * hidden, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x):
        return self.norm(self.output(nn.functional.gelu(self.inner(x))) + x)


class Layer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.attention = Attention(hidden, heads)
        self.feed_forward = FeedForward(hidden)

    def forward(self, x, mask):
        return self.feed_forward(self.attention(x, mask))


class Embeddings(nn.Module):
    def __init__(self, vocabulary, positions, hidden):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden)
        self.segments = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, tokens, positions, segments):
        return self.norm(self.tokens(tokens) + self.positions(positions) + self.segments(segments))


class Head(nn.Module):
    """Scores of all tokens; the output weights are the token embeddings."""

    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.transform = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, x, table):
        x = self.norm(nn.functional.gelu(self.transform(x)))
        return nn.functional.linear(x, table, self.bias)


class Bert(nn.Module):
    """Devlin et al. 2019, without pooler and next-sentence head; dropout 0."""

    def __init__(self, vocabulary, positions, hidden, heads, layers):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, positions, hidden)
        self.encoder = nn.ModuleList(Layer(hidden, heads) for _ in range(layers))
        self.head = Head(vocabulary, hidden)

    def forward(self, tokens, positions, segments, mask, guessed):
        shape = mask.shape
        x = self.embeddings(tokens.view(shape), positions.view(shape), segments.view(shape))
        bias = torch.zeros(shape, dtype=x.dtype, device=x.device)
        bias = bias.masked_fill(mask == 0, torch.finfo(x.dtype).min)
        for layer in self.encoder:
            x = layer(x, bias[:, None, None, :])
        x = x.view(-1, x.shape[-1])
        if guessed is not None:
            x = x[guessed]
        return self.head(x, self.embeddings.tokens.weight)


def build(values):
    """The network whose values Headroom exported; heads are 64 wide, as in all published sizes."""
    vocabulary, hidden = values["embeddings.tokens.weight"]["shape"]
    return Bert(
        vocabulary,
        values["embeddings.positions.weight"]["shape"][0],
        hidden,
        hidden // 64,
        sum(name.endswith(".attention.query.weight") for name in values),
    )


def loss(model, batch):
    numbers = {name: array.long() for name, array in batch.items()}
    logits = model(
        *(numbers[name] for name in ("tokens", "positions", "segments", "mask")),
        numbers.get("guessed"),
    )
    return nn.functional.cross_entropy(logits, numbers["labels"], ignore_index=-1)
