"""TensorFlow's ordinary wheel on the virtual GPU. Skipped unless `scripts/setup --with tensorflow` has been
run."""

import math
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


def test_out_of_memory_is_an_answer_in_tensorflows_own_words(gpu, tensorflow):
    answer = gpu("a100-40gb", "--memory", "2GiB", python=tensorflow, program=GROW + """
kept = [tf.zeros((8192, 8192)) for _ in range(100)]
""")
    assert answer.status == 3, answer.errors
    assert answer.first_line.startswith("DOES NOT FIT on a100-40gb (2.00 GiB)")
    assert "OOM when allocating tensor with shape[8192,8192]" in answer.output
    assert "program.py:" in answer.output
    assert framework(answer)["out_of_memory"][0]["requested_bytes"] == 8192 * 8192 * 4


def test_keras_stops_at_the_step_it_was_told(gpu, tensorflow):
    answer = gpu(*CARD, "--until-step", "3", program=FIT, python=tensorflow,
                 arguments=["64", "100"])
    assert answer.status == 0, answer.errors
    assert (framework(answer)["steps"], framework(answer)["stopped_at_step"]) == (3, True)
    assert answer.output.count("batch ") == 3


@pytest.mark.parametrize("call", ["step()", "distributed()"])
def test_a_call_of_a_tf_function_that_updates_weights_is_a_step(gpu, tensorflow, call):
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
    """ + call)
    assert answer.status == 0, answer.errors
    assert (framework(answer)["steps"], framework(answer)["stopped_at_step"]) == (3, True)
    assert "turn 2" in answer.output and "turn 3" not in answer.output


@pytest.fixture(scope="module")
def width():
    return random.randrange(1024, 2048, 128)


@pytest.fixture(scope="module")
def device(shared_gpu, tensorflow, width):
    """The first card's figures after Keras has trained four layers of that width."""
    answer = shared_gpu(*CARD, program=FIT, python=tensorflow, arguments=[str(width), "2"])
    assert answer.status == 0, answer.errors
    assert framework(answer)["devices"][0]["peak_allocated_bytes"] <= answer.figures["peak_bytes"]
    return framework(answer)["devices"][0]


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


@pytest.mark.parametrize("made", ["tf_keras.optimizers.Adam()", "tf_keras.optimizers.legacy.SGD()",
                                  "tf.compat.v1.train.AdamOptimizer()"])
def test_updates_of_earlier_kinds_of_optimizers_are_counted(gpu, tensorflow, made):
    answer = gpu(*CARD, "--until-step", "4", python=tensorflow, program=GROW + f"""
import tf_keras
optimizer = {made}
weights = tf.Variable(tf.ones((64, 64)))
def update():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weights @ weights)
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
with tf.Graph().as_default():
    tf.compat.v1.train.AdamOptimizer().apply_gradients([(tf.ones(4), tf.Variable(tf.ones(4)))])
step = tf.function(update)
update()
for turn in range(9):
    print("turn", turn)
    step()
""")
    assert answer.status == 0, answer.errors
    assert framework(answer)["steps"] == 4
    assert "turn 2" in answer.output and "turn 3" not in answer.output


def test_updates_of_a_loop_of_ones_own_are_counted(gpu, tensorflow):
    answer = gpu(*CARD, "--until-step", "4", python=tensorflow, program=GROW + """
weights = tf.Variable(tf.ones((64, 64)))
optimizer = tf.keras.optimizers.SGD()
for _ in range(1000):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weights @ weights)
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
""")
    assert answer.status == 0, answer.errors
    assert framework(answer)["steps"] == 4


def test_each_card_of_a_mirrored_strategy_holds_the_weights(gpu, tensorflow):
    answer = gpu(*CARD, "--gpus", "2", python=tensorflow, arguments=["1024", "2"],
                 program=FIT.replace("contextlib.nullcontext",
                                     "tf.distribute.MirroredStrategy().scope"))
    assert answer.status == 0, answer.errors
    devices = framework(answer)["devices"]
    assert [device["device"] for device in devices] == [0, 1]
    for device in devices:
        assert device["peak_allocated_bytes"] >= 4 * 1024 * 1024 * 4


