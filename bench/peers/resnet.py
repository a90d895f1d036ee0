"""ResNet in PyTorch: a model as peer_model.py describes it. He et al., "Deep Residual
Learning for Image Recognition" (2016), with the stride on the 3×3 convolution, as torchvision
builds it; the CIFAR stem is one 3×3 convolution."""

from torch import nn


def residual(channels, width, outputs, stride):
    """The projection of the input, where the shapes differ."""
    if stride == 1 and channels == outputs:
        return None
    return nn.Sequential(
        nn.Conv2d(channels, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
    )


class Basic(nn.Module):
    """3×3 (which carries the stride), 3×3, plus the input."""

    expansion = 1

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = residual(channels, width, width, stride)

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + shortcut)


class Bottleneck(nn.Module):
    """1×1, 3×3 (which carries the stride), 1×1 to four times the width, plus the input."""

    expansion = 4

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = residual(channels, width, 4 * width, stride)

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet(nn.Module):
    def __init__(self, block, stages, width, kernel, classes):
        """`stages`: blocks in each; `kernel`: of the first convolution, 3 for CIFAR's stem."""
        super().__init__()
        large = kernel == 7
        self.conv1 = nn.Conv2d(3, width, kernel, 2 if large else 1, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        channels = width
        for stage, blocks in enumerate(stages):
            layer = nn.Sequential()
            for index in range(blocks):
                stride = 2 if stage > 0 and index == 0 else 1
                layer.append(block(channels, width << stage, stride))
                channels = (width << stage) * block.expansion
            setattr(self, f"layer{stage + 1}", layer)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def build(values):
    """The network whose values Headroom exported."""
    width, _, kernel, _ = values["conv1.weight"]["shape"]
    stages = [
        sum(name.startswith(f"layer{stage}.") and name.endswith(".conv1.weight") for name in values)
        for stage in range(1, 5)
    ]
    block = Bottleneck if "layer1.0.conv3.weight" in values else Basic
    return ResNet(block, stages, width, kernel, values["fc.weight"]["shape"][0])


def loss(model, batch):
    images = batch["images"].to(next(model.parameters()).dtype)
    return nn.functional.cross_entropy(model(images), batch["labels"].long())
