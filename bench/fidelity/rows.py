"""The measured runs, and how each is repeated on the virtual GPU."""

import csv
import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 2**20

LANGUAGE, LANGUAGE_A100 = "language models", "language models of unknown sequence length, A100"
CONVOLUTIONAL, OPERATORS = "convolutional networks", "single operators"
DOCUMENTED = "runs of documentation and benchmarks"

# Bytes that the sampler saw beyond the bare CUDA context and PyTorch's reserved bytes: the code of the
# kernels, which CUDA loads when they are first called. Found in these runs; a constant per kind.
KERNEL_CODE = {
    LANGUAGE: 18 * MIB,
    LANGUAGE_A100: 18 * MIB,
    CONVOLUTIONAL: 26 * MIB,
    OPERATORS: 0,  # those runs report PyTorch's own count
    DOCUMENTED: 0,  # the same, or CUDA 11 loaded all kernels with the context, which is left out
}

# Memory as the measured machines had it; the context is about what CUDA 12 takes there.
CARDS = {
    "NVIDIA-GeForce-RTX-3060": ["rtx3060", "--memory", "12036MiB", "--context", "150MiB"],
    "NVIDIA-GeForce-RTX-4060": ["rtx4060", "--memory", "7932MiB", "--context", "150MiB"],
    "NVIDIA-GeForce-RTX-4060(device1,7.643GiB)": [
        "rtx4060", "--memory", "7932MiB", "--context", "150MiB",
    ],
    "NVIDIA-A100-SXM4-40GB": ["a100-40gb"],
    "NVIDIA A100-SXM4-80GB": ["a100-80gb"],
    "NVIDIA H100 80GB HBM3": ["h100-80gb"],
    "NVIDIA H100 PCIe": ["h100-80gb"],  # the same memory and compute capability
    "NVIDIA GeForce RTX 3090": ["rtx3090"],
    "NVIDIA B200": ["b200"],
}

TORCHVISION = {
    "ConvNeXtBase": "convnext_base",
    "MnasNet": "mnasnet1_0",
    "MobileNetV2": "mobilenet_v2",
    "RegNetX400MF": "regnet_x_400mf",
    "ResNet50": "resnet50",
    "ResNet101": "resnet101",
    "VGG11": "vgg11",
    "VGG16": "vgg16",
}
TEN_CLASSES = ("MnasNet",)  # the others: 1000

PUBLISHED_ESTIMATES = ("xmem", "dnnmem", "schedtune", "llmem")


@dataclass
class Row:
    name: str
    kind: str
    measured_bytes: int
    card: list[str]  # arguments of `headroom gpu`
    program: list | dict  # script and arguments; for liger.py its description of the row
    workspaces: tuple[str, ...] = ("",)  # whose convolution workspaces count
    group: str | None = None  # rows that one process can run
    estimates: dict[str, float] = field(default_factory=dict)  # estimator: bytes
    optimizer: str = ""
    counter: str = "peak_reserved_bytes"  # PyTorch's counter that the measured bytes correspond to
    has_model: bool = True  # whether estimators can be asked about the program

    @property
    def constant_bytes(self):
        return KERNEL_CODE[self.kind]


def lines_of(name):
    with open(HERE / name, newline="") as lines:
        return list(csv.DictReader(lines))


def training_row(line):
    kind = {"Transformer": LANGUAGE, "TransformerA100": LANGUAGE_A100}.get(line["set"], CONVOLUTIONAL)
    # A star marks the default of the program, where the run's configuration does not say.
    common = [line["optimizer"], line["batch"], "--zero-grad", line["zero_grad"].rstrip("*")]
    if kind == CONVOLUTIONAL:
        program = ["convolutional.py", TORCHVISION[line["model"]], *common]
        if line["model"].startswith(TEN_CLASSES):
            program += ["--classes", "10"]
    else:
        program = ["language_model.py", line["model"].split("/")[-1], *common]
    gpu = line["gpu"].split("(")[0].removeprefix("NVIDIA-").removeprefix("GeForce-")
    return Row(
        name=f"{line['model']} {line['optimizer']} batch {line['batch']} {line['zero_grad']} {gpu}",
        kind=kind,
        measured_bytes=int(line["measured_bytes"]),
        card=CARDS[line["gpu"]],
        program=program,
        workspaces=("cuDNN", "none") if kind == CONVOLUTIONAL else ("",),
        estimates={
            name: float(line[f"estimate_{name}"])
            for name in PUBLISHED_ESTIMATES
            if line[f"estimate_{name}"]
        },
        optimizer=line["optimizer"],
    )


def operator_row(line):
    config = json.loads(line["config"])
    config[line["x_name"]] = int(line["x_value"])
    fixed = ""
    for name in ("T", "dtype", "hidden_size", "seq_len"):  # distinguishes rows of one kernel
        if name in config and name != line["x_name"]:
            fixed += f" {name}={config[name]}"
    gpu = line["gpu"].removeprefix("NVIDIA ").removeprefix("GeForce ")
    return Row(
        name=f"{line['kernel']} {line['pass']} {line['x_name']}={line['x_value']}{fixed} {gpu}",
        kind=OPERATORS,
        measured_bytes=round(float(line["measured_mb"]) * MIB),
        card=CARDS[line["gpu"]],
        program={"kernel": line["kernel"], "pass": line["pass"], **config},
        group=f"{line['kernel']} {line['pass']} {gpu}",
        has_model=False,
    )


def documented_row(line):
    program = shlex.split(line["program"])
    return Row(
        name=f"{line['model']} {line['optimizer']} batch {line['batch']} {line['details']} {line['gpu']}",
        kind=DOCUMENTED,
        measured_bytes=int(line["measured_bytes"]),
        card=shlex.split(line["card"]),
        program=program,
        optimizer=line["optimizer"],
        counter=f"peak_{line['counter']}_bytes",
        has_model=program[0] == "bert_large.py",
    )


def read():
    found = [training_row(line) for line in lines_of("xmem_runs.csv")]
    found += [documented_row(line) for line in lines_of("published.csv") if line["program"]]
    found += [operator_row(line) for line in lines_of("liger_baselines.csv")]
    by_name = {row.name: row for row in found}
    for line in lines_of("estimates.csv"):
        if line["bytes"] and line["row"] in by_name:
            by_name[line["row"]].estimates[line["estimator"]] = float(line["bytes"])
    return found


def names():
    return [row.name for row in read()]