@pytest.fixture
def printed(run_together, tensorflow, request):
    """Returns what the program of this test printed."""
    return run_together(tensorflow)[1][request.node.name].splitlines()


@pytest.mark.program("""
import tensorflow as tf
@tf.function(jit_compile=True)
def compiled(x):
    return tf.reduce_sum(tf.exp(x) * tf.tanh(x))
compiled(tf.ones((256, 256)))
images, filters = tf.ones((8, 32, 32, 16)), tf.ones((3, 3, 16, 32))
with tf.GradientTape() as tape:
    tape.watch(filters)
    loss = tf.reduce_sum(tf.nn.conv2d(images, filters, 1, "SAME"))
print(*tape.gradient(loss, filters).shape)
""")
def test_convolutions_and_compiled_functions_run(printed, run_together, tensorflow):
    assert printed == ["3 3 16 32"]
    assert run_together(tensorflow)[0].figures["cudnn_workspaces"] == "cuDNN's own heuristics"


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
keras = tf.keras
layers = [keras.layers.Input((8, 8, 3))]
for channels in (8, 16, 24, 32, 40):
    layers += [keras.layers.Conv2D(channels, 3, padding="same"), keras.layers.BatchNormalization()]
model = keras.Sequential([*layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(np.zeros((16, 8, 8, 3), "float32"), np.zeros(16, "int32"), batch_size=8, verbose=0)
made = [variable.shape == variable.value.read_value().shape for variable in model.optimizer.variables]
print(len(made) > 40, all(made))
""")
def test_the_state_of_an_optimizer_is_made_for_every_variable(printed):
    assert printed == ["True True"]


def test_a_network_of_sequences_of_any_length_trains(gpu, tensorflow):
    """Here TensorFlow computes shapes on the device, in the forward and the backward pass."""
    answer = gpu(*CARD, "--until-step", "all", python=tensorflow, program=GROW + """
import numpy as np
keras = tf.keras
tokens = keras.Input((None,), dtype="int32")
hidden = keras.layers.Dense(64)(keras.layers.Embedding(1000, 64)(tokens))
hidden = keras.layers.GlobalAveragePooling1D()(keras.layers.MultiHeadAttention(4, 16)(hidden, hidden))
model = keras.Model(tokens, keras.layers.Dense(2)(hidden))
model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
def batches():
    for length in (16, 40, 23):
        yield np.ones((8, length), "int32"), np.ones(8, "int32")
some = (tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32))
model.fit(tf.data.Dataset.from_generator(batches, output_signature=some), verbose=0)
""")
    assert answer.status == 0, answer.errors
    assert framework(answer)["steps"] == 3


ROWS, STEPS, SHAPE, KEPT = (random.randint(2, 9), random.randint(2, 9), [random.randint(2, 9) for _ in range(4)],
                            random.sample(range(4), 2))


@pytest.mark.program(f"""
import tensorflow as tf
print(*tf.map_fn(lambda row: 2 * row, tf.zeros([{ROWS}, 3])).shape)
""")
def test_a_loop_outside_of_functions_runs_as_often_as_it_says(printed):
    assert printed == [f"{ROWS} 3"]


@pytest.mark.program(f"""
import tensorflow as tf
@tf.function
def count(most):
    return tf.while_loop(lambda step: step < most, lambda step: step + 1, [0], maximum_iterations={STEPS})[0]
@tf.function
def all_or_none(some, others):
    return tf.logical_and(some, others)
print(int(count({2 * STEPS})), int(count({STEPS - 1})), all_or_none(True, tf.zeros({ROWS}, tf.bool)).device[-5:])
""")
def test_a_loop_inside_of_a_function_ends_at_its_greatest_number_of_steps(printed):
    assert printed == [f"{STEPS} {STEPS - 1} GPU:0"], "and masks stay on the card"


@pytest.mark.program(f"""
import tensorflow as tf
optimizer, weights = tf.keras.optimizers.SGD(), tf.keras.Variable(tf.ones([4]))
step = tf.Variable(0, dtype=tf.int64)
while step < {STEPS}:
    optimizer.apply([tf.ones([4])], [weights])
    step.assign_add(1)
print(int(step), int(optimizer.iterations))
""")
def test_steps_are_counted_in_whole_numbers_of_64_bits(printed):
    assert printed == [f"{STEPS} {STEPS}"]


@pytest.mark.program("""
import tensorflow as tf
import tf_keras
for keras in (tf.keras, tf_keras):
    optimizer, weights = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD()), tf.Variable(tf.ones((4, 4)))
    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights @ weights)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    for _ in range(3):
        step()
    print(int(optimizer.dynamic_counter if keras is tf_keras else optimizer.step_counter))
