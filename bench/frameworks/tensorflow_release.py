"""Takes a GiB of the card, drops it, and looks how much goes back to TensorFlow's allocator and to the card.

case: large (one tensor), small (1024 tensors), cycles (tensors in objects that refer to each other) or
referenced (the tensor is still held elsewhere). collect: on for gc.collect() after del.
"""

import gc
import os

import card

given = card.options(case="large", collect="on")
card.forget_settings("TF_", "CUDA_", keep=("TF_CUDNN_USE_AUTOTUNE",))
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
errors = card.ErrorOutput()

import tensorflow as tf  # noqa: E402


def readings():
    return tf.config.experimental.get_memory_info("GPU:0")["current"], card.held()


def main():
    tf.zeros((1,))
    gc.disable()  # so that what is freed is freed by what the case names
    start = readings()
    data = card.tensors(given["case"], lambda size: tf.zeros((size,), tf.uint8))
    before = readings()
    kept = list(data) if given["case"] == "referenced" else []
    del data
    if given["collect"] == "on":
        gc.collect()
    after = readings()
    card.report(f"TensorFlow {tf.__version__}", card.returned(start, before, after),
                f"{len(kept)} tensors were still held.")


with errors:
    main()
