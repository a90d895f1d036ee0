"""Networks as users of Flax write them. Each function returns its models, a loss for each of them, one batch,
and the usual optimizer. A loss is a function of its own model, the other ones, and the batch; a step takes the
models in turn. Values do not matter on a virtual card, so the data are zeros."""

import functools

import jax
import numpy as np
import optax
from flax import nnx
from jax import numpy as jnp

import card

VOCABULARY = 30522


def _how(given):
    """Arguments of every layer: the source of its initial weights, and the element type of its results."""
    return {"rngs": nnx.Rngs(0), "dtype": jnp.bfloat16 if given["precision"] == "bf16" else jnp.float32}


def _through(blocks, x, given):
    """`x` after all blocks. With checkpointing only what goes into a block is kept, and the rest is computed
    again on the way back."""

    def apply(block, x):
        return block(x)

    if given["checkpointing"] == "blocks":
        apply = nnx.remat(apply)
    for block in blocks:
        x = apply(block, x)
    return x


def _cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def _normalised(before, after, size, stride, how):
    """A convolution and the normalisation of its batch."""
    convolution = nnx.Conv(before, after, (size, size), stride, use_bias=False, **how)
    return nnx.Sequential(convolution, nnx.BatchNorm(after, **how))


class Bottleneck(nnx.Module):
    """Three convolutions, and a shortcut around them."""

    def __init__(self, before, width, stride, how):
        self.first = _normalised(before, width, 1, 1, how)
        self.second = _normalised(width, width, 3, stride, how)
        self.third = _normalised(width, 4 * width, 1, 1, how)
        changed = before != 4 * width or stride != 1
        self.shortcut = _normalised(before, 4 * width, 1, stride, how) if changed else None

    def __call__(self, x):
        y = self.third(nnx.relu(self.second(nnx.relu(self.first(x)))))
        return nnx.relu(y + (self.shortcut(x) if self.shortcut else x))


class ResNet50(nnx.Module):
    def __init__(self, given):
        self.given, how = given, _how(given)
        self.stem = _normalised(3, 64, 7, 2, how)
        blocks, before = [], 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for place in range(count):
                width, stride = 64 * 2**stage, 2 if stage and place == 0 else 1
                blocks.append(Bottleneck(before, width, stride, how))
                before = 4 * width
        self.blocks = nnx.List(blocks)
        self.head = nnx.Linear(before, 1000, **how)

    def __call__(self, images):
        x = nnx.max_pool(nnx.relu(self.stem(images)), (3, 3), (2, 2), "SAME")
        x = _through(self.blocks, x, self.given)
        return self.head(x.mean((1, 2)))


def resnet50(given):
    """ResNet-50 with stochastic gradient descent."""
    batch = np.zeros((given["batch"], 224, 224, 3), "float32"), np.zeros(given["batch"], "int32")

    def loss(model, batch):
        images, labels = batch
        return _cross_entropy(model(images), labels)

    return [ResNet50(given)], [loss], batch, optax.sgd(0.1, momentum=0.9)


class Layer(nnx.Module):
    """A layer of BERT, normalised after attention and after the dense layers."""

    def __init__(self, width, heads, how):
        self.attention = nnx.MultiHeadAttention(heads, width, dropout_rate=0.1, decode=False, **how)
        self.up, self.down = nnx.Linear(width, 4 * width, **how), nnx.Linear(4 * width, width, **how)
        self.attended, self.whole = (nnx.LayerNorm(width, epsilon=1e-12, **how) for _ in range(2))
        self.dropout = nnx.Dropout(0.1, rngs=how["rngs"])

    def __call__(self, x):
        x = self.attended(x + self.dropout(self.attention(x)))
        return self.whole(x + self.dropout(self.down(nnx.gelu(self.up(x)))))


# Layers, width and heads by size.
BERT_SIZES = {"tiny": (2, 128, 2), "base": (12, 768, 12)}


