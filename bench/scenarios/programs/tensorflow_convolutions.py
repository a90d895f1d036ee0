"""Convolutions trained on a GPU with a limit on cuDNN's scratch space: peak of device memory.

workspace_mb: TF_CUDNN_WORKSPACE_LIMIT_IN_MB, 0 for TensorFlow's default. Needs a GPU.
"""

import os
import time

import meter

given = meter.options(workspace_mb=0, batch=64, steps=20)
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
if given["workspace_mb"]:
    os.environ["TF_CUDNN_WORKSPACE_LIMIT_IN_MB"] = str(given["workspace_mb"])

import tensorflow as tf  # noqa: E402

if not tf.config.list_physical_devices("GPU"):
    meter.report(why_not_engaged="TensorFlow sees no GPU")
    raise SystemExit
net = tf.keras.applications.ResNet50(weights=None)
net.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
x, y = tf.ones((given["batch"], 224, 224, 3)), tf.zeros((given["batch"],))
net.train_on_batch(x, y)
start = time.monotonic_ns()
for _ in range(given["steps"]):
    net.train_on_batch(x, y)
meter.report(
    note=f"TensorFlow {tf.__version__}",
    live_bytes=tf.config.experimental.get_memory_info("GPU:0")["peak"],
    elapsed_ns=time.monotonic_ns() - start,
)
