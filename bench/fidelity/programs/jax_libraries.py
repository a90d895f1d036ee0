"""Trains for a few steps what users of JAX write: jax_libraries.py PROGRAM. The data are random, with a fixed seed."""

import sys

import jax
import jax.numpy as jnp
import optax

KEY = jax.random.key(0)


def train(params, loss, rule=None, steps=4):
    rule = rule or optax.adamw(1e-3)

    @jax.jit
    def step(params, state):
        gradients = jax.grad(loss)(params)
        updates, state = rule.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    state = rule.init(params)
    for _ in range(steps):
        params, state = step(params, state)
    jax.block_until_ready(params)


def flax_cnn():
    """The network of Flax's example for MNIST, wider."""
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for width in (64, 128):
                x = nn.avg_pool(nn.relu(nn.Conv(width, (3, 3))(x)), (2, 2), (2, 2))
            return nn.Dense(10)(nn.relu(nn.Dense(512)(x.reshape(len(x), -1))))

    x, labels = jax.random.normal(KEY, (512, 28, 28, 1)), jnp.zeros(512, int)
    net = Net()
    params = net.init(KEY, x)
    train(params, lambda p: optax.softmax_cross_entropy_with_integer_labels(net.apply(p, x), labels).mean())


def scanned_transformer():
    """Twelve alike blocks in a loop, of which each is computed again in the backward pass; bfloat16."""
    layers, width, heads, length, batch = 12, 768, 12, 512, 8
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    params = {n: 0.02 * jax.random.normal(KEY, (layers, *s)) for n, s in shapes.items()}
    x = jax.random.normal(KEY, (batch, length, width), jnp.bfloat16)

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def block(x, w):
        w = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), w)
        q, k, v = jnp.split((norm(x) @ w["qkv"]).reshape(batch, length, heads, -1), 3, axis=-1)
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ w["out"]
        return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], None

    train(params, lambda p: jnp.square(jax.lax.scan(jax.checkpoint(block), x, p)[0].astype(jnp.float32)).mean())


def recurrent():
    """A recurrent network as a loop over time."""
    width, batch, length = 512, 64, 128
    params = {n: 0.02 * jax.random.normal(KEY, (width, 4 * width)) for n in ("input", "state")}
    x = jax.random.normal(KEY, (length, batch, width))

    def loss(p):
        def cell(carried, now):
            hidden, memory = carried
            i, f, g, o = jnp.split(now @ p["input"] + hidden @ p["state"], 4, axis=-1)
            memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
            return (hidden, memory), hidden

        return jnp.square(jax.lax.scan(cell, (jnp.zeros((batch, width)),) * 2, x)[1]).mean()

    train(params, loss)


def numpyro_svi():
    """Variational inference of a logistic regression."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    x, y = jax.random.normal(KEY, (20000, 500)), jnp.zeros(20000)

    def model():
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(500), 1).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights), obs=y)

    svi = SVI(model, autoguide.AutoNormal(model), numpyro.optim.Adam(1e-3), Trace_ELBO(num_particles=8))
    svi.run(KEY, 100, progress_bar=False)


def linear_algebra():
    """Cholesky factors, linear equations, eigenvalues and singular values."""
    a = jax.random.normal(KEY, (8, 512, 512))
    positive = a @ a.swapaxes(1, 2) + 512 * jnp.eye(512)
    for function in (jnp.linalg.cholesky, jnp.linalg.inv, jnp.linalg.eigvalsh,
                     lambda m: jnp.linalg.svd(m, compute_uv=False)):
        jax.block_until_ready(jax.jit(function)(positive))


def spectral():
    x = jax.random.normal(KEY, (16, 256, 256))
    weights = jnp.ones((256, 129), jnp.complex64)
    train({"w": weights.real}, lambda p: jnp.square(jnp.fft.irfft2(jnp.fft.rfft2(x) * p["w"])).mean())


PROGRAMS = {function.__name__: function
            for function in (flax_cnn, scanned_transformer, recurrent, numpyro_svi, linear_algebra, spectral)}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
    print({name: size for name, size in jax.local_devices()[0].memory_stats().items() if "bytes" in name})
