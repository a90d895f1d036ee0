"""Trains a network of torchvision's for a few steps, as the measured runs did: float32, random images."""

import argparse

import torch

import without_values


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a function of torchvision.models")
    parser.add_argument("optimizer", help="a class of torch.optim")
    parser.add_argument("batch", type=int)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--image", type=int, default=86, help="width and height in pixels")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument(
        "--zero-grad", choices=("step_start", "before_backward", "after_update"), required=True
    )
    return parser.parse_args(arguments)


def make_model(options):
    without_values.install()
    import torchvision

    return getattr(torchvision.models, options.model)(num_classes=options.classes)


def train(options):
    model = make_model(options).cuda().train()
    optimizer = getattr(torch.optim, options.optimizer)(model.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()
    images = torch.randn(options.batch, 3, options.image, options.image)
    classes = torch.randint(0, options.classes, (options.batch,))
    for _ in range(options.steps):
        inputs, labels = images, classes  # the last batch leaves the GPU before the next one comes
        if options.zero_grad == "step_start":
            optimizer.zero_grad()
        inputs, labels = inputs.to("cuda"), labels.to("cuda")
        outputs = model(inputs)
        loss = loss_of(outputs, labels)
        if options.zero_grad == "before_backward":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        _, predictions = torch.max(outputs, 1)
        if options.zero_grad == "after_update":
            optimizer.zero_grad()


if __name__ == "__main__":
    train(parse())
