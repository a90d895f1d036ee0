"""Recurrent networks, which call cuDNN. The sizes that the stand-in reports are compared with the real
library's."""

import json
import random
import subprocess

import pytest

SIZES = """
import ctypes as c, json, sys
cudnn, networks = c.CDLL(sys.argv[1]), json.loads(sys.argv[2])
nothing = c.cast(c.create_string_buffer(1 << 16), c.c_void_p)  # in place of a handle
def create(kind):
    result = c.c_void_p()
    assert getattr(cudnn, f"cudnnCreate{kind}Descriptor")(c.byref(result)) == 0
    return result
answers = []
for n in networks:
    rnn, dropout, data = create("RNN"), create("Dropout"), create("RNNData")
    cudnn.cudnnRestoreDropoutDescriptor(dropout, nothing, c.c_float(n["dropout"]), c.c_void_p(16),
                                        c.c_size_t(1 << 30), c.c_ulonglong(1))
    assert cudnn.cudnnSetRNNDescriptor_v8(
        rnn, 0, n["cell"], 2, n["directions"] - 1, 0, n["type"], 0, 0, n["input"], n["hidden"],
        n["projected"], n["layers"], dropout, n["padded"]) == 0
    lengths = (c.c_int * len(n["lengths"]))(*n["lengths"])
    assert cudnn.cudnnSetRNNDataDescriptor(
        data, n["type"], 0, max(n["lengths"]), len(n["lengths"]), n["input"], lengths, None) == 0
    sizes = [c.c_size_t() for _ in range(3)]
    assert cudnn.cudnnGetRNNWeightSpaceSize(nothing, rnn, c.byref(sizes[0])) == 0
    cudnn.cudnnGetRNNTempSpaceSizes(nothing, rnn, 1, data, c.byref(sizes[1]), c.byref(sizes[2]))
    answers.append([size.value for size in sizes])
print(json.dumps(answers))
"""


def some_network(choose):
    cell = choose.choice([1, 2, 3])
    hidden = 32 * choose.randint(2, 40)
    return {
        "cell": cell, "input": 32 * choose.randint(1, 40), "hidden": hidden,
        "projected": hidden // 2 if cell == 2 and choose.random() < 0.3 else hidden,
        "layers": choose.randint(1, 4), "directions": choose.randint(1, 2),
        "dropout": choose.choice([0.0, 0.3]), "type": choose.choice([0, 2]), "padded": choose.randint(0, 1),
        "lengths": sorted((choose.randint(1, 80) for _ in range(choose.randint(1, 64))), reverse=True),
    }


@pytest.fixture
def both(gpu, pytorch, tmp_path):
    """both(networks) returns the sizes of weights, workspace and memory kept for the backward pass from the
    stand-in and from the real library, which answers as far as it can without a card."""
    libraries = sorted(pytorch.parents[1].glob("lib/*/site-packages/nvidia/cudnn/lib/libcudnn.so.9"))
    if not libraries:
        pytest.skip("the environment of PyTorch has no cuDNN: remove it, then scripts/setup --with pytorch")

    def ask(networks):
        asked = json.dumps(networks)
        answer = gpu("l4", program=SIZES, arguments=["libcudnn.so.9", asked])
        real = subprocess.run([pytorch, tmp_path / "program.py", libraries[0], asked], capture_output=True,
                              text=True, check=True, timeout=120)
        return list(zip(json.loads(answer.output.splitlines()[0]), json.loads(real.stdout)))

    return ask


def test_weights_and_what_is_kept_are_those_of_cudnn_and_the_workspace_is_near(both):
    seed = random.randrange(1 << 32)
    choose = random.Random(seed)
    networks = [some_network(choose) for _ in range(100)]
    for network, (here, real) in zip(networks, both(networks)):
        assert here[0] == real[0], (seed, network)
        assert here[2] == pytest.approx(real[2], abs=1024), (seed, network)
        plain = network["dropout"] == 0 and not network["padded"] and network["projected"] == network["hidden"]
        assert here[1] == pytest.approx(real[1], rel=0.03 if plain else 0.15), (seed, network)


def test_an_lstm_trains_and_its_estimated_parts_are_named(gpu, pytorch):
    answer = gpu("rtx4090", python=pytorch, program="""
import torch
lstm = torch.nn.LSTM(256, 512, num_layers=2, batch_first=True, bidirectional=True).cuda()
optimizer = torch.optim.Adam(lstm.parameters())
for _ in range(3):
    lstm(torch.randn(16, 32, 256, device="cuda"))[0].sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(sum(p.numel() for p in lstm.parameters()))
""")
    assert answer.status == 0, answer.errors
    roles = {share["name"]: share["bytes"] for share in answer.figures["frameworks"][0]["devices"][0]["roles"]}
    weights = int(answer.output.splitlines()[0]) * 4
    assert roles["weights"] == weights
    assert roles["optimizer state"] == 2 * weights
    assert roles["activations"] > 16 * 32 * 2 * 2 * 5 * 512 * 4
    assert "sizes estimated: memory of cuDNN (cudnnGetRNNTempSpaceSizes" in answer.output


def test_a_padded_batch_of_sequences_trains(gpu, pytorch):
    answer = gpu("rtx4090", python=pytorch, program="""
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
gru = torch.nn.GRU(64, 128, batch_first=True).cuda()
batch, lengths = torch.randn(4, 20, 64).cuda(), torch.tensor([20, 7, 13, 2]).cuda()
packed = pack_padded_sequence(batch, lengths.cpu(), batch_first=True, enforce_sorted=False)
result, _ = pad_packed_sequence(gru(packed)[0], batch_first=True)
result.sum().backward()
print(tuple(result.shape))
""")
    assert answer.status == 0, answer.errors
    assert answer.output.startswith("(4, 20, 128)")
