"""Trains a network with JAX, by Adam written in JAX, and says what its allocator held and when.

network: bert or mlp. preallocate: on or off. fraction: of the card, for preallocation. allocator: default,
platform or cuda_async. These are JAX's own XLA_PYTHON_CLIENT_… variables.
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
    network="bert", batch=32, sequence=128, width=64, steps=3, preallocate="on", fraction=0.0,
    allocator="default")
card.forget_settings("JAX_", "XLA_PYTHON_", "CUDA_")
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "true" if given["preallocate"] == "on" else "false"
os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = given["allocator"]
if given["fraction"]:
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(given["fraction"])

import jax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import jax_networks  # noqa: E402


def counters():
    return jax.local_devices()[0].memory_stats() or {}


def step_of(loss):
    """One step of Adam, compiled; old weights and moments are given up for new ones."""

    def step(weights, moments, batch):
        gradients = jax.grad(loss)(weights, batch)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradients)
        weights = jax.tree.map(lambda w, m, v: w - 1e-4 * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
        return weights, (first, second)

    return jax.jit(step, donate_argnums=(0, 1))


def train(figures):
    jax.block_until_ready(jnp.zeros(1))
    figures["first_operation_bytes"] = card.held()
    make = jax_networks.NETWORKS[card.one_of("network", given["network"], jax_networks.NETWORKS)]
    weights, loss, batch = make(given)
    weights, batch = jax.device_put(weights), jax.device_put(batch)
    moments = tuple(jax.device_put(jax.tree.map(jnp.zeros_like, weights)) for _ in range(2))
    card.read(figures, "initial", counters()["bytes_in_use"])
    step = step_of(loss)
    for done in range(given["steps"]):
        weights, moments = jax.block_until_ready(step(weights, moments, batch))
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
