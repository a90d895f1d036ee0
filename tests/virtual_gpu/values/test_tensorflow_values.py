"""Values that programs in TensorFlow know, or that are assumed. Skipped unless `scripts/setup --with
tensorflow` has been run."""

import random

import pytest

ROWS, STEPS = random.randint(2, 9), random.randint(2, 9)


@pytest.fixture
def printed(run_together, tensorflow, request):
    """Returns what the program of this test printed."""
    return run_together(tensorflow)[1][request.node.name].splitlines()


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


# Calls a function that is read from a file, so that its operations are placed on the device by TensorFlow alone.
LOADED = """
import tensorflow as tf
from tensorflow.python.eager import wrap_function
def loaded(function, *operands):
    graph = tf.function(function).get_concrete_function(*operands).graph
    stored = graph.as_graph_def()
    for node in stored.node:
        node.device = ""
    names = [[tensor.name for tensor in tensors] for tensors in (graph.inputs, graph.outputs)]
    return wrap_function.function_from_graph_def(stored, *names)(*operands)
"""


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
labels, images = np.random.randint(0, 9, 60_000) + 3, np.zeros((60_000, 10), "float32")
given, x = tf.constant(labels), tf.constant(images)
kept, labels = labels.copy(), labels.__imul__(0)  # what the program does with its own array is its own matter
assert given.backing_device.endswith("GPU:0")
parts = [given[:50_000], given[50_000:]]
for one in (given, tf.reshape(given, (600, 100)), tf.concat(parts, 0), tf.cast(given, tf.int32)):
    assert (np.asarray(one).ravel() == kept).all() and (one.numpy().ravel() == kept).all()
classes, counts = np.unique(kept, return_counts=True)
assert tf.one_hot(given, int(tf.reduce_max(given)) + 1).shape == (60_000, 12) and int(given[-1]) == kept[-1]
assert sorted(tf.unique(given)[0].numpy()) == list(classes) and (tf.math.bincount(given).numpy()[3:] == counts).all()
assert sorted(tf.unique_with_counts(given)[2].numpy()) == sorted(counts)
mask = (given == 3) | (given == 7)
places = tf.where(mask)
assert (places.numpy().ravel() == np.nonzero((kept == 3) | (kept == 7))[0]).all()
assert x[given == 5].shape == (counts[2], 10)
assert tf.boolean_mask(x, mask).shape == (counts[0] + counts[4], 10) and mask.numpy().sum() == counts[0] + counts[4]
assert [part.shape[0] for part in tf.dynamic_partition(x, tf.cast(given % 2, tf.int32), 2)] == [
    (kept % 2 == 0).sum(), (kept % 2 == 1).sum()]
