"""The stand-in for cuDNN and a library that it cannot use."""

import subprocess

import pytest
from conftest import RUNTIME

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
