"""Prints for each program what a tool estimates for training its model with Adam on one GPU, as a line `bytes N`.

The first argument is accelerate or deepspeed, each other a JSON list: a script of ../programs and its arguments."""

import importlib
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "programs"))


def accelerate(model):
    """The line of float32 that `accelerate estimate-memory` prints as "Training using Adam"."""
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    size, _ = calculate_maximum_sizes(model)
    return max(estimate_training_usage(size, "float32").values())


def deepspeed(model):
    """ZeRO-2 on one GPU without offloading: weights, gradients and optimizer state in mixed precision."""
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs

    parameters = sum(parameter.numel() for parameter in model.parameters())
    on_host, on_gpu = estimate_zero2_model_states_mem_needs(
        parameters, num_gpus_per_node=1, num_nodes=1, cpu_offload=False,
        additional_buffer_factor=1.5,
    )
    return on_gpu


def main():
    tool, *programs = sys.argv[1:]
    for row in programs:
        script, *arguments = json.loads(row)
        program = importlib.import_module(Path(script).stem)
        model = program.make_model(program.parse(arguments))
        print("bytes", {"accelerate": accelerate, "deepspeed": deepspeed}[tool](model), flush=True)


if __name__ == "__main__":
    main()
