"""JAX's ordinary wheels on the virtual GPU. Skipped unless `scripts/setup --with jax` has been run."""

import re

import pytest
from conftest import MIB

CARD = ("a100-40gb", "--memory", "16GiB")
KEEP = """
import jax
import jax.numpy as jnp
kept = [jax.block_until_ready(jnp.zeros((4096, 4096))) for _ in range(3)]
"""
KEPT = 3 * 64 * MIB
WITHOUT_GRADIENTS = KEEP + """
double = jax.jit(lambda x: 2 * x)
for _ in range(9):
    double(kept[0])
print("the end")
"""


def run(gpu, jax, program=KEEP, options=(), **environment):
    answer = gpu(*CARD, *options, program=program, python=jax, environment=environment)
    assert answer.status == 0, answer.errors
    return answer


@pytest.fixture(scope="module")
def kept(shared_gpu, jax):
    return run(shared_gpu, jax, WITHOUT_GRADIENTS, options=("--until-step", "2"))


def test_three_quarters_of_the_card_are_taken_at_once(kept):
    assert kept.figures["peak_bytes"] == 16 * 3 // 4 << 30


def test_below_the_first_line_stands_what_was_in_use_of_the_memory_taken_in_advance(kept):
    in_use = kept.figures["frameworks"][0]["devices"][0]["peak_allocated_bytes"]
    assert re.search(r"\nFITS: 12.00 GiB of .*\n"
                     rf"  JAX \S+ takes memory in advance; {in_use / MIB:.2f} MiB of it was in use at the peak\n", kept.output)


def test_a_program_without_gradients_runs_to_its_end(kept):
    assert "the end" in kept.output
    assert kept.figures["frameworks"][0]["steps"] == 0


def test_jaxs_own_counters_stand_beside_the_ledger(kept):
    framework = kept.figures["frameworks"][0]
    assert framework["name"].startswith("JAX ")
    assert framework["devices"][0]["peak_allocated_bytes"] >= KEPT
    assert framework["devices"][0]["peak_reserved_bytes"] == kept.figures["peak_bytes"]


def test_a_fraction_is_taken_to_the_byte(gpu, jax):
    answer = run(gpu, jax, XLA_PYTHON_CLIENT_MEM_FRACTION=".5")
    assert answer.figures["peak_bytes"] == 8 << 30


