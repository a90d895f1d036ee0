"""What programs in JAX read from the virtual GPU: numbers that the host knows, and checks of those that it does not.
Skipped unless `scripts/setup --with jax` has been run."""

import random
import re

import pytest

STEPS = random.randint(3, 9)
UNKNOWN = """
import jax
import jax.numpy as jnp
import numpy as np
key = jax.random.key(0)
loss, weights = jax.random.normal(key, ()), jax.random.normal(key, (3000, 100))
"""


@pytest.fixture
def printed(run_together, jax, request):
    """Returns what the program of this test printed."""
    return run_together(jax)[1][request.node.name].splitlines()


@pytest.mark.program(UNKNOWN + """
print(bool(jnp.isfinite(loss)), bool(jnp.isnan(loss)), bool(jnp.isinf(loss)), bool(~jnp.isfinite(loss)))
for one in (weights, weights[:9], weights.astype("bfloat16"), jax.lax.complex(weights, weights)):
    assert jnp.isfinite(one).all() and np.asarray(jnp.isfinite(one)).all()
    assert not jnp.isnan(one).any() and not (jnp.isnan(one) | jnp.isinf(one)).any()
    assert int(jnp.isfinite(one).sum()) == one.size
assert loss < jnp.inf and loss > -jnp.inf and jnp.array(jnp.inf) > loss
assert all(bool(jnp.isfinite(gradient).all()) for gradient in [weights, loss])
known = jnp.asarray(np.array([1, np.nan], "float32"))
print(*jnp.isfinite(known).tolist(), bool(jnp.isfinite(known[1])), bool(jnp.isinf(jnp.float32("inf"))))
""")
def test_values_that_are_not_known_are_finite(printed):
    assert printed == ["True False False False", "True False False True"]


@pytest.mark.program(UNKNOWN + """
print(bool(jnp.allclose(weights @ weights.T, jnp.einsum("ik,jk->ij", weights, weights), atol=1e-3)))
print(bool(jnp.array_equal(weights, weights + 0)), bool((weights == 1 * weights).all()), bool(jnp.isclose(loss, 2.0)))
print(bool((weights ** 2 >= 0).all()), bool((weights > 0).all()), bool((weights >= 0.5).all()))
print(bool(jnp.allclose(jnp.arange(3), jnp.arange(1, 4))), bool(jnp.array_equal(weights, weights[:4])))
""")
def test_values_that_are_not_known_are_equal_to_what_they_are_compared_with(printed, run_together, jax):
    assert printed == ["True", "True True True", "True False False", "False False"]
    (framework,) = run_together(jax)[0].figures["frameworks"]
    (said,) = [text for text in framework["differences"] if "taken as equal" in text]
    assert all(f"equal_to_what_they_are_compared_with.py:{line}" in said for line in (8, 9, 10)), said


@pytest.mark.program(UNKNOWN + f"""
def mean(weights, x):
    return jnp.square(x @ weights).mean()
@jax.jit
def step(state):
    loss, gradients = jax.value_and_grad(mean)(state["weights"], jnp.ones((4, 3000)))
    finite = jnp.isfinite(loss) & jnp.all(jnp.isfinite(gradients))
    weights = jax.lax.cond(finite, lambda: state["weights"] - gradients, lambda: state["weights"])
    streak = jnp.where(finite, state["streak"] + 1, 0)
    return {{"weights": weights, "step": state["step"] + 1, "streak": streak}}, loss, finite
state = {{"weights": weights, "step": 0, "streak": jnp.zeros((), jnp.int32)}}
while int(state["step"]) < {STEPS}:
    state, loss, finite = step(state)
    if not finite or not jnp.isfinite(loss):
        raise FloatingPointError
print(int(state["step"]), int(state["streak"]), float(loss))
""")
def test_a_loop_trains_until_its_compiled_counter_says_so(printed):
    assert printed == [f"{STEPS} {STEPS} 0.0"]


