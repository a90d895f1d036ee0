"""Does TensorFlow have what published advice tells its users to use, and what does using it raise?

    ask_tensorflow.py --probe NAME    one fact as one line of JSON
    ask_tensorflow.py --all           every fact, each asked in a fresh process: tensorflow.json

Each probe does what the advice does, in our own words; it returns what a reader should know, and
raises what TensorFlow raises. No GPU is needed: what takes one is asked as far as the CPU build
goes, and says so.
"""

import argparse
import datetime
import inspect
import json
import os
import re
import subprocess
import sys
from collections import Counter

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

PROBES = {}


class Refuted(Exception):
    """Raised when the advice runs but does something else than it says."""


def probe(function):
    PROBES[function.__name__] = function
    return function


def first_cpu(tf):
    return tf.config.list_physical_devices("CPU")[0]


def said_by(call, *arguments):
    """What a call on the CPU raises, in one line; what takes a GPU is refused there."""
    try:
        call(*arguments)
        return "accepted on the CPU"
    except (ValueError, RuntimeError) as error:
        return f"on the CPU: {type(error).__name__}: {str(error).splitlines()[0]}"


def library_text(tf, text):
    """Whether the compiled library holds a text, such as a variable it reads."""
    folder = os.path.dirname(tf.__file__)
    libraries = [name for name in os.listdir(folder) if name.startswith("libtensorflow")]
    for name in libraries:
        with open(os.path.join(folder, name), "rb") as library:
            if text.encode() in library.read():
                return f"{name} of this build reads {text}"
    raise Refuted(f"no library of this build ({', '.join(sorted(libraries))}) knows {text}")


def run(program):
    """A program whose names do not exist, so that it can only be kept as text."""
    exec(compile(program, "the source's program", "exec"), {})


@probe
def set_memory_growth(tf):
    return "it exists; " + said_by(tf.config.experimental.set_memory_growth, first_cpu(tf), True)


@probe
def virtual_device_limit(tf):
    limit = tf.config.experimental.VirtualDeviceConfiguration(memory_limit=4096)
    set_devices = tf.config.experimental.set_virtual_device_configuration
    return "it exists; " + said_by(set_devices, first_cpu(tf), [limit])


@probe
def set_memory_limit(tf):
    tf.config.experimental.set_memory_limit(first_cpu(tf), 0.5)


@probe
def fraction_of_session(tf):
    options = tf.compat.v1.GPUOptions(per_process_gpu_memory_fraction=0.5)
    assert options.per_process_gpu_memory_fraction == 0.5
    return "a field of tf.compat.v1's session options, not of tf.config"


@probe
def strategy_lists_devices(tf):
    tf.distribute.MirroredStrategy().extended.list_physical_devices("GPU")


@probe
def limits_after_start(tf):
    tf.constant(1.0)  # starts the runtime, as building a strategy or a model does
    two = [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
    tf.config.set_logical_device_configuration(first_cpu(tf), two)


@probe
def memory_share_per_layer(tf):
    takes = set(inspect.signature(tf.config.LogicalDeviceConfiguration).parameters)
    takes |= set(inspect.signature(tf.keras.layers.Layer.__init__).parameters)
    shares = sorted(name for name in takes if "fraction" in name or "share" in name)
    if not shares:
        raise Refuted(
            "neither a logical device nor a layer takes a share of memory; they take "
            + ", ".join(sorted(takes - {"self", "args", "kwargs"}))
        )
    return f"there is {', '.join(shares)}"


@probe
def experimental_optimizer(tf):
    tf.config.optimizer.get_experimental_optimizer(tf.keras.optimizers.Adam())


@probe
def memory_optimizer_options(tf):
    tf.config.optimizer.MemoryOptimizerOptions(minimum_segment_size=1 << 20)


@probe
def async_allocator_variable(tf):
    return library_text(tf, "TF_GPU_ALLOCATOR")


@probe
def cudnn_workspace_variable(tf):
    return library_text(tf, "TF_CUDNN_WORKSPACE_LIMIT_IN_MB")


@probe
def force_growth_variable(tf):
    return library_text(tf, "TF_FORCE_GPU_ALLOW_GROWTH")


@probe
def details_hold_memory(tf):
    details = tf.config.experimental.get_device_details(first_cpu(tf))
    return f"{details['memory_total']} bytes in all, {details['memory_used']} used"


@probe
def reset_without_device(tf):
    tf.config.experimental.reset_memory_stats()


@probe
def reset_of_device(tf):
    return "it exists; " + said_by(tf.config.experimental.reset_memory_stats, "CPU:0")


@probe
def guard_without_meter(_tf):
    class Guard:
        def __enter__(self):
            self.before = self.usage()
            return self

        def __exit__(self, *_error):
            if self.usage() - self.before > 0:
                raise MemoryError("grew")

        def usage(self):  # left empty, as the source prints it
            pass

    with Guard():
        pass


@probe
def placeholder(tf):
    tf.placeholder(tf.float32, shape=[None, 28, 28, 1])


@probe
def graph_is_the_default(tf):
    if tf.executing_eagerly():
        raise Refuted("a fresh program executes eagerly; only what tf.function wraps is a graph")
    return "a fresh program builds graphs"


@probe
def run_functions_eagerly(tf):
    tf.config.run_functions_eagerly(True)
    return f"it exists, and then functions run eagerly: {tf.config.functions_run_eagerly()}"


@probe
def prefetch_and_shuffle(tf):
    data = tf.data.Dataset.from_tensor_slices(([1.0, 2.0], [0, 1]))
    data = data.shuffle(buffer_size=10000).batch(32).prefetch(tf.data.AUTOTUNE)
    return f"one batch of {len(next(iter(data))[0])} comes out"


def small_model(tf):
    return tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(4)])


