"""tf.data beside a plain loop: memory and time of one epoch over 128 MiB of samples.

case: loop (arrays in memory, sliced), pipeline (from_tensor_slices of the same arrays, shuffled over
10,000, batched, prefetched), file (records read from a file as needed, shuffled over 64), waiting
(3,200 small samples from a generator that waits, for time). prefetch: batches ahead in the last two,
0 for none. produce_ms: waiting of the generator per batch. consume_ms: waiting of the loop per batch.
"""

import os
import tempfile
import time

import meter

given = meter.options(case="loop", prefetch=0, produce_ms=0.0, consume_ms=0.0)
os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

SAMPLES, FEATURES, BATCH = 32768, 1024, 32
if given["case"] == "waiting":
    SAMPLES, FEATURES = 3200, 16


def arrays():
    return np.ones((SAMPLES, FEATURES), np.float32)


def batches(file):
    if given["case"] == "loop":
        x = arrays()
        return (x[i : i + BATCH] for i in range(0, SAMPLES, BATCH))
    if given["case"] == "pipeline":
        data = tf.data.Dataset.from_tensor_slices(arrays()).shuffle(10_000).batch(BATCH)
        return data.prefetch(tf.data.AUTOTUNE)
    if given["case"] == "file":
        data = tf.data.FixedLengthRecordDataset(file, FEATURES * 4).shuffle(64).batch(BATCH)
        return data.prefetch(given["prefetch"]) if given["prefetch"] else data

    def produce():
        for _ in range(SAMPLES // BATCH):
            time.sleep(given["produce_ms"] / 1000)
            yield np.ones((BATCH, FEATURES), np.float32)

    data = tf.data.Dataset.from_generator(
        produce, output_signature=tf.TensorSpec((BATCH, FEATURES), tf.float32)
    )
    return data.prefetch(given["prefetch"]) if given["prefetch"] else data


with tempfile.NamedTemporaryFile() as file:
    if given["case"] == "file":
        row = arrays()[:1024].tobytes()
        for _ in range(SAMPLES // 1024):
            file.write(row)
        file.flush()
        del row
    for _ in tf.data.Dataset.range(4).batch(2).prefetch(1):  # the first pipeline has a cost of its own
        pass
    before = meter.resident()
    meter.restart_peak()
    start = time.monotonic_ns()
    seen = 0
    for _ in batches(file.name):
        time.sleep(given["consume_ms"] / 1000)
        seen += 1
    elapsed = time.monotonic_ns() - start
meter.report(
    note=f"TensorFlow {tf.__version__}",
    why_not_engaged="" if seen == SAMPLES // BATCH else f"{seen} batches came out",
    peak_growth_bytes=meter.peak() - before,
    elapsed_ns=elapsed,
)