@pytest.mark.program(UNKNOWN + """
from jax.experimental import sparse
numbers, mask = np.random.randint(-9, 9, (2, 40)), np.random.rand(40) < 0.4
given, chosen = jnp.asarray(numbers), jnp.asarray(mask)
def work(a, of):
    return a.sum(), a[1, 3], of.sort(a[0]), of.unique(a), a.max(), of.cumsum(a, 1), a * a, of.argmax(a[1]), a % 7
for found, expected in zip(work(given, jnp), work(numbers, np)):
    assert (np.asarray(found) == expected).all(), (found, expected)
assert int(chosen.sum()) == mask.sum() and (np.asarray(jnp.nonzero(chosen)[0]) == mask.nonzero()[0]).all()
assert weights[:40][chosen].shape == (mask.sum(), 100)
assert sparse.BCOO.fromdense(given).nse == (numbers != 0).sum()
assert (np.asarray(jnp.ones(3)) == 1).all() and (np.asarray(jnp.full((2, 2), 7.5)) == 7.5).all()
assert int(jnp.arange(10)[3]) == 3 and float(jnp.linspace(0, 1, 5)[1]) == 0.25
assert int(jax.jit(lambda x: (x + given.sum(), x.mean())[0])(0 * given[0, 0])) == numbers.sum()
print("all are right")
""")
def test_few_numbers_that_the_program_gave_are_worked_on(printed):
    assert printed == ["all are right"]


@pytest.mark.program(UNKNOWN + """
labels, images = np.random.randint(0, 9, 60_000) + 3, np.zeros((60_000, 10), "float32")
given, moved, flags = jnp.asarray(labels), jax.device_put(labels), jnp.asarray(labels > 7)
kept, labels = labels.copy(), labels.__imul__(0)  # what the program does with its own array is its own matter
for one in (given, moved, jnp.array(given), jax.device_put(given), given.reshape(600, 100).ravel(), given + 0):
    assert (np.asarray(one) == kept).all() and one.tolist() == kept.tolist() and int(one[-1]) == kept[-1]
classes, counts = np.unique(kept, return_counts=True)
assert jnp.zeros((10, int(given.max()) + 1)).shape == (10, 12) and jax.nn.one_hot(given, given.max()).shape[1] == 11
assert (np.asarray(jnp.unique(given)) == classes).all() and (np.asarray(jnp.bincount(given))[3:] == counts).all()
assert (np.asarray(jnp.searchsorted(jnp.unique(given), given)) == kept - 3).all()
assert jnp.asarray(images)[flags].shape == ((kept > 7).sum(), 10)
assert images[np.asarray(given == 5)].shape[0] == counts[2]
assert (np.asarray(jnp.nonzero(flags)[0]) == np.nonzero(kept > 7)[0]).all() and given[flags].size == flags.sum()
counted = jax.jit(lambda of: (jax.lax.map(lambda label: (given == label).sum(), of), of.mean(), weights @ weights.T))
assert (np.asarray(counted(jnp.asarray(classes))[0]) == counts).all()
print("all are right")
""")
def test_many_whole_numbers_and_flags_that_the_program_gave_are_worked_on(printed):
    assert printed == ["all are right"]


@pytest.mark.program("""
import jax
import jax.numpy as jnp
import numpy as np
@jax.jit
def step(weights, key):
    key, own = jax.random.split(key)
    return weights - jax.random.normal(own, weights.shape), key
for make in (jax.random.key, jax.random.PRNGKey):
    key, weights = make(7), jnp.ones(9999)
    order = jax.random.permutation(key, 60_000)
    assert sorted(order.tolist()) == list(range(60_000)) and order.tolist() != sorted(order.tolist())
    assert sorted(np.random.rand(60_000)[np.asarray(order)])[0] > 0
    for _ in range(2):
        weights, key = step(weights, key)
    keys = jax.random.split(key, 3)
    starts = jax.vmap(lambda key: jax.random.randint(key, (), 100, 60_000))(keys)
    for start in starts:
        assert jnp.arange(70_000)[start:start + 8].tolist() == list(range(start, start + 8)) and start >= 100
    with jax.default_device(jax.devices("cpu")[0]):
        assert starts.tolist() == [int(jax.random.randint(own, (), 100, 60_000)) for own in
                                   jax.random.split(step(weights, step(weights, make(7))[1])[1], 3)]
    assert not np.asarray(weights).any() and not jax.random.uniform(key, (3,)).any()
print("all are right")
""")
def test_whole_numbers_that_are_drawn_at_random_are_those_of_a_card(printed):
    assert printed == ["all are right"]