@probe
def prune_low_magnitude(tf):
    import tensorflow_model_optimization as tfmot

    pruned = tfmot.sparsity.keras.prune_low_magnitude(small_model(tf))
    return f"a model of {len(pruned.layers)} layers comes out"


@probe
def quantise_by_conversion(tf):
    converter = tf.lite.TFLiteConverter.from_keras_model(small_model(tf))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    return f"a file of {len(converter.convert())} bytes comes out"


@probe
def mirrored_strategy(tf):
    strategy = tf.distribute.MirroredStrategy()
    return f"it builds with {strategy.num_replicas_in_sync} replica here"


@probe
def tensorboard_profile(tf):
    tf.keras.callbacks.TensorBoard(log_dir="/tmp", histogram_freq=1, profile_batch=(10, 20))
    return "the callback is built"


@probe
def name_scope(tf):
    return f"it exists and says '{tf.get_current_name_scope()}' outside every scope"


@probe
def level_2_shows_warnings(tf):
    del tf
    # A cache that is read in part makes the runtime warn.
    program = "import tensorflow as tf; list(tf.data.Dataset.range(9).cache().take(2))"
    lines = {}
    for level in ("0", "1", "2"):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": level}
        said = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        ).stderr
        marks = re.findall(r"^([IWE])\d{4} |: ([IWE]) \S+\.cc:\d+\]", said, re.MULTILINE)
        lines[level] = Counter(first or second for first, second in marks)
    text = "; ".join(
        f"level {level}: {count['I']} of information, {count['W']} warnings, {count['E']} errors"
        for level, count in lines.items()
    )
    assert lines["0"]["W"] > 0, "nothing warned at level 0"
    if lines["2"]["W"] == 0:
        raise Refuted(f"lines at {text}: no warning at level 2")
    return f"lines at {text}"


@probe
def delete_of_a_name_never_assigned(_tf):
    run("def train():\n    del large\ntrain()")


@probe
def undefined_process(_tf):
    run("def generate(data):\n    for item in data:\n        yield process(item)\nnext(generate([1]))")


def ask(name):
    import tensorflow as tf

    fact = {"name": name, "works": True, "version": f"TensorFlow {tf.__version__}"}
    try:
        fact["says"] = PROBES[name](tf)
    except Refuted as refuted:
        fact.update(works=False, says=str(refuted))
    except Exception as error:  # whatever it raises is the answer
        first = (str(error).strip().splitlines() or [""])[0]
        fact.update(works=False, says=f"{type(error).__name__}: {first}")
    return fact


def ask_all():
    facts = []
    for name in PROBES:
        said = subprocess.run(
            [sys.executable, __file__, "--probe", name], capture_output=True, text=True, check=True
        )
        facts.append(json.loads(said.stdout.splitlines()[-1]))
    versions = {fact.pop("version") for fact in facts}
    return {
        "engine": "tensorflow",
        "version": ", ".join(sorted(versions)),
        "recorded": datetime.date.today().isoformat(),
        "python": sys.version.split()[0],
        "facts": facts,
    }


def main():
    parser = argparse.ArgumentParser()
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--probe", choices=sorted(PROBES))
    group.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    if arguments.all:
        print(json.dumps(ask_all(), indent=1))
    else:
        print(json.dumps(ask(arguments.probe)))


if __name__ == "__main__":
    main()
