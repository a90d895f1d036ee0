"""Trains a network of Flax with Optax, and says what JAX's allocator held and when.

network: resnet50, bert, dcgan or mlp. preallocate: on or off. fraction: of the card, for preallocation.
allocator: default, platform or cuda_async. These are JAX's own XLA_PYTHON_CLIENT_… variables. parts: the number
of parts of a batch, whose gradients optax.MultiSteps accumulates. precision: fp32, or bf16 for the layers'
results; on a card without arithmetic in bf16, such as a V100, XLA computes in fp32 all the same.
checkpointing: off, or blocks (bottlenecks, or BERT's layers), of which nnx.remat keeps only what goes in.
size: of bert, base or tiny.
"""

import os

import card

given = card.options(
    lacks={
        "growth": "JAX calls it preallocate",
        "limits": "JAX has no logical devices; fraction limits the whole process",
        "shares": "JAX has no logical devices",
        "lengths": "JAX compiles a program for each shape",
        "workspace_mb": "JAX has no limit on the workspaces of convolutions",
    },
    network="bert", batch=32, sequence=128, width=64, steps=3, parts=1, precision="fp32", checkpointing="off",
    preallocate="on", fraction=0.0, allocator="default", size="base")
card.one_of("precision", given["precision"], ("fp32", "bf16"))
card.one_of("checkpointing", given["checkpointing"], ("off", "blocks"))
card.check_only_for(given, {"checkpointing": "off", "size": "base"}, {"checkpointing": ("resnet50", "bert"),
                                                                      "size": ("bert",)})
card.forget_settings("JAX_", "XLA_PYTHON_", "CUDA_")
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "true" if given["preallocate"] == "on" else "false"
os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = given["allocator"]
if given["fraction"]:
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(given["fraction"])

import jax  # noqa: E402
import optax  # noqa: E402
from flax import nnx  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import jax_networks  # noqa: E402


def counters():
    return jax.local_devices()[0].memory_stats() or {}


def step_of(losses):
    """One step, compiled: each model learns in its turn. Old weights and moments are given up for new ones."""

    def step(models, optimizers, batch):
        for place, (loss, optimizer) in enumerate(zip(losses, optimizers)):
            others = models[:place] + models[place + 1 :]
            optimizer.update(models[place], nnx.grad(loss)(models[place], *others, batch))

    return nnx.jit(step, donate_argnums=(0, 1))


def train(figures):
    jax.block_until_ready(jnp.zeros(1))
    figures["first_operation_bytes"] = card.held()
    make = jax_networks.NETWORKS[card.one_of("network", given["network"], jax_networks.NETWORKS)]
    models, losses, batch, rule = make({**given, "batch": given["batch"] // given["parts"]})
    if given["parts"] > 1:
        rule = optax.MultiSteps(rule, given["parts"])
    for model in models:
        model.train()
    optimizers = [nnx.Optimizer(model, rule, wrt=nnx.Param) for model in models]
    batch = jax.device_put(batch)
    jax.block_until_ready(nnx.state((models, optimizers)))
    card.read(figures, "initial", counters()["bytes_in_use"])
    step = step_of(losses)
    for done in range(given["steps"]):
        for _ in range(given["parts"]):
            step(models, optimizers, batch)
        jax.block_until_ready(nnx.state((models, optimizers)))
        if done == 0:
            card.read(figures, "after_step_1", counters()["bytes_in_use"])


def peaks():
    pool = {"pool_bytes": counters()["peak_pool_bytes"]} if "peak_pool_bytes" in counters() else {}
    return {"reserved_bytes.steady_peak": card.held(),
            "allocated_bytes.overall_peak": counters()["peak_bytes_in_use"], **pool}


def why_out_of_memory(error):
    refused = isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)
    return str(error).splitlines()[0] if refused else ""


card.report(f"JAX {jax.__version__}", *card.trained(train, peaks, why_out_of_memory))
