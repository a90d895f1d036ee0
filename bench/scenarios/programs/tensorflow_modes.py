"""The same training steps run eagerly and as a graph: peak of resident memory on the CPU.

mode: eager or graph. net: dense (twelve layers of 1024) or rnn (a cell over 32 steps).
"""

import os
import time

import meter

given = meter.options(mode="eager", net="dense", steps=3)
os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import tensorflow as tf  # noqa: E402

BATCH, WIDTH, LAYERS, LENGTH = 512, 1024, 12, 32
if given["net"] == "rnn":
    BATCH, WIDTH, LAYERS = 512, 128, 2
weights = [
    tf.Variable(tf.random.stateless_normal((WIDTH, WIDTH), seed=(i, 1)) * 0.01) for i in range(LAYERS)
]


def loss_of(x):
    if given["net"] == "rnn":
        state = tf.zeros_like(x)
        for _ in range(LENGTH):
            state = tf.tanh(x @ weights[0] + state @ weights[1])
        return tf.reduce_mean(state**2)
    for weight in weights:
        x = tf.nn.relu(x @ weight)
    return tf.reduce_mean(x**2)


def step(x):
    with tf.GradientTape() as tape:
        loss = loss_of(x)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
    return loss


run = tf.function(step) if given["mode"] == "graph" else step
x = tf.ones((BATCH, WIDTH))
before = meter.resident()
meter.restart_peak()
run(x)
start = time.monotonic_ns()
for _ in range(given["steps"]):
    run(x)
meter.report(
    note=f"TensorFlow {tf.__version__}",
    peak_growth_bytes=meter.peak() - before,
    elapsed_ns=time.monotonic_ns() - start,
)
