"""TensorFlow's ordinary wheel on the virtual GPU. Skipped unless `scripts/setup --with tensorflow` has been
run."""

import random
import re

import pytest
from conftest import MIB

CARD = ("a100-40gb", "--memory", "16GiB")
MULTIPLY = """
import tensorflow as tf
a = tf.zeros((1024, 1024))
b = a @ a
print("peak", tf.config.experimental.get_memory_info("GPU:0")["peak"])
"""
GROW = """
import tensorflow as tf
for card in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(card, True)
"""
FIT = GROW + """
import contextlib
import sys
import numpy as np
width, batches = int(sys.argv[1]), int(sys.argv[2])
keras = tf.keras
scope = contextlib.nullcontext
with scope():
    model = keras.Sequential([keras.layers.Input((width,)),
                              *[keras.layers.Dense(width, use_bias=False) for _ in range(4)]])
    model.compile("adam", loss="mse")
data = np.zeros((16 * batches, width), "float32")
class Tell(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        print("batch", batch)
model.fit(data, data, batch_size=16, verbose=0, callbacks=[Tell()])
"""
MOST_BESIDE_THE_ALLOCATOR = 4 * MIB  # taken by TensorFlow beside its allocator


def said(answer, word):
    """Returns the number that the program printed after `word`."""
    words = answer.output.split()
    return int(words[words.index(word) + 1])


def framework(answer):
    assert answer.figures["frameworks"], answer.errors
    return answer.figures["frameworks"][0]


def test_all_but_what_tensorflow_leaves_to_the_system_is_taken_at_once(gpu, tensorflow):
    answer = gpu(*CARD, program=MULTIPLY, python=tensorflow)
    assert answer.status == 0, answer.errors
    taken = int(re.search(r"with (\d+) MB memory", answer.errors)[1]) * MIB
    assert taken > 14 << 30, "of 16 GiB"
    assert taken <= answer.figures["peak_bytes"] <= taken + MOST_BESIDE_THE_ALLOCATOR


def test_growth_takes_what_is_needed_and_little_more(gpu, tensorflow):
    answer = gpu(*CARD, program=GROW + MULTIPLY, python=tensorflow)
    assert answer.status == 0, answer.errors
    needed = said(answer, "peak")
    assert needed >= 2 * 1024 * 1024 * 4
    # The sizes of regions double, so at most twice the need is taken.
    assert needed <= answer.figures["peak_bytes"] <= 2 * needed + 2 * MIB + MOST_BESIDE_THE_ALLOCATOR


def test_a_limit_is_taken_to_the_byte(gpu, tensorflow):
    limit = random.randrange(512, 4096, 64)
    answer = gpu(*CARD, python=tensorflow, program=f"""
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("GPU")[0],
    [tf.config.LogicalDeviceConfiguration(memory_limit={limit})])
""" + MULTIPLY)
    assert answer.status == 0, answer.errors
    beside = answer.figures["peak_bytes"] - limit * MIB
    assert 0 <= beside <= MOST_BESIDE_THE_ALLOCATOR, limit


def test_a_fraction_is_one_of_the_cards_memory(gpu, tensorflow):
    answer = gpu(*CARD, python=tensorflow, program="""
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
options = tf.GPUOptions(per_process_gpu_memory_fraction=0.25)
with tf.Session(config=tf.ConfigProto(gpu_options=options)) as session:
    session.run(tf.matmul(tf.zeros((64, 64)), tf.ones((64, 64))))
""")
    assert answer.status == 0, answer.errors
    assert 4 << 30 <= answer.figures["peak_bytes"] <= (4 << 30) + MOST_BESIDE_THE_ALLOCATOR


def test_the_asynchronous_allocator_takes_no_more_than_the_tensors(gpu, tensorflow):
    answer = gpu(*CARD, program=MULTIPLY, python=tensorflow,
                 environment={"TF_GPU_ALLOCATOR": "cuda_malloc_async"})
    assert answer.status == 0, answer.errors
    assert 2 * 4 * MIB <= answer.figures["peak_bytes"] < 64 * MIB
    assert "the driver's pool follows rules that were found on an H200" in answer.output


