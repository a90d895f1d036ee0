"""A model as it is, and wrapped for pruning: bytes of its variables while it trains, and of a file.

model: dense, wrapped (for pruning by magnitude), stripped (wrapped, pruned, taken out again), small
(the same with a quarter of the units).
"""

import gzip
import io
import os

import meter

given = meter.options(model="dense", sparsity=0.9)
os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_model_optimization as tfmot  # noqa: E402

# The same model in every process: how well its weights pack depends on each of their bits.
tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()

units = 128 if given["model"] == "small" else 512
model = tf.keras.Sequential(
    [tf.keras.layers.Dense(units, activation="relu", input_shape=(256,)), tf.keras.layers.Dense(16)]
)
callbacks = []
if given["model"] in ("wrapped", "stripped"):
    schedule = tfmot.sparsity.keras.ConstantSparsity(given["sparsity"], 0, frequency=1)
    model = tfmot.sparsity.keras.prune_low_magnitude(model, pruning_schedule=schedule)
    callbacks = [tfmot.sparsity.keras.UpdatePruningStep()]
model.compile(optimizer="adam", loss="mse")
x = np.random.default_rng(1).normal(size=(256, 256)).astype(np.float32)
model.fit(x, x[:, :16], epochs=2, batch_size=32, verbose=0, callbacks=callbacks)
training = sum(v.numpy().nbytes for v in [*model.variables, *model.optimizer.variables])
zeros = np.mean([np.mean(w == 0) for w in model.get_weights() if w.ndim == 2])
if given["model"] == "stripped":
    model = tfmot.sparsity.keras.strip_pruning(model)
file = io.BytesIO()
with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
    for weight in model.get_weights():
        packed.write(weight.tobytes())
meter.report(
    note=f"TensorFlow {tf.__version__}; packed, the weights take {len(file.getvalue())} bytes",
    why_not_engaged="nothing was pruned" if callbacks and zeros < 0.3 else "",
    variable_bytes=training,
    artifact_bytes=len(file.getvalue()),
)
