"""Trains four layers eagerly and keeps something of every step, as programs do that leak.

keep: nothing, losses, outputs (of the last layer), tapes (and with them every intermediate) or floats.
"""

import os

import card

given = card.options(keep="nothing", steps=24)
card.forget_settings("TF_", "CUDA_", keep=("TF_CUDNN_USE_AUTOTUNE",))
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
errors = card.ErrorOutput()

import tensorflow as tf  # noqa: E402

KEPT = {
    "nothing": lambda tape, outputs, loss: None,
    "losses": lambda tape, outputs, loss: loss,
    "outputs": lambda tape, outputs, loss: outputs,
    "tapes": lambda tape, outputs, loss: tape,
    "floats": lambda tape, outputs, loss: float(loss),
}


def in_use():
    tf.test.experimental.sync_devices()  # so that what other threads free is freed
    return tf.config.experimental.get_memory_info("GPU:0")["current"]


def main():
    keep = KEPT[card.one_of("keep", given["keep"], KEPT)]
    weights = [tf.Variable(tf.zeros((512, 512))) for _ in range(4)]
    batch = tf.zeros((512, 512))
    growth = card.Growth(in_use)
    kept = []
    for _ in range(given["steps"]):
        with tf.GradientTape(persistent=given["keep"] == "tapes") as tape:
            outputs = batch
            for weight in weights:
                outputs = tf.nn.relu(outputs @ weight)
            loss = tf.reduce_mean(outputs**2)
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.01 * gradient)
        kept.append(keep(tape, outputs, loss))
        growth.read()
    growth.report(f"TensorFlow {tf.__version__}")


with errors:
    main()