assert (next(iter(tf.data.Dataset.from_tensor_slices(given).batch(100))).numpy() == kept[:100]).all()
assert (tf.gather(given, places[:, 0]).numpy() == kept[places.numpy().ravel()]).all()
random = tf.cast(tf.random.uniform((60_000,)) * 100, tf.int64)  # what is not known stays so
assert not tf.reduce_max(random).numpy() and not np.asarray(random + given).any()
del given, one, parts, mask, places  # what is made later lies where these lay
assert not (tf.ones((600, 100), tf.float32) * tf.random.normal((600, 100))).numpy().any()
print("all are right")
""")
def test_many_whole_numbers_that_the_program_gave_are_worked_on(printed):
    assert printed == ["all are right"]


@pytest.mark.program(LOADED + """
import numpy
names = ("add", "subtract", "multiply", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
def combined(a, b):
    return [getattr(tf, name)(a, b) for name in names]
for count in (1, 3, 50):
    row, other = numpy.random.randint(-9, 9, (2, count))
    for a, b in ((row, other), (row, other[0]), (row[0], other), (row[0], other[0])):
        given = tf.constant(a, tf.int64), tf.constant(b, tf.int64)
        for found in (combined(*given), loaded(combined, *given)):
            for name, one in zip(names, found):
                assert (one.numpy() == getattr(numpy, name)(a, b)).all(), (name, a, b, one)
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
for work in (lambda: row + row, lambda: row * 2, lambda: row / column, lambda: few[:, None] // few, lambda: row < column,
             lambda: tf.cast(row, tf.int32), lambda: tf.sin(row), lambda: tf.complex(row, row), lambda: tf.sqrt(row),
             lambda: tf.concat([column, column], 1), lambda: tf.reduce_mean(row),
             lambda: tf.split(tf.reshape(row, (8, 8)), 2, 1)[1], lambda: tf.split(tf.reshape(row, (4, 16)), 16, 1)[9],
             lambda: tf.split(tf.reshape(row, (8, 8)), [3, 5], 1)[1]):
    earlier = [in_gpu(np.full(count, 7, "float32")) for count in (1, 64, 128, 1024, 4096, 8192) for _ in range(3)]
    del earlier  # what is made later lies where this lay
    made = work()
    assert made.device.endswith("GPU:0") and not made.numpy().any(), made
print("all are zeros")
""")
def test_a_result_is_not_read_from_what_lay_there_before(printed):
    assert printed == ["all are zeros"]


@pytest.mark.program(LOADED + """
with tf.device("GPU"):
    lengths, flags = tf.constant([3, 5, 2], tf.int64), [tf.constant(some) for some in ([True, False], [True], [False])]
def reduced(lengths):
    return [reduce(lengths) for reduce in (tf.reduce_max, tf.reduce_min, tf.reduce_sum, tf.reduce_prod)]
print(*map(int, reduced(lengths)), *map(int, loaded(reduced, lengths)))
print(*[bool(reduce(which)) for reduce in (tf.reduce_all, tf.reduce_any) for which in flags])
print(tf.sequence_mask(lengths).shape)
""")
def test_few_known_whole_numbers_and_flags_are_combined_to_one(printed):
    assert printed == ["5 2 10 30 5 2 10 30", "False True False True True False", "(3, 5)"]


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
lengths = np.random.randint(0, 5, 6)
tokens = tf.RaggedTensor.from_row_lengths(np.random.randint(0, 9, lengths.sum()), lengths)
table, sparse = tf.random.normal((9, 4)), tokens.to_sparse()
def work():
    rows = tf.nn.embedding_lookup(table, tokens)
    yield tokens.value_rowids(), (lengths.sum(),)
    yield tf.reduce_mean(rows, axis=1), (6, 4)
    yield tf.concat([tokens, tokens], axis=1).to_tensor(), (6, 2 * lengths.max())
    yield tf.nn.safe_embedding_lookup_sparse(table, sparse), (6, 4)
    yield tf.boolean_mask(tf.ones((6, 5)), tf.sequence_mask(lengths, 5)), (lengths.sum(),)
    yield tf.unique(tf.constant([4, 2, 4, 7], tf.int64))[0], (3,)
    yield tf.math.bincount([1, 2, 2, 5]), (6,)
    yield tf.math.confusion_matrix([1, 2, 0], [1, 2, 2]), (3, 3)
    yield tf.linspace(0.0, 1.0, 5), (5,)
for found, expected in work():
    assert found.shape == expected, (lengths, found, expected)
for found, expected in zip(tf.function(lambda: [found for found, _ in work()])(), [shape for _, shape in work()]):
    assert found.shape == expected, (lengths, found, expected)
print("all are right")
""")
def test_few_known_whole_numbers_determine_shapes(printed):
    assert printed == ["all are right"]


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
boxes = tf.constant(np.random.rand(3, 4), tf.float32)
print(*tf.image.crop_and_resize(tf.random.normal((2, 32, 32, 3)), boxes, [0, 1, 1], (8, 8)).shape)
print(*tf.sparse.to_dense(tf.SparseTensor([[0, 1], [1, 2]], [1.0, 2.0], [4, 5])).shape)
""")
def test_indices_that_a_kernel_checks_are_valid(printed):
    assert printed == ["3 8 8 3", "4 5"]


@pytest.mark.program("""
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
print("all are right")
""")
def test_a_known_mask_selects_as_many_rows_as_it_has(printed):
    """TensorFlow counts them on the GPU, in one kernel or in two, with a result in memory of the host."""
    assert printed == ["all are right"]


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
from keras.src.legacy import backend
numbers, mask = np.random.randint(1, 9, (4, 6)).astype("int32"), np.random.rand(4, 6) < 0.4
lengths = np.random.randint(1, 7, 4).astype("int32")
shorter = np.arange(6) < lengths[:, None]
def chosen(numbers, mask, lengths):
    labels = backend.ctc_label_dense_to_sparse(numbers, lengths)
    return tf.boolean_mask(numbers, mask), tf.where(mask), tf.reduce_sum(tf.cast(mask, "int32")), labels.indices
for choose in (chosen, tf.function(chosen)):
    found = [one.numpy().tolist() for one in choose(*map(tf.constant, (numbers, mask, lengths)))]
    expected = [numbers[mask], np.argwhere(mask), mask.sum(), np.argwhere(shorter)]
    assert found == [one.tolist() for one in expected], (found, expected)
print("all are right")
""")
def test_a_known_mask_chooses_the_whole_numbers_that_it_has(printed):
    """Keras finds in this way where the labels are of which it computes the CTC loss."""
    assert printed == ["all are right"]


