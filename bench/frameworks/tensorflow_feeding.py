"""How batches reach Keras: the arguments of fit(), and the callbacks that a toolkit needs."""

import numpy as np
import tensorflow as tf


def _varying(sentences, labels, batches):
    """The sentences whole, then three quarters, half and a quarter of each, again and again."""
    length = sentences.shape[1]

    def made():
        for step in range(batches):
            yield sentences[:, : max(length * (4 - step % 4) // 4, 1)], labels

    signature = (tf.TensorSpec((len(sentences), None), tf.int32), tf.TensorSpec(labels.shape, tf.int32))
    return tf.data.Dataset.from_generator(made, output_signature=signature)


def fed(given, data, batches):
    """fit()'s arguments for `batches` batches like `data`."""
    if given["lengths"] == "varying":
        return {"x": _varying(*data, batches)}
    if given["input"] == "tensors":
        return {"x": tf.data.Dataset.from_tensors(data).repeat(batches)}
    size = len(data[0])
    x, y = (np.repeat(part, batches, axis=0) for part in data)
    if given["input"] == "arrays":
        return {"x": x, "y": y, "batch_size": size}
    slices = tf.data.Dataset.from_tensor_slices((x, y))
    return {"x": slices.shuffle(10_000).batch(size).prefetch(tf.data.AUTOTUNE)}


def callbacks(given):
    if given["toolkit"] != "prune":
        return []
    import tensorflow_model_optimization as tfmot

    return [tfmot.sparsity.keras.UpdatePruningStep()]
