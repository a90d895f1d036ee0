"""The stand-in for cuDNN: a library that it cannot use, and workspaces that were measured on a card."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import RUNTIME, python_of

CONVOLUTIONS = Path(__file__).with_name("convolutions_on_h200.json")
DEPTHWISE = Path(__file__).with_name("depthwise_on_h200.json")

REFUSES = """
#include <stddef.h>
size_t cudnnGetVersion(void) { return 99000; }
int cudnnBackendCreateDescriptor(int type, void** out) { *out = out; return 0; }
int cudnnBackendSetAttribute(void* descriptor, int name, int type, long count, const void* values) { return 0; }
int cudnnBackendFinalize(void* descriptor) { return 2000; }
"""
ASKS_FOR_A_WORKSPACE = RUNTIME + """
allocate(1)
cudnn = ctypes.CDLL("libcudnn.so.9")
plan = ctypes.c_void_p()
assert cudnn.cudnnBackendCreateDescriptor(5, ctypes.byref(plan)) == 0
assert cudnn.cudnnBackendFinalize(plan) == 0
size = ctypes.c_int64(1)
assert cudnn.cudnnBackendGetAttribute(plan, 402, 3, ctypes.c_int64(1), None, ctypes.byref(size)) == 0
assert size.value == 0
"""


def make_library(directory):
    source = directory / "cudnn.c"
    source.write_text(REFUSES)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", directory / "libcudnn.so.9"], check=True)


def test_a_version_that_refuses_the_cards_description_leaves_workspaces_unknown(gpu, tmp_path):
    make_library(tmp_path)
    answer = gpu("l4", "--cudnn", str(tmp_path / "libcudnn.so.9"), program=ASKS_FOR_A_WORKSPACE)
    assert answer.status == 0, answer.errors
    assert "cuDNN 99000 refuses the description of the card" in answer.errors
    assert "cudnnBackendGetAttribute (workspace)" in answer.figures["sizes_not_known"]


@pytest.mark.parametrize("place", [
    "environment/lib",  # of conda
    "base/lib/python3/dist-packages/nvidia/cudnn/lib",  # of an environment that has the packages of the system
    "home/.local/lib/python3/site-packages/nvidia/cudnn/lib",
])
def test_the_library_is_found_where_programs_that_install_packages_put_it(gpu, tmp_path, place):
    for directory in (place, "environment/bin"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "python3").symlink_to("/usr/bin/python3")
    (tmp_path / "environment" / "pyvenv.cfg").write_text(
        f"home = {tmp_path}/base/bin\ninclude-system-site-packages = {str('base' in place).lower()}\n")
    make_library(tmp_path / place)
    answer = gpu("l4", program=ASKS_FOR_A_WORKSPACE, python=tmp_path / "environment" / "bin" / "python3",
                 environment={"HOME": str(tmp_path / "home"), "VIRTUAL_ENV": "", "CONDA_PREFIX": ""})
    assert answer.status == 0, answer.errors
    assert "cuDNN 99000 refuses the description of the card" in answer.errors


def test_a_convolution_of_tensorflow_runs_without_the_library(gpu, tensorflow):
    answer = gpu("l4", "--cudnn", "none", python=tensorflow, program="""
import tensorflow as tf
print(tf.nn.conv2d(tf.ones((8, 32, 32, 16)), tf.ones((3, 3, 16, 32)), 1, "SAME").shape)
""")
    assert answer.status == 0, answer.errors
    assert "cudnnBackendGetAttribute (workspace)" in answer.figures["sizes_not_known"]


ASKS_FOR_CONVOLUTIONS = RUNTIME + """
import json, sys
allocate(1)
cudnn = ctypes.CDLL("libcudnn.so.9")
DATA_TYPE, INT64, FLOAT, MODE, HEURISTICS, KNOB_TYPE, DESCRIPTOR = 1, 3, 4, 7, 8, 9, 15

def made(type, **attributes):
    descriptor = ctypes.c_void_p()
    assert cudnn.cudnnBackendCreateDescriptor(type, ctypes.byref(descriptor)) == 0
    for name, (kind, values) in attributes.items():
        of = {INT64: ctypes.c_int64, FLOAT: ctypes.c_float, DESCRIPTOR: ctypes.c_void_p}.get(kind, ctypes.c_int)
        array = (of * len(values))(*values)
        status = cudnn.cudnnBackendSetAttribute(descriptor, int(name[1:]), kind, ctypes.c_int64(len(values)), array)
        assert status == 0, (type, name, values, status)
    if cudnn.cudnnBackendFinalize(descriptor) != 0:
        raise ValueError
    return descriptor

