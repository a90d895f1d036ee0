"""Networks as users of PyTorch write them. Each function returns a model, its loss as a function of a batch,
one batch, and the usual optimizer. Values do not matter on a virtual card, so the data are zeros."""

import card
import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda"


def resnet(given):
    """torchvision's own residual network with stochastic gradient descent."""
    import torchvision

    model = getattr(torchvision.models, f"resnet{given['depth']}")(num_classes=given["classes"]).to(DEVICE)
    images = torch.zeros(given["batch"], 3, given["image"], given["image"])
    batch = (images, torch.zeros(given["batch"], dtype=torch.long))
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, lambda images, labels: functional.cross_entropy(model(images), labels), batch, sgd


def resnet50(given):
    return resnet({**given, "depth": 50, "image": 224, "classes": 1000})


def bert(given):
    """Hugging Face's BERT-base, which classifies sentences, with AdamW."""
    import transformers

    model = transformers.BertForSequenceClassification(transformers.BertConfig()).to(DEVICE)
    size = given["batch"], given["sequence"]
    batch = (torch.zeros(size, dtype=torch.long), torch.zeros(given["batch"], dtype=torch.long))
    adam = torch.optim.AdamW(model.parameters(), lr=2e-5)
    return model, lambda tokens, labels: model(input_ids=tokens, labels=labels).loss, batch, adam


def language_model(model, given):
    """A model of Hugging Face that predicts tokens, with AdamW."""
    size = given["batch"], given["sequence"]
    batch = (torch.zeros(size, dtype=torch.long), torch.zeros(size, dtype=torch.long))
    adam = torch.optim.AdamW(model.parameters(), lr=2e-5)
    return model, lambda tokens, labels: model(input_ids=tokens, labels=labels).loss, batch, adam


# Layers, width and heads by size, as Headroom's workloads of these names have them.
BERT_SIZES = {"tiny": (2, 128, 2), "mini": (4, 256, 4), "base": (12, 768, 12), "large": (24, 1024, 16)}
GPT_SIZES = {"tiny": (2, 128, 2), "small": (12, 768, 12), "medium": (24, 1024, 16), "large": (24, 1536, 16),
             "xl": (24, 2048, 16), "2.7b": (32, 2560, 32), "6.7b": (32, 4096, 32), "13b": (40, 5120, 40)}


def masked_bert(given):
    """Hugging Face's BERT, which predicts masked words."""
    import transformers

    layers, width, heads = BERT_SIZES[card.one_of("size", given["size"], BERT_SIZES)]
    config = transformers.BertConfig(
        vocab_size=given["vocabulary"] or 30522, hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=4 * width,
        max_position_embeddings=max(512, given["sequence"]))
    return language_model(transformers.BertForMaskedLM(config).to(DEVICE), given)


def gpt2(given):
    """Hugging Face's GPT-2, in the sizes of GPT-3."""
    import transformers

    layers, width, heads = GPT_SIZES[card.one_of("size", given["size"], GPT_SIZES)]
    config = transformers.GPT2Config(
        vocab_size=given["vocabulary"] or 50257, n_embd=width, n_layer=layers, n_head=heads,
        n_positions=max(2048, given["sequence"]))
    return language_model(transformers.GPT2LMHeadModel(config).to(DEVICE), given)


class Gan(nn.Module):
    """The DCGAN of PyTorch's examples, for images of 64 x 64."""

    def __init__(self, latent, width):
        super().__init__()
        self.latent = latent
        sizes = [latent, 8 * width, 4 * width, 2 * width, width, 3]
        made = []
        for place, (before, after) in enumerate(zip(sizes, sizes[1:])):
            stride, padding = (1, 0) if place == 0 else (2, 1)
            made += [nn.ConvTranspose2d(before, after, 4, stride, padding, bias=False)]
            made += [nn.Tanh()] if after == 3 else [nn.BatchNorm2d(after), nn.ReLU(True)]
        self.generator = nn.Sequential(*made)
        judged = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
        for factor in (1, 2, 4):
            judged += [nn.Conv2d(factor * width, 2 * factor * width, 4, 2, 1, bias=False),
                       nn.BatchNorm2d(2 * factor * width), nn.LeakyReLU(0.2, True)]
        self.discriminator = nn.Sequential(*judged, nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False), nn.Flatten())


def dcgan(given):
    """The loss of the discriminator's turn takes its step, so that the optimizer's is the generator's."""
    model = Gan(latent=100, width=given["width"]).to(DEVICE)
    of_discriminator = torch.optim.Adam(model.discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    of_generator = torch.optim.Adam(model.generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    loss_of = functional.binary_cross_entropy_with_logits

    def loss(images):
        ones = torch.ones(len(images), 1, device=DEVICE)
        made = model.generator(torch.randn(len(images), model.latent, 1, 1, device=DEVICE))
        of_discriminator.zero_grad()
        loss_of(model.discriminator(images), ones).backward()
        loss_of(model.discriminator(made.detach()), torch.zeros_like(ones)).backward()
        of_discriminator.step()
        return loss_of(model.discriminator(made), ones)

    return model, loss, (torch.zeros(given["batch"], 3, 64, 64),), of_generator


def mlp(given):
    """Four layers of `width`: a small model."""
    width = given["width"]
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(4)]).to(DEVICE)
    batch = (torch.zeros(given["batch"], width),) * 2
    return model, lambda x, y: functional.mse_loss(model(x), y), batch, torch.optim.Adam(model.parameters())


def checkpoint_blocks(model):
    """Keeps only what goes into each block of the model; the rest is computed again on the way back."""
    if hasattr(model, "gradient_checkpointing_enable"):
        model.gradient_checkpointing_enable()
        return
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper
    from torchvision.models.resnet import BasicBlock, Bottleneck

    checkpoint_wrapper.apply_activation_checkpointing(
        model, check_fn=lambda module: isinstance(module, (BasicBlock, Bottleneck)))


NETWORKS = {"resnet50": resnet50, "resnet": resnet, "bert": bert, "masked_bert": masked_bert, "gpt2": gpt2,
            "dcgan": dcgan, "mlp": mlp}
OPTIMIZERS = {
    "sgd": lambda model: torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    "adam": lambda model: torch.optim.AdamW(model.parameters(), lr=1e-3),
}


def make(given):
    """The network of given["network"], with the optimizer of given["optimizer"]."""
    network = NETWORKS[card.one_of("network", given["network"], NETWORKS)]
    model, loss_of, batch, optimizer = network(given)
    if card.one_of("optimizer", given["optimizer"], ("usual", *OPTIMIZERS)) != "usual":
        optimizer = OPTIMIZERS[given["optimizer"]](model)
    return model, loss_of, batch, optimizer