def test_a_peak_counts_although_the_program_reset_it(gpu, tensorflow):
    answer = gpu("h200", "--until-step", "all", python=tensorflow, program="""
import tensorflow as tf
tf.zeros((64, MIB))
print("peak", tf.config.experimental.get_memory_info("GPU:0")["peak"])
tf.config.experimental.reset_memory_stats("GPU:0")
print("peak", tf.config.experimental.get_memory_info("GPU:0")["peak"])
""".replace("MIB", str(MIB)))
    before, after = [int(line.removeprefix("peak ")) for line in answer.output.splitlines() if line.startswith("peak ")]
    assert after < before
    assert answer.figures["frameworks"][0]["devices"][0]["peak_allocated_bytes"] == before


def test_out_of_memory_is_an_answer_in_tensorflows_own_words(gpu, tensorflow):
    answer = gpu("a100-40gb", "--memory", "2GiB", python=tensorflow, program=GROW + """
kept = [tf.zeros((8192, 8192)) for _ in range(100)]
""")
    assert answer.status == 3, answer.errors
    assert answer.first_line.startswith("DOES NOT FIT on a100-40gb (2.00 GiB)")
    assert "OOM when allocating tensor with shape[8192,8192]" in answer.output
    assert "program.py:" in answer.output
    assert framework(answer)["out_of_memory"][0]["requested_bytes"] == 8192 * 8192 * 4


def test_a_call_of_a_tf_function_that_updates_weights_is_a_step(gpu, tensorflow):
    """Either kind of call makes every second step."""
    answer = gpu(*CARD, "--gpus", "2", "--until-step", "3", python=tensorflow, program=GROW + """
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    models = [tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(64)]) for _ in range(2)]
    optimizers = [tf.keras.optimizers.Adam() for _ in range(2)]
    for model, optimizer in zip(models, optimizers):
        optimizer.build(model.trainable_variables)
def update():
    for model, optimizer in zip(models, optimizers):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones((8, 64))) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
@tf.function
def step():
    inner()
inner = tf.function(update)
@tf.function
def distributed():
    strategy.run(update)
@tf.function
def evaluate():
    return models[0](tf.ones((8, 64)))
for turn in range(9):
    print("turn", turn)
    evaluate()
    (distributed if turn % 2 else step)()
""")
    assert answer.status == 0, answer.errors
    assert (framework(answer)["steps"], framework(answer)["stopped_at_step"]) == (3, True)
    assert "turn 2" in answer.output and "turn 3" not in answer.output


@pytest.fixture(scope="module")
def width():
    return random.randrange(1024, 2048, 128)


@pytest.fixture(scope="module")
def trained(shared_gpu, tensorflow, width):
    """Keras trains four layers of that width, and is stopped."""
    answer = shared_gpu(*CARD, "--until-step", "3", program=FIT, python=tensorflow, arguments=[str(width), "20"])
    assert answer.status == 0, answer.errors
    return answer


@pytest.fixture(scope="module")
def device(trained):
    """The first card's figures."""
    assert framework(trained)["devices"][0]["peak_allocated_bytes"] <= trained.figures["peak_bytes"]
    return framework(trained)["devices"][0]


def test_keras_stops_at_the_step_it_was_told(trained):
    assert (framework(trained)["steps"], framework(trained)["stopped_at_step"]) == (3, True)
    assert trained.output.count("batch ") == 3


def test_the_peak_of_a_step_holds_weights_both_moments_and_a_gradient(device, width):
    peaks, weights = device["phase_peak_bytes"], 4 * width * width * 4
    assert peaks["before training"] >= weights, width
    assert 3 * weights + weights // 4 <= peaks["first step"] <= peaks["whole program"], width
    assert peaks["whole program"] == device["peak_allocated_bytes"]


def test_variables_of_keras_have_roles(device, width):
    roles = {role["name"]: role["bytes"] for role in device["roles"]}
    assert roles["weights"] == 4 * width * width * 4
    assert 0 <= roles["optimizer state"] - 2 * roles["weights"] < 64
    assert sum(roles.values()) == device["peak_allocated_bytes"]


def test_a_layer_has_its_own_name_however_often_it_is_called(gpu, tensorflow):
    """TensorFlow would number the calls, and the second layer here has the name of the second call of the first."""
    answer = gpu(*CARD, python=tensorflow, program=GROW + """
import numpy as np
from tensorflow import keras
first = keras.layers.Dense(1024, activation="relu", name="mix")
second = keras.layers.Dense(512, activation="relu", name="mix_1")
given = keras.Input((1024,))
model = keras.Model(given, second(first(first(given))), name="net")
model.compile("adam", loss="mse")
data = np.zeros((4096, 1024), "float32")
model.fit(data, data[:, :512], batch_size=2048, verbose=0)
""")
    assert answer.status == 0, answer.errors
    device, = framework(answer)["devices"]
    sizes = {module["name"]: sum(module["roles"].values()) for module in device["modules"]}
    assert sizes.get("net/mix", 0) >= 2 * 8 * MIB, sizes
    assert "net/mix_2" not in sizes, sizes


