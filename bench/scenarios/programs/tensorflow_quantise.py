"""A model converted to TensorFlow Lite, as it is or with its weights quantised: bytes of the file.

form: float (converted as it is) or int8 (dynamic range).
"""

import os

import meter

given = meter.options(form="float", units=512)
os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import tensorflow as tf  # noqa: E402

tf.keras.utils.set_random_seed(given["seed"])
layers = [tf.keras.layers.Dense(given["units"], activation="relu") for _ in range(3)]
model = tf.keras.Sequential([tf.keras.layers.Input((given["units"],)), *layers])
converter = tf.lite.TFLiteConverter.from_keras_model(model)
if given["form"] == "int8":
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
file = converter.convert()
meter.report(
    note=f"TensorFlow {tf.__version__}",
    artifact_bytes=len(file),
    variable_bytes=sum(v.numpy().nbytes for v in model.variables),
)
