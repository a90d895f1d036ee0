"""Networks in plain JAX. Each function returns the weights, the loss as a function of weights and batch, and
one batch. Values do not matter on a virtual card: weights and data are zeros."""

import jax
import numpy as np
from jax import numpy as jnp

VOCABULARY = 30522


def _dense(inputs, outputs):
    return {"w": np.zeros((inputs, outputs), "float32"), "b": np.zeros(outputs, "float32")}


def _apply(layer, x):
    return x @ layer["w"] + layer["b"]


def _norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-12)


def _cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def bert(given):
    """BERT-base that classifies sentences, without dropout."""
    width, heads, length = 768, 12, given["sequence"]
    layer = {"qkv": _dense(width, 3 * width), "out": _dense(width, width), "up": _dense(width, 4 * width),
             "down": _dense(4 * width, width)}
    weights = {"words": np.zeros((VOCABULARY, width), "float32"), "places": np.zeros((512, width), "float32"),
               "layers": [layer] * 12, "pool": _dense(width, width), "head": _dense(width, 2)}

    def attended(layer, x):
        q, k, v = jnp.split(_apply(layer["qkv"], x), 3, -1)
        q, k, v = (part.reshape(*x.shape[:2], heads, width // heads).swapaxes(1, 2) for part in (q, k, v))
        scores = jax.nn.softmax(q @ k.swapaxes(2, 3) / (width // heads) ** 0.5)
        return _apply(layer["out"], (scores @ v).swapaxes(1, 2).reshape(x.shape))

    def loss(weights, batch):
        tokens, labels = batch
        x = _norm(weights["words"][tokens] + weights["places"][: tokens.shape[1]])
        for layer in weights["layers"]:
            x = _norm(x + attended(layer, x))
            x = _norm(x + _apply(layer["down"], jax.nn.gelu(_apply(layer["up"], x))))
        return _cross_entropy(_apply(weights["head"], jnp.tanh(_apply(weights["pool"], x[:, 0]))), labels)

    batch = np.zeros((given["batch"], length), "int32"), np.zeros(given["batch"], "int32")
    return weights, loss, batch


def mlp(given):
    """Four layers of `width`: a small model."""
    width = given["width"]

    def loss(weights, batch):
        x, y = batch
        for layer in weights:
            x = _apply(layer, x)
        return ((x - y) ** 2).mean()

    return [_dense(width, width)] * 4, loss, (np.zeros((given["batch"], width), "float32"),) * 2


NETWORKS = {"bert": bert, "mlp": mlp}