def test_variables_have_roles_with_keras_2_and_without_keras(gpu, tensorflow):
    answer = gpu(*CARD, "--until-step", "all", python=tensorflow, program=GROW + """
import tf_keras
data = tf.zeros((8, 512))
models = [tf_keras.Sequential([tf_keras.layers.Dense(512, use_bias=False)]) for _ in range(2)]
for model, optimizers in zip(models, (tf_keras.optimizers, tf_keras.optimizers.legacy)):
    model.compile(optimizers.Adam(), "mse")
    model.fit(data, data, verbose=0)
own, table = tf.Variable(tf.zeros((512, 512))), tf.Variable(tf.zeros((256, 512)), trainable=False)
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(own)
optimizer = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
optimizer.apply_gradients([(tape.gradient(loss, own), own)])
""")
    assert answer.status == 0, answer.errors
    roles = {role["name"]: role["bytes"] for role in framework(answer)["devices"][0]["roles"]}
    for role, size in ("weights", 3 * MIB), ("optimizer state", 5 * MIB), ("other variables", MIB // 2):
        assert size <= roles[role] < size + 256, roles  # and counters


def test_a_program_of_jax_in_the_same_process_held_none_of_tensorflows_memory(gpu, tensorflow):
    """Keras on JAX may read its data with TensorFlow."""
    answer = gpu(*CARD, python=tensorflow, program=GROW + """
import os, pathlib, re
place = pathlib.Path(re.search(r"--xla_dump_to=(\\S+)", os.environ["XLA_FLAGS"])[1])
place.mkdir(exist_ok=True)
for name in ("jit_step", "a_inference_step_7"):
    text = place / f"module_0001.{name}.sm_8.0_gpu_after_optimizations-buffer-assignment.txt"
    text.write_text(f"allocation 0: size {1000 if name == 'jit_step' else 500}, maybe-live-out:\\n")
tf.zeros((1024, 1024))
""")
    assert answer.status == 0, answer.errors
    assert framework(answer)["devices"][0]["peak_phase"] == "a_inference_step_7"


def test_updates_of_earlier_kinds_of_optimizers_and_of_a_loop_of_ones_own_are_counted(gpu, tensorflow):
    """Each kind makes another number of steps, so that the sum tells which are counted."""
    answer = gpu(*CARD, "--until-step", "16", python=tensorflow, program=GROW + """
import tf_keras
with tf.Graph().as_default():
    tf.compat.v1.train.AdamOptimizer().apply_gradients([(tf.ones(4), tf.Variable(tf.ones(4)))])
kinds = [tf_keras.optimizers.Adam(), tf_keras.optimizers.legacy.SGD(), tf.compat.v1.train.AdamOptimizer(),
         tf.keras.optimizers.SGD()]
for number, optimizer in enumerate(kinds):
    weights = tf.Variable(tf.ones((64, 64)))
    def update():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights @ weights)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    step = update if optimizer is kinds[-1] else tf.function(update)
    update()
    for turn in range(2**number if number < 3 else 99):
        print("kind", number, "turn", turn)
        step()
""")
    assert answer.status == 0, answer.errors
    assert framework(answer)["steps"] == 16
    assert "kind 3 turn 4" in answer.output and "kind 3 turn 5" not in answer.output


def test_each_card_of_a_mirrored_strategy_holds_the_weights(gpu, tensorflow):
    answer = gpu(*CARD, "--gpus", "2", python=tensorflow, arguments=["1024", "2"],
                 program=FIT.replace("contextlib.nullcontext",
                                     "tf.distribute.MirroredStrategy().scope"))
    assert answer.status == 0, answer.errors
    devices = framework(answer)["devices"]
    assert [device["device"] for device in devices] == [0, 1]
    for device in devices:
        roles = {role["name"]: role["bytes"] for role in device["roles"]}
        assert 0 <= roles["weights"] - 4 * 1024 * 1024 * 4 < 64
        assert 0 <= roles["optimizer state"] - 2 * roles["weights"] < 64
