"""Trains one of bench/frameworks/pytorch_networks.py, or a network below, for a few steps on random data."""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "frameworks"))

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import pytorch_networks  # noqa: E402

TYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Recurrent(nn.Module):
    """Words, two recurrent layers, and a class for each sentence."""

    def __init__(self, layer, width):
        super().__init__()
        self.words = nn.Embedding(10000, width)
        self.layers = layer(width, width, num_layers=2, batch_first=True, bidirectional=True)
        self.classes = nn.Linear(2 * width, 10)

    def forward(self, tokens):
        return self.classes(self.layers(self.words(tokens))[0][:, -1])


def recurrent(layer):
    def make(given):
        model = Recurrent(layer, given["width"]).cuda()
        batch = (torch.zeros(given["batch"], given["sequence"], dtype=torch.long),
                 torch.zeros(given["batch"], dtype=torch.long))
        adam = torch.optim.Adam(model.parameters())
        return model, lambda tokens, labels: functional.cross_entropy(model(tokens), labels), batch, adam

    return make


def transformer(given):
    """PyTorch's own encoder, whose attention is scaled_dot_product_attention."""
    width = given["width"]
    layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, 6).cuda()
    batch = (torch.zeros(given["batch"], given["sequence"], width),) * 2
    return model, lambda x, y: functional.mse_loss(model(x), y), batch, torch.optim.AdamW(model.parameters())


pytorch_networks.NETWORKS.update(lstm=recurrent(nn.LSTM), gru=recurrent(nn.GRU), transformer=transformer)


def random_like(part):
    """Random values for one part of a batch: class 0 or 1, or normally distributed."""
    return torch.randint(0, 2, part.shape) if part.dtype == torch.long else torch.randn(part.shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=pytorch_networks.NETWORKS)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--size", default="base")
    parser.add_argument("--precision", choices=TYPES, default="fp32")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--benchmark", action="store_true", help="let cuDNN measure its algorithms")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = options.benchmark
    given = {**vars(options), "vocabulary": 0, "optimizer": "usual", "depth": 50, "image": 224, "classes": 1000}
    model, loss_of, batch, optimizer = pytorch_networks.make(given)
    if options.checkpoint:
        pytorch_networks.checkpoint_blocks(model)
    if options.channels_last:
        model.to(memory_format=torch.channels_last)
    if options.compile:
        model.compile()
    scaler = torch.amp.GradScaler(enabled=options.precision == "fp16")
    for _ in range(options.steps):
        parts = [random_like(part).to("cuda") for part in batch]
        if options.channels_last:
            parts[0] = parts[0].to(memory_format=torch.channels_last)
        with torch.autocast("cuda", TYPES[options.precision], enabled=options.precision != "fp32"):
            loss = loss_of(*parts)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
