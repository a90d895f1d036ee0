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


# Each kernel gets three addresses, and "written" names those at which it writes.
KERNELS = {
    "plainly": ([2], """
        ld.param.b64 %rd1, [plainly_param_0];
        ld.param.b64 %rd2, [plainly_param_2];
        cvta.to.global.u64 %rd3, %rd2;
        ld.global.nc.b32 %r1, [%rd1];
        ld.param.b64 %rd4, [plainly_param_1];
        mul.wide.u32 %rd5, %r1, 4;
        add.s64 %rd6, %rd3, %rd5;
        st.global.b32 [%rd6+8], %r1;
    """),
    "what_it_reads": ([], """
        ld.param.b64 %rd1, [what_it_reads_param_0];
        ld.global.b64 %rd2, [%rd1];
        st.shared.b64 [shared_0], %rd2;
        prefetch.global.L2 [%rd1];
    """),
    "in_a_loop": ([0, 1], """
        ld.param.b64 %rd1, [in_a_loop_param_0];
        .loc 1 24 12
        ld.param.b64 %rd2, [in_a_loop_param_1]; // begin inline asm; st.global.b32 [%rd9], 1;
        mov.b64 %rd3, %rd1;
    $L__BB0_1:                              // = >This is a loop
        st.global.v2.b32 [%rd4], {%r1, %r2};
        @%p1 mov.b64 %rd4, %rd3;
        { .reg .b64 %rd5; selp.b64 %rd3, %rd2, %rd1, %p1; }
        @!%p2 bra $L__BB0_1;
    """),
    "by_adding": ([0, 2], """
        ld.param.b64 %rd1, [by_adding_param_0];
        ld.param.b64 %rd2, [by_adding_param_1];
        ld.param.b64 %rd3, [by_adding_param_2];
        atom.relaxed.sys.global.add.u32 %r1, [%rd1], %r2;
        @%p1 red.global.add.f32 [ %rd3 + 0 ], %f1;
        ld.global.b32 %r3, [%rd2];
    """),
    "in_a_function": ([1], """
        ld.param.b64 %rd1, [in_a_function_param_1];
        { .param .b64 param0; st.param.b64 [param0], %rd1; call.uni helper, (param0); }
    """),
}


def test_what_generated_code_writes_is_not_known_any_more(gpu):
    code = ".version 8.8\n"
    for name, (_, body) in KERNELS.items():
        parameters = ",\n".join(f".param .u64 .ptr .align 16 {name}_param_{position}" for position in range(3))
        code += f".visible .entry {name}(\n{parameters}\n)\n.reqntid 128, 1, 1\n{{\n.reg .b64 %rd<9>;\n{body}ret;\n}}\n"
    answer = gpu("l4", program=MODULES + f"""
module = loaded({code.encode()!r})
buffers = [allocate(1 << 20)[1] for _ in range(3)]
arguments = (ctypes.c_void_p * 3)(*map(ctypes.addressof, buffers))
words = lambda *values: map(ctypes.c_uint, values)
for name, results in {{name: results for name, (results, _) in {KERNELS!r}.items()}}.items():
    for way in range(3):
        for buffer in buffers:  # a result may be longer than what lay at its beginning
            for begin in 0, 4096:
                place = ctypes.c_void_p(buffer.value + begin)
                assert driver.cuMemcpyHtoD_v2(place, bytes([1]) * 64, ctypes.c_size_t(64)) == 0
        function = ctypes.c_void_p()
        assert driver.cuModuleGetFunction(ref(function), module, name.encode()) == 0
        if way == 0:
            driver.cuLaunchKernel(function, *words(1, 1, 1, 1, 1, 1, 0), None, arguments, None)
        elif way == 1:
            driver.cuLaunchKernelEx(None, function, arguments, None)
        else:
            driver.cuLaunchCooperativeKernel(function, *words(1, 1, 1, 1, 1, 1, 0), None, arguments)
        held = ctypes.create_string_buffer(8192)
        for position, buffer in enumerate(buffers):
            assert driver.cuMemcpyDtoH_v2(held, buffer, ctypes.c_size_t(8192)) == 0
            parts = held.raw[:64], held.raw[4096:4160]
            assert parts == (bytes([position not in results]) * 64,) * 2, (name, way, position)
            assert driver.headroom_gpu_knows(buffer, ctypes.c_size_t(64)) == (position not in results)
""")
    assert answer.status == 0, answer.errors