""")
def test_a_scaled_loss_has_finite_gradients_whose_update_is_made(printed):
    assert printed == ["3", "3"]


@pytest.mark.program(f"""
import numpy as np
import tensorflow as tf
keras = tf.keras
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(gradient_accumulation_steps={STEPS}), "mse", jit_compile=False)
model.fit(np.zeros((2 * {STEPS} + 1, 4)), np.zeros((2 * {STEPS} + 1, 1)), batch_size=1, verbose=0)
turn, fourth = tf.Variable(0, dtype=tf.int64), tf.Variable(0, dtype=tf.int64)
@tf.function
def step():
    turn.assign_add(1)
    if turn % 4 == 0:
        fourth.assign_add(1)
for _ in range({STEPS}):
    step()
print(int(model.optimizer.iterations), int(fourth))
""")
def test_what_happens_every_few_steps_happens(printed):
    assert printed == [f"2 {STEPS // 4}"]


@pytest.mark.program("""
import numpy
import tensorflow as tf
for count in (1, 3, 50):
    row, other = numpy.random.randint(-9, 9, (2, count))
    for a, b in ((row, other), (row, other[0]), (row[0], other), (row[0], other[0])):
        for name in ("add", "subtract", "multiply", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            found = getattr(tf, name)(tf.constant(a, tf.int64), tf.constant(b, tf.int64)).numpy()
            assert (found == getattr(numpy, name)(a, b)).all(), (name, a, b, found)
    variable = tf.Variable(row)
    assert (variable.assign_add(other).numpy() == row + other).all(), (row, other)
    assert (variable.assign_sub(2 * other).numpy() == row - other).all(), (row, other)
print("all are right")
""")
def test_whole_numbers_of_64_bits_are_combined_as_numpy_does(printed):
    assert printed == ["all are right"]


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
for shape in ((), (1,), (3, 7), (5000,)):
    for kind, some in ((tf.int64, -7), (tf.bool, True), (tf.float32, 2.5), (tf.bfloat16, -2.5), (tf.float64, 0.1)):
        earlier = tf.constant(np.ones(shape, kind.as_numpy_dtype))  # what is made later lies where this lay
        del earlier
        zeros, ones, filled = tf.zeros(shape, kind), tf.ones(shape, kind), tf.fill(shape, tf.constant(some, kind))
        for made, expected in ((zeros, 0), (ones, 1), (filled, some)):
            assert made.device.endswith("GPU:0") and (made.numpy() == expected).all(), (shape, kind, made)
assert (tf.ones((3, 7), tf.int64) + tf.ones((3, 7), tf.int64)).numpy().sum() == 42
assert tf.boolean_mask(tf.ones((9, 2)), tf.ones(9, tf.bool)).shape == (9, 2)
print("all are right")
""")
def test_tensors_that_are_the_same_everywhere_are_known(printed):
    assert printed == ["all are right"]


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
row, column, few = np.full(64, 2, "float32"), np.full((64, 1), 3, "float32"), np.full(64, 2, "int64")
def in_gpu(array):
    with tf.device("GPU"):
        return tf.constant(array)
