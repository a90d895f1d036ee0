"""headroom plan --pytorch: the same network in PyTorch on the virtual GPU."""

import json
import random
import subprocess

import pytest
from conftest import HEADROOM


def plan(workload, *more):
    return subprocess.run(
        [HEADROOM, "plan", workload, "--device", "a100-40gb", *more, "--pytorch"],
        capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("network, optimizer, states", [
    ("bert(size=mini,sequence=64", "adam", 2),
    ("gpt(size=tiny,sequence=64", "adam", 2),
    ("resnet(depth=18,image=64,classes=1000,stem=imagenet", "sgd", 1),
])
def test_the_networks_have_the_same_weights_and_states(pytorch, network, optimizer, states):
    workload = f"{network},batch={random.randrange(2, 9)})"
    said = plan(workload, "--optimizer", optimizer, "--json")
    assert said.returncode == 0, said.stderr
    answer = json.loads(said.stdout)
    ours, theirs = answer["plans"][0], answer["pytorch"]
    weights = 4 * ours["parameters"]
    roles = theirs["allocated_bytes_at_peak"]
    assert theirs["trained"]
    # PyTorch rounds every tensor up to 512 bytes.
    assert roles["weight"] == pytest.approx(weights, rel=0.01)
    assert roles["optimizer_state"] == pytest.approx(states * weights, rel=0.01)
    assert sum(roles.values()) == theirs["allocated_bytes_peak"] <= theirs["reserved_bytes_peak"]


def test_a_network_that_does_not_fit_in_pytorch_is_an_answer(pytorch):
    said = plan("resnet(depth=50,image=224,classes=1000,stem=imagenet,batch=4096)", "--optimizer", "sgd")
    assert "it does not fit. It ran out of memory" in said.stdout, said.stdout + said.stderr


@pytest.mark.parametrize("workload, more, said", [
    ("gan(batch=4)", [], "has no counterpart of gan; it knows bert, gpt and resnet"),
    ("resnet(depth=18,batch=4)", [], "image is missing"),
    ("bert(batch=4,dropout=0,sequence=64,size=tiny)", [], "dropout of bert has no counterpart"),
    ("bert(batch=4,sequence=64,size=tiny)", ["--checkpointing", "sqrt"], "checkpointing=sqrt has no counterpart"),
    ("bert(batch=4,sequence=64,size=tiny)", ["-a", "optimizer=sgd", "-a", "optimizer=adam"], "one choice of axes"),
])
def test_what_has_no_counterpart_is_refused(workload, more, said):
    refused = plan(workload, *more)
    assert refused.returncode == 2
    assert said in refused.stderr
