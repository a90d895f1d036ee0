"""Fills the card until TensorFlow's allocator refuses a GiB, then asks for it again, with the statistics
reset or not.

reset: on or off.
"""

import os

import card

given = card.options(reset="off")
card.forget_settings("TF_", "CUDA_", keep=("TF_CUDNN_USE_AUTOTUNE",))
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
errors = card.ErrorOutput()

import tensorflow as tf  # noqa: E402

SIZE = 1 << 30


def room_for_one(kept):
    try:
        kept.append(tf.zeros((SIZE,), tf.uint8))
        return True
    except tf.errors.ResourceExhaustedError:
        return False


def main():
    kept = []
    while room_for_one(kept):
        pass
    before = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    if given["reset"] == "on":
        tf.config.experimental.reset_memory_stats("GPU:0")
    served = room_for_one(kept)
    info = tf.config.experimental.get_memory_info("GPU:0")
    note = f"The recorded peak was {before} B before and {info['peak']} B after, with {info['current']} B in use."
    card.report(f"TensorFlow {tf.__version__}", {"holds": float(served)}, note)


with errors:
    main()