class Bert(nnx.Module):
    """BERT that classifies sentences, with a dropout of a tenth."""

    def __init__(self, given):
        self.given, how = given, _how(given)
        layers, width, heads = BERT_SIZES[card.one_of("size", given["size"], BERT_SIZES)]
        self.words = nnx.Embed(VOCABULARY, width, **how)
        self.places = nnx.Embed(512, width, **how)
        self.norm = nnx.LayerNorm(width, epsilon=1e-12, **how)
        self.dropout = nnx.Dropout(0.1, rngs=how["rngs"])
        self.layers = nnx.List([Layer(width, heads, how) for _ in range(layers)])
        self.pool, self.head = nnx.Linear(width, width, **how), nnx.Linear(width, 2, **how)

    def __call__(self, tokens):
        x = self.words(tokens) + self.places(jnp.arange(tokens.shape[1]))
        x = self.dropout(self.norm(x))
        x = _through(self.layers, x, self.given)
        return self.head(self.dropout(jnp.tanh(self.pool(x[:, 0]))))


def bert(given):
    """BERT with Adam."""
    batch = np.zeros((given["batch"], given["sequence"]), "int32"), np.zeros(given["batch"], "int32")

    def loss(model, batch):
        tokens, labels = batch
        return _cross_entropy(model(tokens), labels)

    return [Bert(given)], [loss], batch, optax.adam(2e-5)


class Generator(nnx.Module):
    def __init__(self, latent, width, how):
        sizes = [latent, 8 * width, 4 * width, 2 * width, width, 3]
        widen = functools.partial(nnx.ConvTranspose, kernel_size=(4, 4), use_bias=False, **how)
        self.widened = nnx.List([
            widen(before, after, strides=(2, 2), padding="SAME") if place else widen(before, after, padding="VALID")
            for place, (before, after) in enumerate(zip(sizes, sizes[1:]))])
        self.norms = nnx.List([nnx.BatchNorm(size, **how) for size in sizes[1:-1]])

    def __call__(self, noise):
        x = noise
        for widened, norm in zip(self.widened, self.norms):
            x = nnx.relu(norm(widened(x)))
        return jnp.tanh(self.widened[-1](x))


class Discriminator(nnx.Module):
    def __init__(self, width, how):
        sizes = [3, width, 2 * width, 4 * width, 8 * width]
        narrow = functools.partial(nnx.Conv, kernel_size=(4, 4), use_bias=False, **how)
        self.narrowed = nnx.List([narrow(*pair, strides=(2, 2)) for pair in zip(sizes, sizes[1:])])
        self.norms = nnx.List([nnx.BatchNorm(size, **how) for size in sizes[2:]])
        self.judged = narrow(sizes[-1], 1, padding="VALID")

    def __call__(self, images):
        x = nnx.leaky_relu(self.narrowed[0](images), 0.2)
        for narrowed, norm in zip(list(self.narrowed)[1:], self.norms):
            x = nnx.leaky_relu(norm(narrowed(x)), 0.2)
        return self.judged(x).reshape(-1)


def dcgan(given):
    """The DCGAN for images of 64 x 64, with two turns of Adam."""
    latent, how = 100, _how(given)
    generator = Generator(latent, given["width"], how)
    discriminator = Discriminator(given["width"], how)

    def made(generator, images):
        return generator(jax.random.normal(jax.random.key(0), (len(images), 1, 1, latent)))

    def judged(discriminator, generator, images):
        real, false = discriminator(images), discriminator(jax.lax.stop_gradient(made(generator, images)))
        loss = optax.sigmoid_binary_cross_entropy
        return loss(real, jnp.ones_like(real)).mean() + loss(false, jnp.zeros_like(false)).mean()

    def fooled(generator, discriminator, images):
        false = discriminator(made(generator, images))
        return optax.sigmoid_binary_cross_entropy(false, jnp.ones_like(false)).mean()

    images = np.zeros((given["batch"], 64, 64, 3), "float32")
    return [discriminator, generator], [judged, fooled], images, optax.adam(2e-4, b1=0.5)


def mlp(given):
    """Four layers of `width`: a small model."""
    width, how = given["width"], _how(given)
    model = nnx.Sequential(*[nnx.Linear(width, width, **how) for _ in range(4)])

    def loss(model, batch):
        x, y = batch
        return ((model(x) - y) ** 2).mean()

    return [model], [loss], (np.zeros((given["batch"], width), "float32"),) * 2, optax.adam(1e-3)


NETWORKS = {"resnet50": resnet50, "bert": bert, "dcgan": dcgan, "mlp": mlp}
