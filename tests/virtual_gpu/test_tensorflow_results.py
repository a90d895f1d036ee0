"""What programs in TensorFlow get from the virtual GPU: shapes and loops. Skipped unless `scripts/setup --with
tensorflow` has been run."""

import math
import random

import pytest

ROWS, STEPS, SHAPE, KEPT = (random.randint(2, 9), random.randint(2, 9), [random.randint(2, 9) for _ in range(4)],
                            random.sample(range(4), 2))


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


@pytest.mark.program("""
import inspect
import tensorflow as tf
print(*inspect.getfullargspec(tf.logical_and).args)
""")
def test_operations_that_the_host_computes_have_their_own_arguments(printed):
    assert printed == ["x y name"]


@pytest.mark.program("""
import tensorflow as tf
@tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64), tf.TensorSpec([None, None, 7])])
def loss(labels, logits):
    tf.debugging.assert_equal(tf.shape(labels), tf.shape(logits)[:-1])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
print(*loss(tf.zeros((4, 9), tf.int64), tf.zeros((4, 9, 7))).shape)
""")
def test_an_assertion_about_shapes_holds(printed):
    assert printed == ["4 9"]


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


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
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
seen = []  # the optimizer's own count may be one higher: TensorFlow raises it while it finds the data used up
note = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
model.fit(tf.data.Dataset.from_generator(batches, output_signature=some), callbacks=[note], verbose=0)
print(len(seen))
""")
def test_a_network_of_sequences_of_any_length_trains(printed):
    """Here TensorFlow computes shapes on the device, in the forward and the backward pass."""
    assert printed == ["3"]


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
keras = tf.keras
model = keras.Sequential([keras.layers.Input((20,), dtype="int32"),
                          keras.layers.Embedding(100, 64, mask_zero=True),
                          keras.layers.LSTM(256, return_sequences=True), keras.layers.GRU(256),
                          keras.layers.Dense(2)])
model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
tokens = np.ones((64, 20), "int32")
tokens[:, 12:] = 0
model.fit(tokens, np.ones(64, "int32"), batch_size=16, verbose=0)
print(int(model.optimizer.iterations))
""")
def test_layers_of_cudnn_train_with_a_mask(printed, run_together, tensorflow):
    assert printed == ["4"]
    assert "cudnnGetRNNTempSpaceSizes" in run_together(tensorflow)[0].output


@pytest.mark.program("""
import tensorflow as tf
drawn = tf.random.normal([6, 6])
@tf.function(input_signature=2 * [tf.TensorSpec([None, 6])])
def as_many(a, b):
    tf.debugging.assert_equal(tf.shape(a)[0], tf.shape(b)[0])
    return a
print(*as_many(drawn, drawn).shape)
for wrong in (lambda: as_many(drawn, drawn[:4]), lambda: tf.debugging.assert_equal(tf.shape(drawn)[0], 4),
              lambda: tf.debugging.Assert(False, [drawn])):
    try:
        wrong()
    except tf.errors.InvalidArgumentError:
        print("refused")
""")
def test_assertions_about_shapes_are_checked(printed):
    assert printed == ["6 6", "refused", "refused", "refused"]
