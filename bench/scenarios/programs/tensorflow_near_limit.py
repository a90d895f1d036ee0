"""Fills a GPU until an allocation fails, then tries it again, with the statistics reset or not.

reset: on or off. Needs a GPU.
"""

import os

import meter

given = meter.options(reset="off")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402

if not tf.config.list_physical_devices("GPU"):
    meter.report(why_not_engaged="TensorFlow sees no GPU")
    raise SystemExit


def fits(bytes_wanted):
    try:
        tf.zeros((bytes_wanted,), tf.uint8)
        return True
    except tf.errors.ResourceExhaustedError:
        return False


held, size = [], 1 << 30
while fits(size):
    held.append(tf.zeros((size,), tf.uint8))
if given["reset"] == "on":
    tf.config.experimental.reset_memory_stats("GPU:0")
meter.report(note=f"TensorFlow {tf.__version__}", holds=float(fits(size)))
