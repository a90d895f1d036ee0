"""DCGAN in PyTorch: a model as peer_model.py describes it. Radford et al. 2016, written like
PyTorch's own example: the discriminator learns from real and from detached generated images, then
the generator learns from the discriminator's scores of new ones."""

import torch
from torch import nn


class Block(nn.Module):
    """A convolution, transposed or not, with normalisation where `norm` is given."""

    def __init__(self, convolution, norm, activation):
        super().__init__()
        # The weight stands beside `norm` under the block's own name.
        self.weight = convolution.weight
        self.stride, self.padding = convolution.stride, convolution.padding
        self.apply_to = (
            nn.functional.conv_transpose2d
            if isinstance(convolution, nn.ConvTranspose2d)
            else nn.functional.conv2d
        )
        self.norm = norm
        self.activation = activation

    def forward(self, x):
        x = self.apply_to(x, self.weight, stride=self.stride, padding=self.padding)
        if self.norm is not None:
            x = self.norm(x)
        return self.activation(x)


def generator(latent, width):
    channels = [latent, 8 * width, 4 * width, 2 * width, width, 3]
    blocks = nn.Sequential()
    for i, (inputs, outputs) in enumerate(zip(channels, channels[1:])):
        stride, padding = (1, 0) if i == 0 else (2, 1)
        last = i == 4
        blocks.append(
            Block(
                nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False),
                None if last else nn.BatchNorm2d(outputs),
                nn.Tanh() if last else nn.ReLU(inplace=True),
            )
        )
    return blocks


def discriminator(width):
    channels = [3, width, 2 * width, 4 * width, 8 * width, 1]
    blocks = nn.Sequential()
    for i, (inputs, outputs) in enumerate(zip(channels, channels[1:])):
        stride, padding = (1, 0) if i == 4 else (2, 1)
        blocks.append(
            Block(
                nn.Conv2d(inputs, outputs, 4, stride, padding, bias=False),
                nn.BatchNorm2d(outputs) if 0 < i < 4 else None,
                nn.Identity() if i == 4 else nn.LeakyReLU(0.2, inplace=True),
            )
        )
    return blocks


class Networks(nn.Module):
    def __init__(self, latent, width):
        super().__init__()
        self.generator = generator(latent, width)
        self.discriminator = discriminator(width)


def build(values):
    """The networks whose values Headroom exported."""
    latent, channels = values["generator.0.weight"]["shape"][:2]
    return Networks(latent, channels // 8)


def taken_for(target, logits):
    return nn.functional.binary_cross_entropy_with_logits(
        logits, torch.full_like(logits, float(target))
    )


def discriminator_loss(model, batch):
    dtype = next(model.parameters()).dtype
    real = model.discriminator(batch["images"].to(dtype))
    with torch.no_grad():
        generated = model.generator(batch["discriminator_noise"].to(dtype))
    return taken_for(1, real) + taken_for(0, model.discriminator(generated))


def generator_loss(model, batch):
    dtype = next(model.parameters()).dtype
    generated = model.generator(batch["generator_noise"].to(dtype))
    return taken_for(1, model.discriminator(generated))


# The weights that each turn trains; the others are frozen meanwhile.
TURNS = (("discriminator.", discriminator_loss), ("generator.", generator_loss))
