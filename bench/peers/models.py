"""The models that Headroom and PyTorch are compared on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """A model of this folder and the workload of Headroom that is the same network."""

    module: str
    workload: str  # {batch} and {image} are filled in
    batch: int
    learning_rate: float
    gradient_tolerance: float  # relative, per weight
    image: int | None = None  # pixels, where they can be chosen
    has_images: bool = False  # then PyTorch is tried with channels_last as well
    has_attention: bool = False  # then PyTorch is tried with scaled_dot_product_attention on a GPU


MODELS = {
    # Rounding flips ReLUs, and BatchNorm over few samples amplifies that: from the usual initial weights,
    # half of PyTorch's own gradients in single precision are 2 % off those in double. With damped residual
    # branches it is 0.2 to 0.6 %, and 1.4 % was the worst of 5 seeds × 161 weights.
    "resnet50": Model(
        module="resnet",
        workload="resnet(batch={batch},classes=10,depth=50,image={image},stem=imagenet,"
        "residual_scale=0.2)",
        batch=8,
        learning_rate=0.0001,
        gradient_tolerance=0.03,
        image=224,
        has_images=True,
    ),
    "resnet18-cifar": Model(
        module="resnet",
        workload="resnet(batch={batch},depth=18,image={image},residual_scale=0.2,stem=cifar)",
        batch=64,
        learning_rate=0.0001,
        gradient_tolerance=0.03,
        image=32,
        has_images=True,
    ),
    "dcgan": Model(
        module="dcgan",
        workload="gan(batch={batch})",
        batch=64,
        learning_rate=0.0001,
        gradient_tolerance=0.03,
        has_images=True,
    ),
    "bert-mini": Model(
        module="bert",
        workload="bert(batch={batch},dropout=0,head=full,sequence=128,size=mini)",
        batch=16,
        learning_rate=0.01,
        gradient_tolerance=1e-4,
        has_attention=True,
    ),
    "bert-base": Model(
        module="bert",
        workload="bert(batch={batch},dropout=0,head=full,sequence=128,size=base)",
        batch=4,
        learning_rate=0.001,
        gradient_tolerance=1e-4,
        has_attention=True,
    ),
}