@pytest.mark.program(f"""
import numpy as np
import tensorflow as tf
parts = np.random.randint(0, 3, {100 * ROWS})
def divide(rows):
    return tf.dynamic_partition(rows, parts, 3)
for divided in (divide, tf.function(divide)):
    weights = tf.Variable(tf.ones((4, 2)))
    with tf.GradientTape() as tape:
        rows = divided(tf.ones(({100 * ROWS}, 4)) @ weights)
        loss = tf.add_n([tf.reduce_sum(part) for part in rows])
    assert [tuple(part.shape) for part in rows] == [(count, 2) for count in np.bincount(parts, minlength=3)], rows
    assert tape.gradient(loss, weights).shape == (4, 2)
print("all are right")
""")
def test_rows_are_divided_into_known_parts(printed):
    assert printed == ["all are right"]


@pytest.mark.program("""
import tensorflow as tf
drawn = tf.random.normal([6, 6])
tf.debugging.assert_positive(tf.exp(drawn))
tf.debugging.assert_near(drawn, drawn * 1)
tf.debugging.Assert(tf.reduce_all(drawn < 99), [drawn])
@tf.function
def doubled(x):
    tf.debugging.assert_less(x, x + 1)
    tf.Assert(tf.reduce_all(x < 99), [x])
    return 2 * x
print(*doubled(drawn).shape, *tf.linalg.inv(drawn).shape)
""")
def test_assertions_about_unknown_values_hold(printed, run_together, tensorflow):
    assert printed == ["6 6 6 6"]
    output = run_together(tensorflow)[0].output
    assert "virtual GPU does not compute, taken to hold: " in output and "autograph" not in output


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
many, few = tf.random.normal((3000, 100)), tf.random.normal((7, 5))
def checks(many, few):
    for x in (many, few, tf.reduce_mean(many), tf.cast(many, "bfloat16")):
        yield tf.reduce_all(tf.math.is_finite(x))
        yield tf.reduce_all(tf.math.is_finite(x), axis=-1) if x.shape.rank else tf.math.is_finite(x)
        yield tf.logical_not(tf.reduce_any(tf.math.is_nan(x) | tf.math.is_inf(x)))
    yield tf.reduce_all([tf.reduce_all(tf.math.is_finite(x)) for x in (many, few)])
@tf.function(input_signature=2 * [tf.TensorSpec([None, None])])
def checked(many, few):
    if not tf.reduce_all(tf.math.is_finite(many)):
        tf.debugging.Assert(False, [few])
    return list(checks(many, few))
for found in (list(checks(many, few)), checked(many, few)):
    assert len(found) == 13 and all(one.numpy().all() for one in found), found
print(*tf.math.is_finite(tf.constant([1, np.nan])).numpy(), bool(tf.math.is_finite(tf.math.log(tf.constant(0.0)))))
rows = np.zeros((3, 5000), "float32")
rows[1, 4] = np.nan
print(len(list(tf.data.Dataset.from_tensor_slices(rows).filter(lambda row: tf.reduce_all(tf.math.is_finite(row))))))
""")
def test_values_that_are_not_known_are_finite(printed):
    assert printed == ["True False True", "2"]


@pytest.mark.program("""
import numpy as np
import tensorflow as tf
lengths = np.arange(20000) % 97
rows = np.random.rand(20000, 4).astype("float32")
several = tf.data.Dataset.from_tensor_slices({"rows": rows, "lengths": tf.constant(lengths)})
short = several.filter(lambda one: one["lengths"] < 5)
print(sum(1 for _ in short), int((lengths < 5).sum()))
print(np.array_equal(next(iter(several.batch(16)))["rows"].numpy(), rows[:16]))
[whole] = tf.data.Dataset.from_tensors(lengths)
print(int(whole.numpy().sum()), int(lengths.sum()))
""")
def test_datasets_have_the_arrays_that_they_were_made_of(printed):
    kept, same, whole = printed
    assert len(set(kept.split())) == 1 and same == "True" and len(set(whole.split())) == 1