row, column, few = in_gpu(row), in_gpu(column), in_gpu(few)
for work in (lambda: row + row, lambda: row * 2, lambda: row / column, lambda: few[:, None] * few, lambda: row < column,
             lambda: tf.cast(row, tf.int32), lambda: tf.sin(row), lambda: tf.complex(row, row), lambda: tf.sqrt(row),
             lambda: tf.concat([column, column], 1), lambda: tf.reduce_mean(row)):
    earlier = [in_gpu(np.full(count, 7, "float32")) for count in (1, 64, 128, 1024, 4096, 8192) for _ in range(3)]
    del earlier  # what is made later lies where this lay
    made = work()
    assert made.device.endswith("GPU:0") and not made.numpy().any(), made
print("all are zeros")
""")
def test_a_result_is_not_read_from_what_lay_there_before(printed):
    assert printed == ["all are zeros"]


@pytest.mark.program(f"""
import tensorflow as tf
@tf.function(input_signature=[tf.TensorSpec([None] * 4)])
def fold(x):
    rows = tf.reduce_prod(tf.gather(tf.shape(x), {KEPT}))
    return tf.reshape(x, tf.stack([rows, tf.size(x) // rows]))
@tf.function(input_signature=[tf.TensorSpec([None] * 4)])
def slope(x):
    return tf.gradients(tf.reduce_mean(x, axis={KEPT}), x)[0]
print(*fold(tf.zeros({SHAPE})).shape, *slope(tf.zeros({SHAPE})).shape)
""")
def test_shapes_that_the_device_calculates_are_right(printed):
    rows = SHAPE[KEPT[0]] * SHAPE[KEPT[1]]
    assert printed == [f"{rows} {math.prod(SHAPE) // rows} {' '.join(map(str, SHAPE))}"], (SHAPE, KEPT)


def test_layers_of_cudnn_train_with_a_mask(gpu, tensorflow):
    answer = gpu(*CARD, python=tensorflow, program=GROW + """
import numpy as np
keras = tf.keras
model = keras.Sequential([keras.layers.Input((20,), dtype="int32"),
                          keras.layers.Embedding(100, 64, mask_zero=True),
                          keras.layers.LSTM(256, return_sequences=True), keras.layers.GRU(256),
                          keras.layers.Dense(2)])
model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
tokens = np.ones((64, 20), "int32")
tokens[:, 12:] = 0
model.fit(tokens, np.ones(64, "int32"), batch_size=16, verbose=0)
""")
    assert answer.status == 0, answer.errors
    assert framework(answer)["steps"] == 4
    assert "cudnnGetRNNTempSpaceSizes" in answer.output


def test_a_known_mask_selects_as_many_rows_as_it_has(gpu, tensorflow):
    """TensorFlow counts them on the GPU, in one kernel or in two, with a result in memory of the host."""
    answer = gpu("l4", python=tensorflow, program="""
import numpy as np
import tensorflow as tf
for rows in (1000, 50_000):
    mask = np.random.rand(rows) < 0.3
    for _ in range(3):  # later masks lie where earlier ones lay
        chosen = tf.boolean_mask(tf.ones((rows, 2)), mask)
        assert chosen.shape == (mask.sum(), 2), (chosen.shape, mask.sum())
        not_known = tf.ones(rows) > 2.0
        assert tf.where(not_known).shape == (0, 1), tf.where(not_known).shape
        del chosen, not_known
""")
    assert answer.status == 0, answer.errors


@pytest.mark.program("""
import tensorflow as tf
words = tf.keras.layers.TextVectorization(output_sequence_length=8)
words.adapt(["a b c", "d e f"])
assert words.vocabulary_size() == 8
assert words(["a b", "c"]).shape == (2, 8)
assert tf.range(tf.constant(2), tf.constant(8), dtype=tf.int64).shape == 6
print("made")
""")
def test_tables_of_words_are_made_from_texts(printed):
    """Numbers converted on the GPU determine the length of a range."""
    assert printed == ["made"]
