"""TensorFlow training steps that keep something of each step, and how memory grows.

keep: nothing, losses (the loss tensor), outputs (the activations of the last layer), tapes (the
tape, and with it every intermediate), floats (the loss as a number).
"""

import os

import meter

given = meter.options(keep="nothing", steps=24)
os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import tensorflow as tf  # noqa: E402

WARMUP = 6
weights = [tf.Variable(tf.random.stateless_normal((512, 512), seed=(i, 1)) * 0.05) for i in range(4)]
kept = []


def step(x):
    with tf.GradientTape(persistent=given["keep"] == "tapes") as tape:
        for weight in weights:
            x = tf.nn.relu(x @ weight)
        loss = tf.reduce_mean(x**2)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
    if given["keep"] == "losses":
        kept.append(loss)
    elif given["keep"] == "outputs":
        kept.append(x)
    elif given["keep"] == "tapes":
        kept.append(tape)
    elif given["keep"] == "floats":
        kept.append(float(loss))


batch = tf.ones((512, 512))
readings = []
for _ in range(given["steps"]):
    step(batch)
    readings.append(meter.resident())
meter.report(
    note=f"TensorFlow {tf.__version__}", growth_bytes_per_step=meter.slope(readings[WARMUP:])
)