def tensor(number, type, sizes, channels_last):
    n, c, h, w = sizes
    strides = (c * h * w, 1, w * c, c) if channels_last else (c * h * w, h * w, w, 1)
    return made(17, _901=(DATA_TYPE, [type]), _902=(INT64, sizes), _903=(INT64, strides), _906=(INT64, [number]),
                _900=(INT64, [16]))

def configuration(graph, engine, knobs):
    engine = made(2, _1300=(DESCRIPTOR, [graph]), _1301=(INT64, [engine]))
    choices = [made(7, _600=(KNOB_TYPE, [knob]), _601=(INT64, [value])) for knob, value in knobs]
    return made(3, _300=(DESCRIPTOR, [engine]), _302=(DESCRIPTOR, choices))

def first_choice(graph):
    heuristics = made(4, _201=(DESCRIPTOR, [graph]), _200=(HEURISTICS, [0]))
    choice, count = ctypes.c_void_p(), ctypes.c_int64()
    assert cudnn.cudnnBackendCreateDescriptor(3, ctypes.byref(choice)) == 0
    assert cudnn.cudnnBackendGetAttribute(heuristics, 202, DESCRIPTOR, ctypes.c_int64(1), ctypes.byref(count),
                                          ctypes.byref(choice)) == 0
    return choice

def workspace(kind, type, channels_last, images, filters, strides, paddings, engine, knobs, measured):
    pixels = [(images[i + 2] + 2 * paddings[i] - filters[i + 2]) // strides[i] + 1 for i in (0, 1)]
    tensors = [tensor(i, type, sizes, channels_last) for i, sizes in
               enumerate((filters, images, [images[0], filters[0], *pixels]))]
    convolution = made(1, _106=(INT64, [2]), _100=(DATA_TYPE, [0]), _101=(MODE, [1]), _105=(INT64, paddings),
                       _104=(INT64, paddings), _102=(INT64, [1, 1]), _103=(INT64, strides))
    operation, name = {"fwd": (10, 700), "wgrad": (11, 712), "dgrad": (12, 706)}[kind]
    parts = {f"_{name + 2 + i}": (DESCRIPTOR, [part]) for i, part in enumerate([convolution, *tensors])}
    operation = made(operation, **{f"_{name}": (FLOAT, [1]), f"_{name + 1}": (FLOAT, [0])}, **parts)
    graph = made(15, _801=(DESCRIPTOR, [operation]))
    plan = made(5, _401=(DESCRIPTOR, [configuration(graph, engine, knobs) if engine else first_choice(graph)]))
    size = ctypes.c_int64()
    assert cudnn.cudnnBackendGetAttribute(plan, 402, INT64, ctypes.c_int64(1), None, ctypes.byref(size)) == 0
    return size.value

def workspace_if_known(plan):
    try:
        return workspace(*plan)
    except ValueError:
        return None  # this version of cuDNN lacks the engine or one of its knobs

print(json.dumps([workspace_if_known(plan) for plan in json.load(open(sys.argv[1]))]))
"""


def sizes_that_differ(gpu, environment, convolutions):
    """Asks about plans whose workspace was measured on an H200; returns those with another size, and it."""
    answer = gpu("h200", program=ASKS_FOR_CONVOLUTIONS, python=python_of(environment), arguments=[str(convolutions)])
    assert answer.status == 0, answer.errors
    assert "cudnnBackendGetAttribute (workspace on the card)" in answer.figures["sizes_estimated"]
    plans, sizes = json.loads(convolutions.read_text()), json.loads(answer.output.splitlines()[0])
    return [(plan, size) for plan, size in zip(plans, sizes, strict=True) if size != plan[-1]]


def is_in_clusters(plan):
    """Whether the engine keeps partial sums of tiles in the workspace."""
    return any(knob == 27 for knob, _ in plan[-2])


@pytest.mark.parametrize("environment", ["pytorch", "jax"])  # cuDNN 9.26 and, on Python 3.11, 9.10
def test_convolutions_take_the_workspaces_that_an_h200_gave(gpu, environment):
    """The first choices of cuDNN 9.19 on an H200 for 96 convolutions of networks, drawn at random from 4,512."""
    others = sizes_that_differ(gpu, environment, CONVOLUTIONS)
    assert len(others) <= 16, others
    assert not [plan for plan, size in others if size is not None and is_in_clusters(plan)]


def test_depthwise_convolutions_take_the_workspaces_that_an_h200_gave(gpu, jax):
    """24 first choices in bfloat16, drawn at random from 252. Two of them are among the three that the rule misses."""
    if not list(jax.parents[1].glob("lib/*/site-packages/nvidia_cudnn_cu*-9.1*.dist-info")):
        pytest.skip("JAX was set up with a cuDNN that has engines for these convolutions without a card")
    assert len(sizes_that_differ(gpu, "jax", DEPTHWISE)) <= 2
