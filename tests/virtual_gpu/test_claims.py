"""Cells that train in a framework on a virtual card: with a program in place of the framework, and with the
frameworks' ordinary wheels if `scripts/setup --with tensorflow`, `pytorch` or `jax` has been run."""

import json
import os
import random
import subprocess
import sys

import pytest
from conftest import HEADROOM, MIB

SUITE = """
name = "frameworks"
description = "One cell on a virtual card"
[[experiment]]
id = "cell"
workload = "resnet(depth=18,width=8)"
allocator = "bfc"
device = "virtual(card=v100-16gb)"
scenario = "virtual_gpu({parameters})"
blocks = 1
"""
# Takes `taken` bytes of the card and reports that, or other figures.
PROGRAM = """#!{python}
import ctypes, json
card = ctypes.CDLL(None)
address = ctypes.c_void_p()
assert card.cudaMalloc(ctypes.byref(address), ctypes.c_size_t({taken})) == 0
figures = {figures}
if {waits_for}:
    import os, pathlib, time
    started = pathlib.Path(os.environ["XDG_CACHE_HOME"])
    (started / f"started-{{os.getpid()}}").touch()
    end = time.monotonic() + 60
    while len(list(started.glob("started-*"))) < {waits_for}:
        assert time.monotonic() < end, "no other program started"
        time.sleep(0.01)
if {asks}:
    figures["allocated_bytes.initial"] = card.headroom_gpu_used_bytes(0)
print("a line of the framework's own")
print(json.dumps({{"engine": "Stub 1.0", "figures": figures, **{more}}}))
"""


@pytest.fixture
def run(tmp_path):
    """run(parameters, cache, card) returns the sample of one cell."""

    def sample(parameters, cache=None, card="v100-16gb"):
        suite = tmp_path / "frameworks.toml"
        suite.write_text(SUITE.format(parameters=parameters).replace("v100-16gb", card))
        out = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        environment = dict(os.environ)
        if cache is not None:
            environment["XDG_CACHE_HOME"] = str(cache)
        done = subprocess.run(
            [HEADROOM, "run", str(suite), "--samples-only", "--out", str(out)],
            capture_output=True, text=True, timeout=600, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(next(out.rglob("samples.jsonl")).read_text().splitlines()[-1])

    return sample


@pytest.fixture
def framework(tmp_path):
    """framework(taken, figures) makes an environment whose interpreter is a program that takes memory."""

    def make(taken, figures, asks=False, more=None, waits_for=0):
        python = tmp_path / "headroom" / "environments" / "tensorflow" / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(PROGRAM.format(
            python=sys.executable, taken=taken, figures=figures, asks=asks, more=more or {},
            waits_for=waits_for))
        python.chmod(0o755)
        return tmp_path

    return make


def test_the_peak_is_what_the_card_gave(run, framework):
    taken = random.randrange(1, 1000) * 2 * MIB
    sample = run("framework=tensorflow", framework(taken, {"trained": 1.0}, asks=True))
    assert sample["status"] == "ok", sample["reason"]
    assert sample["engine"] == "Stub 1.0"
    assert sample["figures"]["reserved_bytes.overall_peak"] == taken
    assert sample["figures"]["allocated_bytes.initial"] == taken, "as the program read it"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="takes two cores")
