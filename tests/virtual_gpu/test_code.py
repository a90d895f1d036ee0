"""Modules of code that a program loads through the driver, and the variables in them."""

import subprocess

from conftest import MIB, RUNTIME

# The program may then call loaded(code), which returns a module, and variable_of(module, name), which returns a
# status, an address and a size.
MODULES = RUNTIME + """
allocate(1)
driver, ref = ctypes.CDLL("libcuda.so.1"), ctypes.byref
def loaded(code):
    module = ctypes.c_void_p()
    assert driver.cuModuleLoadData(ref(module), code) == 0
    return module
def variable_of(module, name):
    address, size = ctypes.c_void_p(), ctypes.c_size_t()
    status = driver.cuModuleGetGlobal_v2(ref(address), ref(size), module, name)
    return status, address.value or 0, size.value
"""
PTX = """.version 8.8
.visible .global .align 128 .b8 table_1[48];
.const .align 8 .v2 .f64 pair[3] = {1, 2};
.visible .entry kernel(.param .u64 out) { ld.global.f32 %f1, [%rd1]; ret; }
"""


def test_a_variable_of_generated_code_has_its_size_and_a_place(gpu):
    answer = gpu("l4", program=MODULES + f"""
code = {PTX.encode()!r}
linker, image, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
assert driver.cuLinkCreate_v2(0, None, None, ref(linker)) == 0
assert driver.cuLinkAddData_v2(linker, 1, code, ctypes.c_size_t(len(code)), b"code", 0, None, None) == 0
assert driver.cuLinkComplete(linker, ref(image), ref(size)) == 0
for module in loaded(code), loaded(ctypes.string_at(image, size.value)):
    for name in b"table_1", b"pair":
        status, address, found = variable_of(module, name)
        assert (status, found) == (0, 48), name
        assert address % 256 == 0
        read = ctypes.create_string_buffer(found)
        assert driver.cuMemcpyHtoD_v2(ctypes.c_void_p(address), bytes(range(48)), ctypes.c_size_t(found)) == 0
        assert driver.cuMemcpyDtoH_v2(read, ctypes.c_void_p(address), ctypes.c_size_t(found)) == 0
        assert read.raw == bytes(range(48))
        ordinal = ctypes.c_int(-1)
        assert driver.cuPointerGetAttribute(ref(ordinal), 9, ctypes.c_void_p(address)) == 0
        assert ordinal.value == 0
    assert variable_of(module, b"kernel")[0] == 500
    assert driver.cuModuleUnload(module) == 0
""")
    assert answer.figures["peak_bytes"] == 2 * MIB, "as without the variables"
    assert answer.status == 0, answer.errors


def test_a_variable_of_compiled_code_is_found_in_its_table(gpu, tmp_path):
    # A GPU's code lies in the same kind of file as the processor's.
    source, compiled = tmp_path / "code.c", tmp_path / "code.o"
    source.write_text("int weights[12] = {1}; int twice(int x) { return 2 * x; }")
    subprocess.run(["cc", "-c", source, "-o", compiled], check=True)
    answer = gpu("l4", program=MODULES + f"""
module = loaded(open({str(compiled)!r}, "rb").read())
assert variable_of(module, b"weights")[::2] == (0, 48)
assert variable_of(module, b"twice")[0] == 500
""")
    assert answer.status == 0, answer.errors


def test_generated_code_without_the_asked_for_variable_says_that_it_is_not_there(gpu):
    """XLA then goes on: the constant was of no use, and LLVM has left it out."""
    answer = gpu("l4", program=MODULES + """
module = loaded(b".version 8.8\\n.visible .entry kernel() { ret; }\\n")
assert variable_of(module, b"buffer_for_constant_1")[0] == 500
assert driver.cuModuleUnload(module) == 0
""")
    assert answer.status == 0, answer.errors
