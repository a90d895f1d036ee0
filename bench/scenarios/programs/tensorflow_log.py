"""TensorFlow's own log at one level: resident memory of a process that imports and trains.

level: TF_CPP_MIN_LOG_LEVEL, set before the import; stderr goes to a file.
"""

import os
import tempfile

import meter

given = meter.options(level="0", steps=300)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = given["level"]
os.environ["CUDA_VISIBLE_DEVICES"] = ""
log = tempfile.TemporaryFile()
os.dup2(log.fileno(), 2)
before = meter.resident()

import tensorflow as tf  # noqa: E402

weights = tf.Variable(tf.random.stateless_normal((256, 256), seed=(1, given["seed"])))


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(x, weights) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


x = tf.ones((64, 256))
for _ in range(given["steps"]):
    step(x)
log.flush()
meter.report(
    note=f"TensorFlow {tf.__version__} wrote {os.fstat(log.fileno()).st_size} bytes of log",
    resident_growth_bytes=meter.resident() - before,
    peak_growth_bytes=meter.peak() - before,
)
