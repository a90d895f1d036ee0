"""Trains one of bench/frameworks/jax_networks.py for a few steps."""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "frameworks"))

import jax  # noqa: E402
import jax_networks  # noqa: E402
from flax import nnx  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=jax_networks.NETWORKS)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    models, losses, batch, rule = jax_networks.NETWORKS[options.network]({**vars(options), "checkpointing": "off"})
    optimizers = [nnx.Optimizer(model, rule, wrt=nnx.Param) for model in models]
    batch = jax.device_put(batch)

    def step(models, optimizers, batch):
        for place, (loss, optimizer) in enumerate(zip(losses, optimizers)):
            others = models[:place] + models[place + 1 :]
            optimizer.update(models[place], nnx.grad(loss)(models[place], *others, batch))

    step = nnx.jit(step, donate_argnums=(0, 1))
    for _ in range(options.steps):
        step(models, optimizers, batch)
    jax.block_until_ready(nnx.state((models, optimizers)))
    stats = jax.local_devices()[0].memory_stats()
    print({name: stats[name] for name in stats if "bytes" in name})


if __name__ == "__main__":
    main()
