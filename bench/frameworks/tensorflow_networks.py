"""Networks as users of Keras write them. Each function returns a model that is compiled, and one batch
for it. Values do not matter on a virtual card, so the data are zeros."""

import numpy as np
import tensorflow as tf

keras = tf.keras
VOCABULARY = 30522


def resnet50(given):
    """Keras's own ResNet-50 with stochastic gradient descent, or Adam."""
    model = keras.applications.ResNet50(weights=None)
    usual = "sgd", {"learning_rate": 0.1, "momentum": 0.9}
    _compile(model, given, usual, "sparse_categorical_crossentropy")
    images = np.zeros((given["batch"], 224, 224, 3), "float32")
    return model, (images, np.zeros((given["batch"],), "int32"))


def bert(given):
    """BERT-base, written with Keras's layers, that classifies sentences; Adam, dropout of a tenth."""
    width, heads, length = 768, 12, given["sequence"]
    tokens = keras.Input((length,), dtype="int32")
    places = tf.range(length)
    x = keras.layers.Embedding(VOCABULARY, width)(tokens)
    x = x + keras.layers.Embedding(512, width)(places)
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
    _compile(model, given, ("adam", {"learning_rate": 2e-5}), loss)
    sentences = np.zeros((given["batch"], length), "int32")
    return model, (sentences, np.zeros((given["batch"],), "int32"))


class Gan(keras.Model):
    """The DCGAN of Keras's examples: images of 64 x 64, two optimizers, one train_step."""

    def __init__(self, latent, width):
        super().__init__()
        self.latent = latent
        layers = keras.layers
        self.discriminator = keras.Sequential(
            [keras.Input((64, 64, 3))]
            + [
                layer
                for factor in (1, 2, 4)
                for layer in (layers.Conv2D(factor * width, 4, 2, "same"), layers.LeakyReLU(0.2))
            ]
            + [layers.Flatten(), layers.Dropout(0.2), layers.Dense(1)]
        )
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
        for network in (self.discriminator, self.generator):
            optimizer = keras.optimizers.Adam(1e-4)
            optimizer.build(network.trainable_variables)
            self.optimizers_of.append(optimizer)

    def train_step(self, data):
        images = data[0] if isinstance(data, tuple) else data
        batch = tf.shape(images)[0]
        first, second = self.optimizers_of
        made = self.generator(tf.random.normal((batch, self.latent)), training=True)
        both = tf.concat([made, images], axis=0)
        labels = tf.concat([tf.ones((batch, 1)), tf.zeros((batch, 1))], axis=0)
        with tf.GradientTape() as tape:
            loss = self.loss_of(labels, self.discriminator(both, training=True))
        weights = self.discriminator.trainable_variables
        first.apply_gradients(zip(tape.gradient(loss, weights), weights))
        with tf.GradientTape() as tape:
            made = self.generator(tf.random.normal((batch, self.latent)), training=True)
            loss = self.loss_of(tf.zeros((batch, 1)), self.discriminator(made, training=True))
        weights = self.generator.trainable_variables
        second.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss}


def dcgan(given):
    model = Gan(latent=128, width=given["width"])
    model.build_optimizers()
    model.compile(optimizer=None, **_mode(given))
    images = np.zeros((given["batch"], 64, 64, 3), "float32")
    return model, (images, np.zeros((given["batch"],), "int32"))


def mlp(given):
    """Four layers of `width`: a small model."""
    width = given["width"]
    model = keras.Sequential([keras.Input((width,))] + [keras.layers.Dense(width) for _ in range(4)])
    _compile(model, given, ("adam", {}), "mse")
    return model, (np.zeros((given["batch"], width), "float32"),) * 2


def _compile(model, given, usual, loss):
    """Compiles the model with the requested optimizer, or the `usual` one."""
    kind, settings = usual
    if given["optimizer"] != "usual":
        kind, settings = given["optimizer"], {}
    parts = given["parts"]
    optimizer = {"sgd": keras.optimizers.SGD, "adam": keras.optimizers.Adam}[kind](
        **settings, gradient_accumulation_steps=parts if parts > 1 else None)
    model.compile(optimizer=optimizer, loss=loss, **_mode(given))


def _mode(given):
    return {"jit_compile": given["compile"] == "xla", "run_eagerly": given["compile"] == "eager"}


NETWORKS = {"resnet50": resnet50, "bert": bert, "dcgan": dcgan, "mlp": mlp}