def test_without_preallocation_regions_double_with_what_is_held(gpu, jax):
    answer = run(gpu, jax, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    device = answer.figures["frameworks"][0]["devices"][0]
    assert device["peak_allocated_bytes"] >= KEPT
    assert KEPT <= answer.figures["peak_bytes"] <= 2 * device["peak_allocated_bytes"]


def test_the_asynchronous_allocator_fills_the_drivers_pool_in_advance_like_its_own(gpu, jax):
    answer = run(gpu, jax, XLA_PYTHON_CLIENT_ALLOCATOR="cuda_async")
    assert answer.figures["peak_bytes"] == 12 << 30


def test_the_asynchronous_allocator_takes_what_is_held(gpu, jax):
    answer = run(gpu, jax, XLA_PYTHON_CLIENT_ALLOCATOR="cuda_async", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    assert KEPT <= answer.figures["peak_bytes"] <= KEPT + 64 * MIB  # two chunks of the pool


def test_the_platforms_allocator_may_take_the_whole_card(gpu, jax):
    answer = run(gpu, jax, program=KEEP + 'jnp.zeros((15 << 30,), "uint8").block_until_ready()',
                 XLA_PYTHON_CLIENT_ALLOCATOR="platform")
    assert KEPT + (15 << 30) <= answer.figures["peak_bytes"] <= 16 << 30


def test_out_of_memory_is_an_answer_in_xlas_own_words(gpu, jax):
    answer = gpu("a100-40gb", "--memory", "128MiB", program=KEEP, python=jax)
    assert answer.status == 3, answer.errors
    assert answer.first_line.startswith("DOES NOT FIT on a100-40gb (128.00 MiB)")
    assert "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 64.00MiB" in answer.output
    assert "program.py:4" in answer.output


def test_two_cards_are_two_devices(gpu, jax):
    answer = run(gpu, jax, options=("--gpus", "2"), program=KEEP + """
assert jax.device_count() == 2
there = jax.block_until_ready(jax.device_put(kept[0], jax.devices()[1]))
""")
    devices = answer.figures["frameworks"][0]["devices"]
    assert [device["device"] for device in devices] == [0, 1]
    assert devices[1]["peak_allocated_bytes"] >= 64 * MIB


def test_a_compiled_step_with_convolution_and_attention_trains(gpu, jax):
    answer = run(gpu, jax, program="""
import jax
import jax.numpy as jnp

def loss(weights, images):
    x = jax.lax.conv_general_dilated(images, weights["filters"], (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jnp.tanh(x).reshape(8, 256, 32)
    attention = jax.nn.softmax(x @ x.swapaxes(1, 2)) @ x
    return jnp.square(attention @ weights["out"]).mean()

@jax.jit
def step(weights, images):
    value, gradients = jax.value_and_grad(loss)(weights, images)
    return value, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

key = jax.random.key(0)
weights = {"filters": jax.random.normal(key, (3, 3, 16, 32)), "out": jnp.ones((32, 32))}
for _ in range(3):
    value, weights = step(weights, jnp.ones((8, 16, 16, 16)))
print("loss", value)
""")
    assert "loss" in answer.output
    assert "XLA tries no kernels" in answer.output


STEP = """
import jax
import jax.numpy as jnp
rows = int(ROWS)
def loss(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x**2).mean()
@jax.jit
def step(weights, batch):
    return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights, batch["x"]))]
weights = [jnp.zeros((1024, 1024)) for _ in range(4)]
weights = step(weights, {"x": jnp.zeros((rows, 1024))})
"""


def test_the_peak_is_shared_out_by_argument_and_line(gpu, jax):
    device = run(gpu, jax, STEP.replace("ROWS", "4096")).figures["frameworks"][0]["devices"][0]
    roles = {role["name"]: role["bytes"] for role in device["roles"]}
    assert roles["argument weights"] == 4 * 4 * MIB
    assert roles["argument batch['x']"] == 4096 * 4096
    assert roles["results"] >= 4 * 4 * MIB
    # The backward pass needs the output of each layer.
    assert roles["temporaries"] >= 3 * 4096 * 4096
    assert sum(roles.values()) == device["peak_allocated_bytes"]
    lines = {line["name"]: line["bytes"] for line in device["lines"]}
    assert sum(lines.values()) == device["peak_allocated_bytes"]
    layer = STEP.splitlines().index("        x = jnp.tanh(x @ w)") + 1
    assert sum(size for line, size in lines.items() if line.endswith(f":{layer}")) >= 3 * 4096 * 4096


def test_an_argument_of_many_parts_is_one(gpu, jax):
    """Haiku's parameters are a dictionary of layers."""
    device = run(gpu, jax, """
import jax
import jax.numpy as jnp
layers = {f"net/~/linear_{i}": {"w": jnp.zeros((256, 256)), "b": jnp.zeros(256)} for i in range(12)}
loss = lambda layers, x: sum(((x @ layer["w"] + layer["b"]) ** 2).sum() for layer in layers.values())
jax.jit(jax.grad(loss))(layers, jnp.zeros((64, 256)))
""").figures["frameworks"][0]["devices"][0]
    roles = {role["name"]: role["bytes"] for role in device["roles"]}
    assert roles["argument layers"] == 12 * (256 * 256 + 256) * 4
    assert not [name for name in roles if "linear" in name]


def test_a_copy_of_an_argument_belongs_to_the_arguments_module(gpu, jax):
    """cuDNN takes weights of a convolution in another layout, so XLA copies them."""
    device = run(gpu, jax, """
import jax
import jax.numpy as jnp
layers = {"net/~/block_1/~/conv": {"w": jnp.zeros((3, 3, 512, 512))}}
def loss(layers, x):
    conv = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return (conv(x, layers["net/~/block_1/~/conv"]["w"]) ** 2).sum()
jax.jit(loss)(layers, jnp.zeros((1, 8, 8, 512)))
""").figures["frameworks"][0]["devices"][0]
    modules = {module["name"]: module["roles"] for module in device["modules"]}
    assert modules["net/block_1/conv"]["temporaries"] >= 3 * 3 * 512 * 512 * 4, modules
    lines = {line["name"]: line["bytes"] for line in device["lines"]}
    assert lines["(copies of arguments)"] >= 3 * 3 * 512 * 512 * 4, lines


@pytest.mark.parametrize("first", ["import os", "import os, jax"], ids=["before the import", "after the import"])
def test_a_program_that_sets_xlas_flags_keeps_those_of_the_virtual_gpu(gpu, jax, first):
    answer = run(gpu, jax, first + """
os.environ["XLA_FLAGS"] = "--xla_gpu_enable_latency_hiding_scheduler=true --xla_force_host_platform_device_count=2"
""" + STEP.replace("ROWS", "64") + """
assert len(jax.devices("cpu")) == 2
assert "--xla_gpu_enable_command_buffer= " in os.environ["XLA_FLAGS"]
""")
    assert answer.status == 0, answer.errors
    roles = [role["name"] for role in answer.figures["frameworks"][0]["devices"][0]["roles"]]
    assert "argument weights" in roles


FLAX = """
import jax.numpy as jnp
from flax import nnx
class Layers(nnx.Module):
    def __init__(self):
        self.layers = nnx.List([nnx.Linear(1024, 1024, rngs=nnx.Rngs(0)) for _ in range(4)])
    def __call__(self, x):
        for layer in self.layers:
            x = jnp.tanh(layer(x))
        return x
@nnx.jit
def gradients(model, x):
    return nnx.grad(lambda model: (model(x) ** 2).mean())(model)
gradients(Layers(), jnp.zeros((4096, 1024)))
"""


def test_the_users_line_is_found_behind_a_library(gpu, jax):
    device = run(gpu, jax, FLAX).figures["frameworks"][0]["devices"][0]
    layer = FLAX.splitlines().index("            x = jnp.tanh(layer(x))") + 1
    at_layer = sum(line["bytes"] for line in device["lines"] if line["name"].endswith(f":{layer}"))
    assert at_layer >= 3 * 4096 * 4096, device["lines"]


def test_a_loop_that_xla_compiled_runs(gpu, jax):
    # XLA asks for the place of the loop's constants on the card.
    answer = run(gpu, jax, """
import jax
import jax.numpy as jnp
layers = jnp.ones((12, 256, 256))
@jax.jit
def loss(layers, x):
    return jax.lax.scan(jax.checkpoint(lambda x, layer: (jnp.tanh(x @ layer), None)), x, layers)[0].mean()
for step in range(2):
    layers = layers - jax.grad(loss)(layers, jnp.ones((64, 256)))
layers.block_until_ready()
""")
    assert answer.status == 0, answer.errors


LOOP = """
import jax
import jax.numpy as jnp
def loss(weights, x):
    return jnp.square(jax.checkpoint(jnp.tanh)(x @ weights)).mean()
@jax.jit
def train(weights, batches):
    update = lambda i, weights: weights - 0.1 * jax.grad(loss)(weights, batches[i])
    return jax.lax.fori_loop(0, len(batches), update, weights)
train(jnp.zeros((1024, 1024)), jnp.zeros((4, 512, 1024))).block_until_ready()
"""


def test_temporaries_of_a_loop_that_trains_have_lines_and_no_modules_of_jaxs_own(gpu, jax):
    device = run(gpu, jax, LOOP).figures["frameworks"][0]["devices"][0]
    roles = {role["name"]: role["bytes"] for role in device["roles"]}
    assert roles["temporaries"] >= (1024 * 1024 + 512 * 1024) * 4  # the gradient, and a batch
    assert sum(line["bytes"] for line in device["lines"] if "program.py" in line["name"]) > 0.9 * roles["temporaries"]
    assert device["modules"] == []


def test_a_peak_before_the_first_step_is_not_one_of_the_step(gpu, jax):
    before = "import jax, jax.numpy as jnp\njax.jit(lambda x: 2 * x)(jnp.zeros((16 << 20,))).block_until_ready()\n"
    device = run(gpu, jax, before + STEP.replace("ROWS", "64")).figures["frameworks"][0]["devices"][0]
    assert device["peak_phase"] == "jit__lambda, before the first step"
    roles = {role["name"]: role["bytes"] for role in device["roles"]}
    assert roles == {"argument x": 64 * MIB, "results": 64 * MIB}


BFLOAT16 = """
import jax
import jax.numpy as jnp
def loss(weights, x, labels):
    logits = jnp.tanh(x @ weights["in"]) @ weights["out"]
    return -(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 4096, dtype="bfloat16")).sum()
weights = {"in": jnp.zeros((256, 256), "bfloat16"), "out": jnp.zeros((256, 4096), "bfloat16")}
train = jax.jit(jax.grad(loss))
train(weights, jnp.zeros((1024, 256), "bfloat16"), jnp.zeros(1024, int))["in"].block_until_ready()
"""


def test_what_ends_in_a_conversion_of_xlas_has_the_line_of_what_is_converted(gpu, jax):
    device = run(gpu, jax, BFLOAT16).figures["frameworks"][0]["devices"][0]
    lines = {line["name"].rpartition("/")[2]: line["bytes"] for line in device["lines"]}
    assert lines["program.py:5"] >= 1024 * 4096 * 2  # the logits
    assert lines["program.py:6"] >= 1024 * 4096 * 2  # their gradient


def test_an_error_that_the_program_did_not_wait_for_is_told(gpu, jax):
    answer = gpu(*CARD, program=STEP.replace("ROWS", "1e6"), python=jax)
    assert answer.first_line.startswith("DOES NOT FIT")
    assert "in jit_step, which needs" in answer.output


def test_a_jitted_function_is_exported_and_can_be_told_by_its_class(gpu, jax):
    answer = run(gpu, jax, """
import inspect
import jax
function = jax.jit(lambda x: 2 * x)
jax.export.export(function)(jax.numpy.zeros(3))
print([hasattr(inspect.getattr_static(function, name), "__get__") for name in ("trace", "lower")])
print(hasattr(jax.grad(lambda x: 2 * x), "lower"))
print(jax.devices()[0].device_kind)
""")
    assert answer.output.startswith("[True, True]\nFalse\nNVIDIA "), answer.errors


def test_a_call_that_calculates_gradients_is_a_step(gpu, jax):
    """Each kind of call is made another number of times, so that the sum tells which are counted."""
    program = STEP.replace("ROWS", "64").replace("weights = step", "step") + """
from functools import partial
class Held:
    @partial(jax.jit, static_argnums=0)
    def step(self, weights, batch):
        return step(weights, batch)
held, batch = Held(), {"x": jnp.zeros((64, 1024))}
update = jax.jit(lambda weights, gradients: weights)
ahead = jax.jit(step).lower(weights, batch).compile()
ahead.memory_analysis()
kinds = {
    "a compiled step": lambda: step(weights, batch),
    "a compiled gradient": lambda: jax.jit(jax.grad(loss))(weights, batch["x"]),
    "a gradient outside": lambda: update(weights, jax.value_and_grad(loss)(weights, batch["x"])[1]),
    "a method": lambda: held.step(weights, batch),
    "a gradient pulled back": lambda: jax.vjp(loss, weights, batch["x"])[1](1.0),
    "compiled ahead of time": lambda: ahead(weights, batch),
}
for number, (kind, train) in enumerate(kinds.items()):
    for turn in range(2**number):
        print(kind, turn, flush=True)
        train()
"""
    answer = run(gpu, jax, program, options=("--until-step", "62"))
    # The first step is made before the loop, and 31 by the other kinds.
    assert answer.figures["frameworks"][0]["steps"] == 62
    assert "compiled ahead of time 29\n" in answer.output and "compiled ahead of time 30" not in answer.output


def test_a_function_that_is_compiled_again_at_each_step_counts_each_time(gpu, jax):
    answer = run(gpu, jax, """
import jax, jax.numpy as jnp
def step(weights):
    return weights - jax.grad(lambda weights: (weights ** 2).mean())(weights)
def evaluate(weights):
    return (weights ** 2).mean()
weights = jnp.ones((64, 64))
jax.jit(step).lower(weights).compile()
for _ in range(3):
    weights = jax.jit(step)(weights)
    jax.jit(evaluate)(weights)
""")
    assert answer.figures["frameworks"][0]["steps"] == 3


def test_a_peak_in_the_first_step_is_told_as_such_where_the_host_follows_a_loop(gpu, jax):
    answer = run(gpu, jax, """
import jax, jax.numpy as jnp
@jax.jit
def train(weights):
    def step(carried, _):
        weights, count = carried
        weights = weights - jax.grad(lambda weights: ((weights @ weights) ** 2).mean())(weights)
        return (weights, count + 1), count
    return jax.lax.scan(step, (weights, 0), length=3)
print(train(jnp.ones((512, 512)))[1])
""")
    assert answer.output.startswith("[0 1 2]\n")
    assert answer.figures["frameworks"][0]["devices"][0]["peak_phase"] == "jit_train"


def test_each_call_of_a_loop_that_calculates_gradients_is_a_step(gpu, jax):
    answer = run(gpu, jax, """
import jax, jax.numpy as jnp
from jax import lax
loss = lambda weights: (weights ** 2).mean()
def step(weights, _=None):
    return weights - jax.grad(loss)(weights), loss(weights)
weights = jnp.ones((64, 64))
for _ in range(3):
    weights, losses = lax.scan(step, weights, None, length=4)
    lax.scan(lambda weights, _: (weights, loss(weights)), weights, length=4)
    weights = lax.fori_loop(0, 4, body_fun=lambda _, weights: step(weights)[0], init_val=weights)
class Network:
    __hash__ = None  # as a network of Equinox, which JAX takes as the body of this loop only
    __call__ = staticmethod(loss)
print(lax.map(Network(), weights).shape)
print(losses.shape)
""", options=("--until-step", "7"))
    assert answer.output.startswith("(64,)\n(4,)\n")
    assert answer.figures["frameworks"][0]["steps"] == 6


def test_a_program_that_xla_compiled_for_the_processor_held_no_memory_of_the_card(gpu, jax):
    answer = run(gpu, jax, program=KEEP + """
import numpy as np
def double_on_processor(values):
    return 2 * values
jax.jit(double_on_processor)(jax.device_put(np.zeros((4096, 4096), "float32"), jax.devices("cpu")[0]))
""")
    device, = answer.figures["frameworks"][0]["devices"]
    assert device["peak_phase"] == "jit_broadcast_in_dim"


TRAINED_BY_KERAS = 4 * (1024 * 1024 + 4 * 1024 + 4)


def run_keras(gpu, jax, tensorflow, **compiled):
    """Runs a training of Keras on JAX, and returns what the device held and its roles. The environment of TensorFlow
    has Keras."""
    answer = run(gpu, jax, KERAS_BACKEND="jax", program=f"""
import sys
sys.path += {list(map(str, tensorflow.parents[1].glob("lib/*/site-packages")))}
compiled = {compiled}
""" + """
import keras
import numpy as np
model = keras.Sequential([keras.Input((1024,)), keras.layers.Dense(1024, use_bias=False, name="first"),
                          keras.layers.BatchNormalization(scale=False, center=False), keras.layers.Dense(4)])
model.compile("adam", loss="mse", metrics=["mae"], **compiled)
data = np.zeros((64, 1024), "float32")
model.fit(data, data[:, :4], batch_size=16, verbose=0)
""")
    framework, = answer.figures["frameworks"]
    assert framework["steps"] == 4
    device, = framework["devices"]
    roles = {role["name"]: role["bytes"] for role in device["roles"]}
    assert roles["weights"] == TRAINED_BY_KERAS + 2 * 4 * 1024, "with the two statistics of the normalization"
    assert 2 * TRAINED_BY_KERAS <= roles["optimizer state"] < 2 * TRAINED_BY_KERAS + 64, "and the count of steps"
    return device, roles


def test_variables_of_keras_have_roles_and_a_layer_is_a_module(gpu, jax, tensorflow):
    device, roles = run_keras(gpu, jax, tensorflow)
    assert device["peak_phase"] == "jit_train_step"
    assert roles["argument data"] == 16 * 4 * (1024 + 4)
    assert "first" in {module["name"] for module in device["modules"]}


def test_variables_of_keras_have_roles_where_jax_does_not_compile_the_step(gpu, jax, tensorflow):
    """So it is with layers that turn images at random."""
    _, roles = run_keras(gpu, jax, tensorflow, jit_compile=False)
    assert roles["activations, gradients and temporaries"] >= TRAINED_BY_KERAS, "a gradient of each weight"


def test_arguments_of_a_mapped_function_have_their_names(gpu, jax):
    answer = run(gpu, jax, """
import functools
import jax, jax.numpy as jnp
loss = lambda weights, batch: (batch @ weights).mean()
@functools.partial(jax.pmap, axis_name="devices")
def train(state, batch):
    gradient = jax.lax.pmean(jax.grad(loss)(state["weights"], batch["image"]), "devices")
    momentum = 0.9 * state["momentum"] + gradient
    return {"weights": state["weights"] - momentum, "momentum": momentum}
evaluate = jax.pmap(loss)
state = {"weights": jnp.ones((1, 1024, 1024)), "momentum": jnp.zeros((1, 1024, 1024))}
batch = {"image": jnp.ones((1, 512, 1024)), "unused": jnp.ones((1, 4))}
for _ in range(2):
    state = train(state, batch)
    evaluate(state["weights"], batch["image"])
""")
    assert answer.figures["frameworks"][0]["steps"] == 2
    device, = answer.figures["frameworks"][0]["devices"]
    roles = {share["name"]: share["bytes"] for share in device["roles"]}
    assert device["peak_phase"] == "pmap(train)"
    assert roles["argument state['weights']"] == roles["argument state['momentum']"] == 4 * MIB
    assert roles["argument batch['image']"] == 2 * MIB


def test_a_mapped_function_may_take_any_number_of_arguments(gpu, jax):
    answer = run(gpu, jax, """
import jax, jax.numpy as jnp
@jax.pmap
def train(weights, *batches, **more):
    return jax.grad(lambda weights: sum((batch @ weights).mean() for batch in batches + (more["last"],)))(weights)
train(jnp.ones((1, 1024, 1024)), jnp.ones((1, 1024, 1024)), jnp.ones((1, 512, 1024)), last=jnp.ones((1, 256, 1024)))
""")
    device, = answer.figures["frameworks"][0]["devices"]
    roles = {share["name"]: share["bytes"] for share in device["roles"]}
    assert roles["argument batches"] == 6 * MIB
    assert roles["argument more['last']"] == MIB


def test_arrays_that_a_library_packed_are_named_after_the_variables_that_hold_them(gpu, jax, tmp_path):
    """As Equinox does, the library gives JAX all arrays in one list, and how they were nested as a constant."""
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "packing.py").write_text("""
import jax
def compiled(function):
    def run(packed, structure):
        return function(*jax.tree_util.tree_unflatten(structure, packed))
    run = jax.jit(run, static_argnums=1)
    return lambda *arguments: run(*jax.tree_util.tree_flatten(arguments))
""")
    answer = run(gpu, jax, """
import jax, jax.numpy as jnp
from packing import compiled
def step(weights, momentum, batch):
    gradient = jax.grad(lambda weights: (batch @ weights["kernel"]).mean())(weights)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return jax.tree.map(lambda w, m: w - m, weights, momentum), momentum
class Trainer:
    def __init__(self):
        self.weights = {"kernel": jnp.ones((1024, 1024))}
        self.momentum = {"kernel": jnp.zeros((1024, 1024))}
        self.step = compiled(step)
    def train(self):
        images = jnp.ones((512, 1024))
        self.weights, self.momentum = self.step(self.weights, self.momentum, images)
trainer = Trainer()
for _ in range(2):
    trainer.train()
""", PYTHONPATH=str(library))
    device, = answer.figures["frameworks"][0]["devices"]
    roles = {share["name"]: share["bytes"] for share in device["roles"]}
    assert roles["argument self.weights"] == roles["argument self.momentum"] == 4 * MIB
    assert roles["argument images"] == 2 * MIB


def test_a_function_may_be_given_to_jax_by_name(gpu, jax):
    answer = run(gpu, jax, """
import jax, jax.numpy as jnp
gradient = jax.value_and_grad(fun=lambda weights: (weights ** 2).mean())
step = jax.jit(lambda weights: gradient(weights)[1])
for _ in range(3):
    print(step(jnp.ones(8)).shape)
""")
    assert answer.output.startswith("(8,)\n" * 3)
    assert answer.figures["frameworks"][0]["steps"] == 3


def test_a_program_for_the_processor_does_not_hold_the_peak(gpu, jax):
    answer = run(gpu, jax, """
import jax, jax.numpy as jnp, numpy as np
kept = jax.device_put(np.ones((4096, 4096), np.float32))
with jax.default_device(jax.devices("cpu")[0]):
    jax.jit(lambda images: images / 255)(np.ones((2048, 4096), np.float32))
step = jax.jit(jax.grad(lambda weights: (weights ** 2).mean()))
step(jnp.ones((1024, 1024)))
""")
    assert answer.figures["frameworks"][0]["devices"][0]["peak_phase"] == "jit__lambda"
