"""Prints for each program what a tool or a formula estimates for training its model with Adam on one GPU, as a line
`bytes N`.

The first argument names the estimator, each other is a JSON list: a script of ../programs and its arguments."""

import importlib
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "programs"))


def accelerate(model, _):
    """The line of float32 that `accelerate estimate-memory` prints as "Training using Adam"."""
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    size, _ = calculate_maximum_sizes(model)
    return max(estimate_training_usage(size, "float32").values())


def deepspeed(model, _):
    """ZeRO-2 on one GPU without offloading: weights, gradients and optimizer state in mixed precision."""
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs

    parameters = sum(parameter.numel() for parameter in model.parameters())
    on_host, on_gpu = estimate_zero2_model_states_mem_needs(
        parameters, num_gpus_per_node=1, num_nodes=1, cpu_offload=False,
        additional_buffer_factor=1.5,
    )
    return on_gpu


def megatron(model, options):
    """The activations of Megatron-LM's authors (Korthikanti and others, arXiv 2205.05198, equation 2: 34 s b h and
    5 a s² b bytes a layer in 16 bits), each tensor but the masks of dropout as wide as the program computes, or only
    the input of each layer where it checkpoints; and 16 bytes a parameter, 18 in mixed precision."""
    config = model.config
    hidden, heads, layers = config.hidden_size, config.num_attention_heads, config.num_hidden_layers
    half = getattr(options, "fp16", False)
    width = 2 if half else 4
    tokens = options.batch * options.sequence
    activations = (16 * width + 2) * tokens * hidden + (2 * width + 1) * heads * options.sequence * tokens
    if getattr(options, "checkpoint", False):
        activations = width * tokens * hidden
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return layers * activations + (18 if half else 16) * parameters


ESTIMATORS = {"accelerate": accelerate, "deepspeed": deepspeed, "megatron": megatron}


def main():
    tool, *programs = sys.argv[1:]
    for row in programs:
        script, *arguments = json.loads(row)
        program = importlib.import_module(Path(script).stem)
        options = program.parse(arguments)
        print("bytes", ESTIMATORS[tool](program.make_model(options), options), flush=True)


if __name__ == "__main__":
    main()
