"""Trains a network with TensorFlow as its users do, and says what its allocator held and when.

network: resnet50, bert, dcgan or mlp. compile: graph, xla or eager. growth: on or off. limits: MiB of the
logical device on each card in turn, as in 4096 or 4848/11312; 0 for none. shares: MiB of two logical devices
on one card, as in 6044/9066, for the generator and the discriminator of dcgan. allocator: bfc or
cuda_malloc_async. strategy: one, or mirrored (batch is then that of each replica). optimizer: usual, sgd
or adam. precision: fp32, or fp16 or bf16 (Keras's mixed precision). parts: into how many the batch is divided,
for accumulation. workspace_mb: what a convolution may take for itself, 0 for TensorFlow's own limit. lengths of
bert's sentences: fixed (in the model, too), undeclared (the same batches, and a model that does not know their
length) or varying (the longest first, then three quarters, half and a quarter of it). input: tensors (the same
batch again and again), arrays (numpy, sliced by Keras) or pipeline (tf.data with shuffle and prefetch over the
same arrays). keras: 3 or 2. toolkit: none, prune or quantise, of the TensorFlow Model Optimization Toolkit, on
Keras 2. threads: operations that are started at a time; with more than one, the order of operations and with it
the peak differ a little between processes. hold: on, to keep the memory until standard input ends.
"""

import contextlib
import os
import sys

import card

DEFAULTS = dict(
    network="resnet50", batch=32, sequence=128, width=64, steps=3, compile="graph", growth="off",
    limits="0", shares="", allocator="bfc", strategy="one", optimizer="usual", parts=1, workspace_mb=0,
    precision="fp32", lengths="fixed", input="tensors", keras=3, toolkit="none", threads=1, hold="off")
ONLY_FOR = {"shares": ("dcgan",), "lengths": ("bert",), "toolkit": ("resnet50", "mlp"),
            "precision": ("resnet50", "bert", "mlp")}
given = card.options(
    lacks={"checkpointing": "keras.RematScope fails on TensorFlow in a graph (Keras's issue 21207)"}, **DEFAULTS)
card.check_only_for(given, DEFAULTS, ONLY_FOR)
card.forget_settings("TF_", "CUDA_", keep=("TF_CUDNN_USE_AUTOTUNE", "CUDA_VISIBLE_DEVICES"))
os.environ["TF_CPP_VMODULE"] = "bfc_allocator=1"
if given["growth"] == "on":
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
if given["allocator"] != "bfc":
    os.environ["TF_GPU_ALLOCATOR"] = given["allocator"]
if given["workspace_mb"]:
    os.environ["TF_CUDNN_WORKSPACE_LIMIT_IN_MB"] = str(given["workspace_mb"])
if given["keras"] == 2 or given["toolkit"] != "none":
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
errors = card.ErrorOutput()

import tensorflow as tf  # noqa: E402

import tensorflow_feeding  # noqa: E402
import tensorflow_networks  # noqa: E402

ENGINE = f"TensorFlow {tf.__version__}"
CARDS = tf.config.list_physical_devices("GPU")


POLICIES = {"fp32": "float32", "fp16": "mixed_float16", "bf16": "mixed_bfloat16"}


def configure():
    tf.keras.mixed_precision.set_global_policy(
        POLICIES[card.one_of("precision", given["precision"], POLICIES)])
    if given["strategy"] == "one":  # replicas wait for each other
        tf.config.threading.set_inter_op_parallelism_threads(given["threads"])
    limits = [int(limit) for limit in given["limits"].split("/")]
    for place, one in enumerate(CARDS):
        on_card = [limits[place % len(limits)]]
        if given["shares"]:
            on_card = [int(share) for share in given["shares"].split("/")]
        if on_card != [0]:
            tf.config.set_logical_device_configuration(
                one, [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in on_card])


def counters():
    """TensorFlow's own statistics; with several cards, those of the one with most in use, and of logical
    devices on one card their sum."""
    infos = [tf.config.experimental.get_memory_info(f"GPU:{i}")
             for i in range(len(tf.config.list_logical_devices("GPU")))]
    return {key: (sum if given["shares"] else max)(info[key] for info in infos) for key in ("current", "peak")}


class Readings(tf.keras.callbacks.Callback):
    """Reads TensorFlow's counters and the card's ledger before the first step and after each."""

    def __init__(self, figures):
        super().__init__()
        self.figures, self.done = figures, 0

    def on_train_begin(self, logs=None):
        card.read(self.figures, "initial", counters()["current"], len(CARDS))

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        if self.done == 1:
            card.read(self.figures, "after_step_1", counters()["current"], len(CARDS))


def scope_of_strategy():
    if given["strategy"] == "mirrored":
        return tf.distribute.MirroredStrategy().scope()
    return contextlib.nullcontext()


def train(figures):
    tf.zeros((1,))
    figures["first_operation_bytes"] = card.held(len(CARDS))
    replicas = len(CARDS) if given["strategy"] == "mirrored" else 1
    with scope_of_strategy():
        batch = given["batch"] * replicas // given["parts"]
        make = tensorflow_networks.NETWORKS[
            card.one_of("network", given["network"], tensorflow_networks.NETWORKS)]
        model, data = make({**given, "batch": batch})
        if getattr(model, "optimizer", None) is not None:
            model.optimizer.build(model.trainable_variables)
    batches = given["steps"] * given["parts"]
    readings = Readings(figures)
    callbacks = [readings, *tensorflow_feeding.callbacks(given)]
    model.fit(**tensorflow_feeding.fed(given, data, batches), verbose=0, callbacks=callbacks)
    figures["trained"] = float(readings.done == batches)


def peaks():
    return {"reserved_bytes.steady_peak": card.held(len(CARDS)),
            "allocated_bytes.overall_peak": counters()["peak"]}


def why_out_of_memory(error):
    if not isinstance(error, tf.errors.OpError):
        return ""
    exhausted = isinstance(error, tf.errors.ResourceExhaustedError)
    # A convolution whose workspace is refused ends in an error of another name.
    return card.refusal(errors.text()) or (str(error).splitlines()[0] if exhausted else "")


def main():
    configure()
    figures, note = card.trained(train, peaks, why_out_of_memory)
    if given["allocator"] == "bfc":
        of_cards = [size for name, size in card.regions(errors.text()).items() if name.startswith("GPU")]
        figures["pool_bytes"] = (sum if given["shares"] else max)(of_cards or [0])
    card.report(ENGINE, figures, note)
    if given["hold"] == "on":
        sys.stdin.read()


with errors:
    main()