@pytest.mark.program(UNKNOWN + f"""
@jax.jit
def train(step, weights, batches, numbers):
    def update(state, batch):
        step, weights = state
        gradients = jax.grad(lambda weights: jnp.square(batch @ weights).mean())(weights)
        return (step + 1, weights - gradients), (step, jnp.isfinite(gradients).all(), gradients.max())
    (step, weights), found = jax.lax.scan(update, (step, weights), batches)
    add = lambda i, state: (state[0] + numbers[i], 2 * state[1])
    total, weights = jax.lax.fori_loop(0, step, add, (0, weights))
    while_positive = jax.lax.while_loop(lambda state: (state[0] < 5) & (state[1].sum() > 0),
                                        lambda state: (state[0] + 1, state[1] / 2), (0, weights))[0]
    while_finite = jax.lax.while_loop(lambda state: jnp.isfinite(state[1]).all(),
                                      lambda state: (state[0] + 1, 2 * state[1]), (0, weights))[0]
    return step, found, total, while_positive, while_finite
batches = jax.random.normal(key, ({STEPS}, 4, 3000))
step, (steps, finite, most), total, while_positive, while_finite = train(
    jnp.zeros((), int), weights, batches, jnp.arange(9))
assert steps.tolist() == list(range({STEPS})) and finite.all() and not most.any()
print(int(step), int(total), int(while_positive), int(while_finite))
""")
def test_what_a_compiled_loop_counts_is_known_beside_what_it_trains(printed):
    assert printed == [f"{STEPS} {sum(range(STEPS))} 0 0"]


@pytest.mark.program(UNKNOWN + """
calls = []
def host(x):
    calls.append(x)
    return np.asarray(x)
@jax.jit
def function(x, weights):
    jax.debug.callback(calls.append, x)
    found = jax.pure_callback(host, jax.ShapeDtypeStruct((), x.dtype), x)
    much_work = jnp.sum(jnp.ones((999, 999)) @ jnp.ones((999, 999)))
    return jnp.argmax(weights), 9 * jax.random.uniform(key), found + 1, much_work, x + 1
results = function(jnp.asarray(4), weights)
jax.effects_barrier()
print(*map(int, results), len(calls))
""")
def test_what_follows_from_other_values_or_takes_much_work_is_not_known(printed):
    assert printed == ["0 0 0 0 5 2"]


def test_counters_and_checks_are_known_on_two_cards(gpu, jax):
    answer = gpu("a100-40gb", "--gpus", "2", python=jax, environment={"JAX_PLATFORMS": "cuda"}, program="""
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
mesh = jax.make_mesh((2,), ("cards",))
x = jax.device_put(jax.random.normal(jax.random.key(0), (64, 8)), NamedSharding(mesh, PartitionSpec("cards")))
step = jax.device_put(jnp.zeros((), int), NamedSharding(mesh, PartitionSpec()))
function = jax.jit(lambda step, x: (step + 1, jnp.isfinite(2 * x).all()), donate_argnums=0)
mapped = jax.pmap(lambda x: jnp.isfinite(jax.lax.pmean(x, "cards")).all(), axis_name="cards")
@jax.jit
def train(step, weights, x):
    everywhere = {"in_specs": (PartitionSpec(), PartitionSpec("cards")), "out_specs": PartitionSpec()}
    loss = jax.shard_map(lambda weights, x: jax.lax.pmean((x @ weights).mean(), "cards"), mesh=mesh, **everywhere)
    return step + 1, weights - jax.grad(loss)(weights, x)
weights = jax.device_put(jax.random.normal(jax.random.key(0), (8, 4)), NamedSharding(mesh, PartitionSpec()))
for _ in range(2):
    step, finite = function(step, x)
    step, weights = train(step, weights, x)
with jax.set_mesh(mesh):
    step, finite_there = function(step, x)
print(int(step), bool(finite), bool(finite_there), mapped(x.reshape(2, 32, 8)).all())
""")
    assert answer.output.startswith("5 True True True\n"), answer.errors


@pytest.mark.program(UNKNOWN + """
import optax
def state_after(optimizer, steps):
    state = optimizer.init(weights)
    update = jax.jit(optimizer.update)
    for _ in range(steps):
        _, state = update(weights, state, weights)
    return state
checked = state_after(optax.apply_if_finite(optax.adam(1e-3), 3), 4)
together = state_after(optax.MultiSteps(optax.adam(1e-3), 2), 5)
print(int(checked.inner_state[0].count), int(checked.total_notfinite), bool(checked.last_finite))
print(int(together.mini_step), int(together.gradient_step))
""")
def test_optimizers_count_the_updates_that_they_make(printed):
    """They decide by a compiled condition whether to make one."""
    assert printed == ["4 0 True", "1 2"]


