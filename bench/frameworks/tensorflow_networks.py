"""Networks as users of Keras write them. Each function returns a model that is compiled, and one batch
for it. Values do not matter on a virtual card, so the data are zeros."""

import numpy as np
import tensorflow as tf

keras = tf.keras
VOCABULARY = 30522


def resnet50(given):
    """Keras's own ResNet-50 with stochastic gradient descent, or Adam."""
    usual = "sgd", {"learning_rate": 0.1, "momentum": 0.9}
    model = _compiled(
        keras.applications.ResNet50(weights=None), given, usual, "sparse_categorical_crossentropy")
    images = np.zeros((given["batch"], 224, 224, 3), "float32")
    return model, (images, np.zeros((given["batch"],), "int32"))


class Places(keras.layers.Layer):
    """Adds to each token a vector of its place, in sentences of any length."""

    def __init__(self, width):
        super().__init__()
        self.vectors = keras.layers.Embedding(512, width)

    def call(self, x):
        return x + self.vectors(tf.range(tf.shape(x)[1]))


def bert(given):
    """BERT-base, written with Keras's layers, that classifies sentences; Adam, dropout of a tenth."""
    width, heads, length = 768, 12, given["sequence"]
    fixed = given["lengths"] == "fixed"
    tokens = keras.Input((length if fixed else None,), dtype="int32")
    x = keras.layers.Embedding(VOCABULARY, width)(tokens)
    x = x + keras.layers.Embedding(512, width)(tf.range(length)) if fixed else Places(width)(x)
    x = keras.layers.Dropout(0.1)(keras.layers.LayerNormalization(epsilon=1e-12)(x))
    for _ in range(12):
        attended = keras.layers.MultiHeadAttention(heads, width // heads, dropout=0.1)(x, x)
        x = x + keras.layers.Dropout(0.1)(attended)
        x = keras.layers.LayerNormalization(epsilon=1e-12)(x)
        inner = keras.layers.Dense(4 * width, activation="gelu")(x)
        x = x + keras.layers.Dropout(0.1)(keras.layers.Dense(width)(inner))
        x = keras.layers.LayerNormalization(epsilon=1e-12)(x)
    pooled = keras.layers.Dense(width, activation="tanh")(x[:, 0])
    model = keras.Model(tokens, keras.layers.Dense(2)(keras.layers.Dropout(0.1)(pooled)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = _compiled(model, given, ("adam", {"learning_rate": 2e-5}), loss)
    sentences = np.zeros((given["batch"], length), "int32")
    return model, (sentences, np.zeros((given["batch"],), "int32"))


class Gan(keras.Model):
    """The DCGAN of Keras's examples: images of 64 x 64, two optimizers, one train_step. `devices`: where the
    discriminator and the generator lie."""

    def __init__(self, latent, width, devices):
        super().__init__()
        self.latent, self.devices = latent, devices
        layers = keras.layers
        with tf.device(devices[0]):
            self.discriminator = keras.Sequential(
                [keras.Input((64, 64, 3))]
                + [
                    layer
                    for factor in (1, 2, 4)
                    for layer in (layers.Conv2D(factor * width, 4, 2, "same"), layers.LeakyReLU(0.2))
                ]
                + [layers.Flatten(), layers.Dropout(0.2), layers.Dense(1)]
            )
        with tf.device(devices[1]):
            self.generator = keras.Sequential(
                [keras.Input((latent,)), layers.Dense(8 * 8 * latent), layers.Reshape((8, 8, latent))]
                + [
                    layer
                    for factor in (2, 4, 8)
                    for layer in (layers.Conv2DTranspose(factor * width, 4, 2, "same"), layers.LeakyReLU(0.2))
                ]
                + [layers.Conv2D(3, 5, padding="same", activation="sigmoid")]
            )
        self.loss_of = keras.losses.BinaryCrossentropy(from_logits=True)

    def build_optimizers(self):
        self.optimizers_of = []
        for device, network in zip(self.devices, (self.discriminator, self.generator)):
            with tf.device(device):
                optimizer = keras.optimizers.Adam(1e-4)
                optimizer.build(network.trainable_variables)
            self.optimizers_of.append(optimizer)

    def made(self, batch):
        with tf.device(self.devices[1]):
            return self.generator(tf.random.normal((batch, self.latent)), training=True)

    def loss_on(self, labels, images):
        with tf.device(self.devices[0]):
            return self.loss_of(labels, self.discriminator(images, training=True))

    def train_step(self, data):
        images = data[0] if isinstance(data, tuple) else data
        batch = tf.shape(images)[0]
        first, second = self.optimizers_of
        with tf.device(self.devices[0]):
            both = tf.concat([self.made(batch), images], axis=0)
            labels = tf.concat([tf.ones((batch, 1)), tf.zeros((batch, 1))], axis=0)
        with tf.GradientTape() as tape:
            loss = self.loss_on(labels, both)
        weights = self.discriminator.trainable_variables
        first.apply_gradients(zip(tape.gradient(loss, weights), weights))
        with tf.GradientTape() as tape:
            loss = self.loss_on(tf.zeros((batch, 1)), self.made(batch))
        weights = self.generator.trainable_variables
        second.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss}


def dcgan(given):
    """With shares of the card's memory, each network lies on a logical device of its own."""
    devices = ("/GPU:1", "/GPU:0") if given["shares"] else (None, None)
    model = Gan(latent=128, width=given["width"], devices=devices)
    model.build_optimizers()
    model.compile(optimizer=None, **_mode(given))
    images = np.zeros((given["batch"], 64, 64, 3), "float32")
    return model, (images, np.zeros((given["batch"],), "int32"))


def mlp(given):
    """Four layers of `width`: a small model."""
    width = given["width"]
    model = keras.Sequential([keras.Input((width,))] + [keras.layers.Dense(width) for _ in range(4)])
    model = _compiled(model, given, ("adam", {}), "mse")
    return model, (np.zeros((given["batch"], width), "float32"),) * 2


def _compiled(model, given, usual, loss):
    """The model, prepared by the toolkit where that is asked for, with the requested optimizer or the `usual`
    one."""
    kind, settings = usual
    if given["optimizer"] != "usual":
        kind, settings = given["optimizer"], {}
    if given["parts"] > 1:
        settings = {**settings, "gradient_accumulation_steps": given["parts"]}
    optimizer = {"sgd": keras.optimizers.SGD, "adam": keras.optimizers.Adam}[kind](**settings)
    model = _prepared(model, given["toolkit"])
    model.compile(optimizer=optimizer, loss=loss, **_mode(given))
    return model


def _prepared(model, toolkit):
    """The model with nine tenths of its weights masked, or ready to be quantised."""
    if toolkit == "none":
        return model
    import tensorflow_model_optimization as tfmot

    if toolkit == "quantise":
        return tfmot.quantization.keras.quantize_model(model)
    # The wrapper checks that a counter has moved, which lies on the card and has no value here.
    tf.debugging.assert_greater_equal = lambda *arguments, **options: tf.no_op()
    schedule = tfmot.sparsity.keras.ConstantSparsity(0.9, 0, frequency=1)
    return tfmot.sparsity.keras.prune_low_magnitude(model, pruning_schedule=schedule)


def _mode(given):
    return {"jit_compile": given["compile"] == "xla", "run_eagerly": given["compile"] == "eager"}


NETWORKS = {"resnet50": resnet50, "bert": bert, "dcgan": dcgan, "mlp": mlp}
