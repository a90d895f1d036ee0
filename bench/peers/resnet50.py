"""ResNet-50 in PyTorch, for the peer: what peer_model.py says of a model."""

from torch import nn


class Bottleneck(nn.Module):
    """1×1, 3×3 (which carries the stride), 1×1 to four times the width, plus the input."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet50(nn.Module):
    """He et al., "Deep Residual Learning for Image Recognition" (2016), with the stride on the
    3×3 convolution, as torchvision builds it."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, (blocks, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512)), start=1):
            layer = nn.Sequential()
            for block in range(blocks):
                stride = 2 if stage > 1 and block == 0 else 1
                layer.append(Bottleneck(channels, width, stride))
                channels = 4 * width
            setattr(self, f"layer{stage}", layer)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def build(values):
    """The network whose values Headroom exported."""
    return ResNet50(classes=values["fc.weight"]["shape"][0])


def loss(model, batch):
    images = batch["images"].to(next(model.parameters()).dtype)
    return nn.functional.cross_entropy(model(images), batch["labels"].long())