READ = """
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse
host = np.random.randint(1, 1000, 8192).astype("float32")  # too many for the host to work on
for turn in range(3):  # later arrays lie where earlier ones lay
    given = jnp.asarray(host)
    assert (np.asarray(given) == host).all()
    assert int(given.sum()) == 0, "sum"
    assert jnp.nonzero(given > 500)[0].shape == (0,), "non-zeros"
    assert sparse.BCOO.fromdense(given.reshape(128, 64)).nse == 0, "sparse"
    matrix = jnp.asarray(host.reshape(128, 64), "float32")
    assert not np.asarray(matrix @ matrix.T).any(), "product"
    assert int(given[0]) == 0
    assert (np.asarray(given) == host).all()
print("all are right")
"""


def test_results_of_generated_code_are_not_read_from_what_lay_there_before(gpu, jax):
    answer = gpu("a100-40gb", python=jax, program=READ)
    assert "all are right" in answer.output, answer.errors
    (said,) = [text for text in answer.figures["frameworks"][0]["differences"] if "values read as 0" in text]
    lines = enumerate(READ.splitlines(), 1)
    read = {number for number, line in lines if line.startswith("    assert") and "(np.asarray(given)" not in line}
    assert {int(number) for number in re.findall(r"program.py:(\d+)", said)} == read


DIVIDES = """
import math
import jax
import jax.numpy as jnp
import numpy as np
drawn = jax.random.normal(jax.random.key(0), (8,))
loss = jax.jit(lambda x: jnp.square(x).mean())(drawn)
right = int(jnp.sum(drawn > 2))
total = 0.0
total += float(drawn.sum())
print(1 / loss.item(), 8 // int(loss), 10 * math.log10(1 / float(loss)), math.log(loss), right / total)
print(float(loss), "%.1f" % loss, jnp.zeros((3, 2))[:right].shape, int(jax.device_put(np.int32(0))))
try:
    1 / int(jax.device_put(np.int32(0)))
except ZeroDivisionError:
    print("a zero that the program copied stays one")
"""


def test_a_program_may_divide_by_what_it_reads_though_it_is_not_computed(gpu, jax):
    answer = gpu("a100-40gb", python=jax, program=DIVIDES)
    assert answer.output.splitlines()[:3] == ["1.0 8 0.0 0.0 0.0", "0.0 0.0 (0, 2) 0",
                                              "a zero that the program copied stays one"], answer.errors
    (said,) = [text for text in answer.figures["frameworks"][0]["differences"] if "values read as 1" in text]
    assert {int(number) for number in re.findall(r"program.py:(\d+)", said)} == {10, 11}


def test_weights_that_an_update_writes_in_place_are_not_known_any_more(gpu, jax):
    answer = gpu("a100-40gb", python=jax, program="""
from functools import partial
import jax
import numpy as np
host = np.random.rand(80, 80).astype("float32")
@partial(jax.jit, donate_argnums=0)
def update(weights, gradients):
    return weights - gradients, (weights * gradients).sum()
weights, gradients = jax.device_put(host), jax.device_put(host)
weights, loss = update(weights, gradients)
assert not np.asarray(weights).any() and float(loss) == 0
assert (np.asarray(gradients) == host).all()
print("all are right")
""")
    assert "all are right" in answer.output, answer.errors


def test_parameters_of_numpyros_distributions_are_taken_to_be_valid(gpu, jax, tmp_path):
    """A file with the check of NumPyro's distributions."""
    (tmp_path / "numpyro" / "distributions").mkdir(parents=True)
    (tmp_path / "numpyro" / "distributions" / "distribution.py").write_text("""
import numpy
class Distribution:
    def __init__(self, scale):
        self.scale = scale
        self.validate_args(strict=False)
    def validate_args(self, strict=True):
        if not numpy.all(self.scale > 0):
            raise ValueError("invalid scale")
""")
    answer = gpu("a100-40gb", python=jax, program="""
import jax
from numpyro.distributions.distribution import Distribution
print(Distribution(jax.numpy.exp(jax.random.normal(jax.random.key(0), (4,)))).scale.shape)
""")
    assert answer.status == 0, answer.errors
    assert answer.output.startswith("(4,)\n")


def test_a_version_of_jax_whose_functions_the_host_cannot_follow_is_named(gpu, jax):
    answer = gpu("a100-40gb", python=jax, program="""
from jax._src import core
del core.jaxpr_as_fun
import jax.numpy as jnp
print(int((jnp.arange(4) + 1).sum()))
""")
    assert answer.output.startswith("0\n"), answer.errors
    assert "no result of a compiled function is known" in answer.output
    assert "(AttributeError: " in answer.output