@pytest.mark.parametrize("of_one_block", [True, False])
def test_samples_run_side_by_side(tmp_path, framework, of_one_block):
    """Each program waits until the other has started: two variants, or two experiments of one variant."""
    cache = framework(2 * MIB, {"trained": 1.0}, waits_for=2)
    suite = tmp_path / "frameworks.toml"
    first, second = (f"virtual_gpu(framework=tensorflow,network={network})" for network in ("mlp", "bert"))
    text = SUITE.format(parameters="framework=tensorflow,network=mlp")
    if of_one_block:
        suite.write_text(text.replace(f'"{first}"', f'["{first}", "{second}"]\narms = "scenario"'))
    else:
        another = text[text.index("[[experiment]]"):].replace('"cell"', '"another"').replace(first, second)
        suite.write_text(text + another)
    out = tmp_path / "run"
    done = subprocess.run([HEADROOM, "run", str(suite), "--samples-only", "--out", str(out)],
                          capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    assert done.returncode == 0, done.stderr
    samples = [json.loads(line) for line in next(out.rglob("samples.jsonl")).read_text().splitlines()]
    assert [sample["status"] for sample in samples] == ["ok", "ok"], samples


def test_counters_that_say_more_than_the_card_gave_are_no_evidence(run, framework):
    cache = framework(2 * MIB, {"allocated_bytes.overall_peak": 3.0 * MIB})
    sample = run("framework=tensorflow", cache)
    assert sample["status"] == "invalid"
    assert "the card gave 2.00 MiB at most" in sample["reason"]


def test_what_is_held_when_there_is_no_room_is_no_need_of_training(run, framework):
    sample = run("framework=tensorflow", framework(2 * MIB, {"trained": 0.0}))
    assert sample["status"] == "ok"
    assert sample["figures"] == {"trained": 0}


def test_the_share_in_use_is_of_what_was_held(run, framework):
    cache = framework(8 * MIB, {"allocated_bytes.overall_peak": 2.0 * MIB, "pool_bytes": 6.0 * MIB})
    figures = run("framework=tensorflow", cache)["figures"]
    assert (figures["utilisation"], figures["beside_pool_bytes"]) == (0.25, 2 * MIB)


def test_a_figure_that_is_not_of_memory_is_refused(run, framework):
    sample = run("framework=tensorflow", framework(2 * MIB, {"steady_step_time_ns": 1.0}))
    assert sample["status"] == "crash"
    assert "is not a memory figure" in sample["reason"]


def test_what_a_framework_lacks_is_said_in_its_words(run, framework):
    cache = framework(2 * MIB, {}, more={"not_supported": "growth: there is none"})
    sample = run("framework=tensorflow,growth=on", cache)
    assert sample["status"] == "unsupported"
    assert "growth: there is none" in sample["reason"]


def test_without_the_environment_the_cell_says_how_to_make_it(run, tmp_path):
    sample = run("framework=tensorflow", tmp_path)
    assert sample["status"] == "unsupported"
    assert "scripts/setup --with tensorflow" in sample["reason"]


@pytest.mark.parametrize("parameters, said", [
    ("framework=tensorflo", "did you mean 'tensorflow'?"),
    ("framework=tensorflow,program=../probes/ask", "is not the name of a program"),
    ("framework=tensorflow,cards=9", "from 1 to 8"),
])
def test_what_cannot_run_is_refused_when_the_suite_is_read(tmp_path, parameters, said):
    suite = tmp_path / "frameworks.toml"
    suite.write_text(SUITE.format(parameters=parameters))
    done = subprocess.run([HEADROOM, "run", str(suite), "--dry-run"], capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr


def test_tensorflows_log_and_the_cards_ledger_tell_of_the_same_bytes(run, tensorflow):
    width = random.randrange(512, 2048, 64)
    sample = run(f"framework=tensorflow,growth=on,network=mlp,width={width}")
    assert sample["status"] == "ok", sample["reason"]
    assert sample["engine"].startswith("TensorFlow 2.")
    figures = sample["figures"]
    assert figures["trained"] == 1
    assert 0 <= figures["beside_pool_bytes"] <= 4 * MIB, width
    # Weights, both moments of Adam and the batch. The sizes of regions double.
    weights = 4 * (width + 1) * width * 4
    assert 3 * weights <= figures["allocated_bytes.initial"] <= figures["reserved_bytes.initial"], width
    assert figures["first_operation_bytes"] <= figures["reserved_bytes.initial"]


def test_a_limit_that_is_too_small_is_an_answer(run, tensorflow):
    sample = run("framework=tensorflow,limits=256,network=mlp,width=4096")
    assert sample["status"] == "ok", sample["reason"]
    assert sample["figures"]["trained"] == 0
    assert "ran out of memory trying to allocate" in sample["note"]


def test_shares_of_a_card_are_two_pools(run, tensorflow):
    first, second = (random.randrange(500, 2000) for _ in range(2))
    sample = run(f"batch=2,framework=tensorflow,network=dcgan,shares={first}/{second},width=8")
    assert sample["status"] == "ok", sample["reason"]
    assert sample["figures"]["trained"] == 1
    assert sample["figures"]["pool_bytes"] == (first + second) * MIB


def test_a_second_process_has_what_the_first_one_left(run, tensorflow):
    # Weights, gradients and moments take 1 GiB. The first process leaves 1050 MiB of the card, of which the second one
    # takes only a part.
    parameters = "framework=tensorflow,network=mlp,program=two_processes,width=4096"
    shared = run(f"{parameters},visible=all")
    assert shared["status"] == "ok", shared["reason"]
    assert shared["figures"]["trained"] == 0
    assert shared["note"].startswith("Process 2: It ran out of memory")
    own = run(f"cards=2,{parameters},visible=own")
    assert own["figures"]["trained"] == 1, own["note"]


def test_masks_of_the_toolkit_are_weights_more(run, tensorflow):
    width = random.randrange(512, 1024, 64)
    parameters = f"framework=tensorflow,growth=on,network=mlp,width={width}"
    dense, masked = (run(f"{parameters},{more}")["figures"]["allocated_bytes.initial"]
                     for more in ("keras=2", "toolkit=prune"))
    assert 4 * 4 * width**2 <= masked - dense <= 5 * 4 * width**2, width


@pytest.mark.parametrize("framework", ["tensorflow", "pytorch"])
def test_a_tensor_kept_of_every_step_is_a_leak_of_its_size(run, framework, request):
    request.getfixturevalue(framework)
    for keep, bytes_per_step in (("outputs", MIB), ("floats", 0)):
        sample = run(f"framework={framework},keep={keep},program=retained")
        assert sample["status"] == "ok", sample["reason"]
        assert sample["figures"]["growth_bytes_per_step"] == bytes_per_step, keep


@pytest.mark.parametrize("framework", ["tensorflow", "pytorch"])
def test_a_tensor_that_is_still_held_does_not_go_back(run, framework, request):
    request.getfixturevalue(framework)
    for case, share in (("large", 1), ("referenced", 0)):
        sample = run(f"case={case},framework={framework},program=release")
        assert sample["status"] == "ok", sample["reason"]
        assert sample["figures"]["returned_share"] == pytest.approx(share, abs=1e-3), case


def test_pytorchs_counters_and_the_cards_ledger_tell_of_the_same_bytes(run, pytorch):
    width = random.randrange(512, 2048, 64)
    figures = run(f"framework=pytorch,network=mlp,width={width}")["figures"]
    weights = 4 * (width + 1) * width * 4
    assert figures["trained"] == 1
    # The four matrices may each keep up to a MiB that is not worth cutting from their segment.
    assert weights <= figures["allocated_bytes.initial"] <= weights + 5 * MIB, width
    assert figures["reserved_bytes.overall_peak"] == figures["pool_bytes"], width
    assert figures["allocated_bytes.after_step_1"] >= 3 * weights, "with both moments of Adam"


def test_pytorchs_settings_are_its_own(run, pytorch):
    parameters = "framework=pytorch,network=mlp,width=1000"
    usual, expandable = (run(parameters + more)["figures"] for more in ("", ",allocator=expandable"))
    # A block in an expandable segment is cut to its size; in other segments it may keep up to a MiB more.
    assert expandable["allocated_bytes.overall_peak"] < usual["allocated_bytes.overall_peak"]
    refused = run(parameters + ",growth=on")
    assert refused["status"] == "unsupported"
    assert "always takes memory when it is needed" in refused["reason"]


@pytest.mark.parametrize("framework", ["pytorch", "jax"])
def test_accumulation_divides_the_batch(run, framework, request):
    request.getfixturevalue(framework)
    parameters = f"batch=4096,framework={framework},network=mlp,width=512"
    whole, parts = (run(parameters + more)["figures"] for more in ("", ",parts=8"))
    assert parts["trained"] == 1
    assert parts["allocated_bytes.overall_peak"] < whole["allocated_bytes.overall_peak"]


@pytest.mark.parametrize("framework", ["tensorflow,compile=xla", "jax"])
def test_activations_take_half_in_half_the_precision(run, framework, request):
    request.getfixturevalue(framework.partition(",")[0])
    parameters = f"batch=8192,framework={framework},network=mlp,width=512"
    # XLA computes in fp32 on a card without bf16 arithmetic, such as a V100.
    whole, half = (run(parameters + more, card="a100-40gb")["figures"] for more in ("", ",precision=bf16"))
    assert half["trained"] == 1
    # The outputs of three layers take half as much, but copies of the weights and, in TensorFlow, of the batch are
    # added. At least half of one output is saved. Without XLA, TensorFlow's threads overlap differently in each run,
    # which adds up to two outputs to the peak and would hide that.
    saved = whole["allocated_bytes.overall_peak"] - half["allocated_bytes.overall_peak"]
    assert saved >= 8192 * 512 * 2


def test_checkpointing_in_pytorch_keeps_what_goes_into_a_layer(run, pytorch):
    parameters = "batch=64,framework=pytorch,network=masked_bert,sequence=512,size=tiny,vocabulary=1000"
    all_kept, inputs = (run(parameters + more)["figures"] for more in ("", ",checkpointing=blocks"))
    # Otherwise each of two layers keeps at least the input and the output of its GELU: 64 x 512 x 512 numbers each.
    saved = all_kept["allocated_bytes.overall_peak"] - inputs["allocated_bytes.overall_peak"]
    assert saved >= 2 * 2 * 64 * 512 * 512 * 4
    assert inputs["activation_bytes"] < all_kept["activation_bytes"]


def test_checkpointing_in_jax_keeps_no_scores_of_attention(run, jax):
    parameters = "batch=32,framework=jax,network=bert,sequence=512,size=tiny"
    all_kept, inputs = (run(parameters + more)["figures"] for more in ("", ",checkpointing=blocks"))
    # Otherwise the scores of both layers are kept; while one layer is computed again, its own are there.
    saved = all_kept["allocated_bytes.overall_peak"] - inputs["allocated_bytes.overall_peak"]
    assert saved >= 32 * 2 * 512 * 512 * 4


def test_jax_takes_the_share_that_it_is_told(run, jax):
    tenths = random.randrange(2, 8)
    figures = run(f"fraction=0.{tenths},framework=jax,network=mlp")["figures"]
    capacity = 16945512448  # of v100-16gb
    assert figures["trained"] == 1
    assert abs(figures["first_operation_bytes"] - capacity * tenths / 10) <= 2 * MIB, tenths


@pytest.mark.parametrize("parameters, said", [
    ("framework=tensorflow,lengths=varying,network=mlp", "lengths is for bert, not for mlp"),
    ("framework=jax,limits=4096", "JAX has no logical devices"),
    ("framework=jax,checkpointing=blocks,network=mlp", "checkpointing is for resnet50, bert, not for mlp"),
    ("framework=tensorflow,checkpointing=blocks", "keras.RematScope fails on TensorFlow in a graph"),
])
def test_a_setting_that_is_not_there_is_not_imitated(run, parameters, said, request):
    request.getfixturevalue(parameters.split(",")[0].removeprefix("framework="))
    sample = run(parameters)
    assert sample["status"] == "unsupported"
    assert said in sample["reason"]


def test_networks_that_take_turns_train_in_jax(run, jax):
    figures = run("batch=2,framework=jax,network=dcgan,width=8")["figures"]
    assert figures["trained"] == 1
    assert figures["allocated_bytes.overall_peak"] <= figures["pool_bytes"]
