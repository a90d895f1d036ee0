"""The stand-in for cuDNN and a library that it cannot use."""

import subprocess

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


def test_a_version_that_refuses_the_cards_description_leaves_workspaces_unknown(gpu, tmp_path):
    source, library = tmp_path / "cudnn.c", tmp_path / "libcudnn.so.9"
    source.write_text(REFUSES)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    answer = gpu("l4", "--cudnn", str(library), program=ASKS_FOR_A_WORKSPACE)
    assert answer.status == 0, answer.errors
    assert "cuDNN 99000 refuses the description of the card" in answer.errors
    assert "cudnnBackendGetAttribute (workspace)" in answer.figures["sizes_not_known"]


def test_the_library_of_an_environment_is_found_beside_the_wheels(gpu, tmp_path):
    """Conda puts it into lib, where a wheel has a folder of its own."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to("/usr/bin/python3")
    source, library = tmp_path / "cudnn.c", tmp_path / "lib" / "libcudnn.so.9"
    source.write_text(REFUSES)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    answer = gpu("l4", program=ASKS_FOR_A_WORKSPACE, python=tmp_path / "bin" / "python3")
    assert answer.status == 0, answer.errors
    assert "cuDNN 99000 refuses the description of the card" in answer.errors


def test_a_convolution_of_tensorflow_runs_without_the_library(gpu, tensorflow):
    answer = gpu("l4", "--cudnn", "none", python=tensorflow, program="""
import tensorflow as tf
print(tf.nn.conv2d(tf.ones((8, 32, 32, 16)), tf.ones((3, 3, 16, 32)), 1, "SAME").shape)
""")
    assert answer.status == 0, answer.errors
    assert "cudnnBackendGetAttribute (workspace)" in answer.figures["sizes_not_known"]
