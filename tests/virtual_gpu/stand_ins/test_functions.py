"""What functions of CUDA's libraries answer, and what becomes of the contents of memory."""

import pytest
from conftest import RUNTIME


def test_small_copies_read_back_as_they_were_written(gpu):
    answer = gpu("l4", program=RUNTIME + """
_, a = allocate(1 << 20)
_, b = allocate(1 << 20)
written = bytes(range(256)) * 16
assert cuda.cudaMemcpy(a, written, ctypes.c_size_t(4096), 1) == 0
assert cuda.cudaMemcpy(b, a, ctypes.c_size_t(4096), 3) == 0
cuda.cudaMemset(ctypes.c_void_p(b.value + 100), 7, ctypes.c_size_t(50))
read = ctypes.create_string_buffer(4200)
assert cuda.cudaMemcpy(read, b, ctypes.c_size_t(4200), 2) == 0
assert read.raw == written[:100] + bytes([7]) * 50 + written[150:] + bytes(104)
""")
    assert answer.status == 0, answer.errors


def test_what_a_kernel_writes_to_is_not_known_any_more(gpu):
    answer = gpu("l4", program=RUNTIME + """
read, written = allocate(1 << 20)[1], allocate(1 << 20)[1]
for buffer in (read, written):
    assert cuda.cudaMemcpy(buffer, bytes([1]) * 1024, ctypes.c_size_t(1024), 1) == 0
kernel = ctypes.create_string_buffer(1)
scale = b"_Z5scaleIfEvPKT_PS0_i"  # void scale<float>(float const*, float*, int)
cuda.__cudaRegisterFunction(None, kernel, None, scale, 0, None, None, None, None, None)
class Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]
count = ctypes.c_int(16)
arguments = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (read, written, count)))
one = Dim3(1, 1, 1)
assert cuda.cudaLaunchKernel(kernel, one, one, arguments, ctypes.c_size_t(0), None) == 0
held = ctypes.create_string_buffer(64)
assert cuda.cudaMemcpy(held, read, ctypes.c_size_t(64), 2) == 0
assert held.raw == bytes([1]) * 64
for part in (0, 600):  # of a result of unknown length
    assert cuda.cudaMemcpy(held, ctypes.c_void_p(written.value + part), ctypes.c_size_t(64), 2) == 0
    assert held.raw == bytes(64)
""")
    assert answer.status == 0, answer.errors


def test_both_cuda_12_and_13_describe_the_card_in_their_own_layout(gpu):
    answer = gpu("rtx4090", program="""
import ctypes
for library, name, at in (("libcudart.so.12", "cudaGetDeviceProperties_v2", 360),
                          ("libcudart.so.13", "cudaGetDeviceProperties", 360)):
    cuda = ctypes.CDLL(library)
    properties = ctypes.create_string_buffer(4096)
    assert getattr(cuda, name)(properties, 0) == 0
    assert b"4090" in properties.value
    memory = int.from_bytes(properties.raw[288:296], "little")
    text = properties.raw
    pairs = [int.from_bytes(text[i:i + 4], "little") for i in range(340, 380, 4)]
    assert (8, 9) in zip(pairs, pairs[1:]), pairs
    version = ctypes.c_int()
    cuda.cudaRuntimeGetVersion(ctypes.byref(version))
    assert str(version.value)[:2] == library[-2:]
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    assert memory == total.value == free.value
""")
    assert "Error" not in answer.errors, answer.errors


def test_a_program_for_cuda_13_that_finds_cuda_12_first_gets_the_layout_of_cuda_13(gpu):
    """cuDNN's front end looks for CUDA 12 first, also where it was compiled for CUDA 13."""
    answer = gpu("h100", program="""
import ctypes
newer, older = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcudart.so.12")
expected, found = ctypes.create_string_buffer(2048), ctypes.create_string_buffer(2048)
assert newer.cudaGetDeviceProperties(expected, 0) == 0
assert older.cudaGetDeviceProperties(found, 0) == 0
assert found.raw == expected.raw and b"H100" in found.raw
""")
    assert answer.errors == ""


def test_nvrtc_names_the_architectures_for_which_it_compiles(gpu):
    answer = gpu("h100", program="""
import ctypes
nvrtc, count = ctypes.CDLL("libnvrtc.so.13"), ctypes.c_int()
assert nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)) == 0
found = (ctypes.c_int * count.value)()
assert nvrtc.nvrtcGetSupportedArchs(found) == 0
assert list(found) == sorted(found) and 90 in found and 70 not in found
""")
    assert answer.errors == ""


def test_a_description_of_cublaslt_keeps_what_it_is_given(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
blas = ctypes.CDLL("libcublasLt.so.12")
layout, rows, batches = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int32(7)
ref = ctypes.byref
assert blas.cublasLtMatrixLayoutCreate(ref(layout), 0, ctypes.c_uint64(640), ctypes.c_uint64(480),
                                       ctypes.c_int64(640)) == 0
assert blas.cublasLtMatrixLayoutGetAttribute(layout, 2, ref(rows), ctypes.c_size_t(8), None) == 0
assert rows.value == 640
assert blas.cublasLtMatrixLayoutSetAttribute(layout, 5, ref(batches), ctypes.c_size_t(4)) == 0
batches.value = 0
assert blas.cublasLtMatrixLayoutGetAttribute(layout, 5, ref(batches), ctypes.c_size_t(4), None) == 0
assert batches.value == 7
""")
    assert answer.status == 0, answer.errors


def test_descriptions_that_are_made_for_each_call_take_no_memory_once_they_are_destroyed(gpu):
    answer = gpu("h100", program=RUNTIME + """
import resource
allocate(1)
def make_and_destroy(library, create, destroy):
    library, handle = ctypes.CDLL(library), ctypes.c_void_p()
    for _ in range(20_000):
        assert getattr(library, create)(ctypes.byref(handle)) == 0 and getattr(library, destroy)(handle) == 0
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
make_and_destroy("libcublasLt.so.13", "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy")
make_and_destroy("libcudnn.so.9", "cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor")
make_and_destroy("libcudnn.so.9", "cudnnCreateRNNDescriptor", "cudnnDestroyRNNDescriptor")
make_and_destroy("libcusparse.so.12", "cusparseCreateDnMat", "cusparseDestroyDnMat")
make_and_destroy("libcusparse.so.12", "cusparseCreateBsr", "cusparseDestroySpMat")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
""")
    assert answer.status == 0, answer.errors
    assert int(answer.output.split()[0]) < 20_000, "KiB; 4 KiB for each of 100,000 would be 400,000"


def test_a_product_of_sparse_matrices_has_its_non_zeros_or_an_estimate_of_them(gpu):
    answer = gpu("l4", program=RUNTIME + """
import random
from ctypes import byref, c_int64, c_size_t, c_void_p
sparse = ctypes.CDLL("libcusparse.so.12")
def on_card(numbers, kind):
    address = allocate(1 << 20)[1]
    if numbers is not None:
        values = (kind * len(numbers))(*numbers)
        assert cuda.cudaMemcpy(address, values, c_size_t(ctypes.sizeof(values)), 1) == 0
    return address
def matrix(rows, columns, kind, base, is_known):
    places = [sorted(random.sample(range(columns), random.randint(0, 12))) for _ in range(rows)]
    offsets = [base + sum(map(len, places[:row])) for row in range(rows + 1)]
    indices = [base + column for row in places for column in row] if is_known else None
    of_type, handle = 3 if kind is c_int64 else 2, c_void_p()
    assert sparse.cusparseCreateCsr(byref(handle), c_int64(rows), c_int64(columns), c_int64(offsets[-1] - base),
                                    on_card(offsets, kind), on_card(indices, kind), None, of_type, of_type, base, 0) == 0
    return handle, places
def size_of(handle):
    found = [c_int64(-1) for _ in range(3)]
    assert sparse.cusparseSpMatGetSize(handle, *map(byref, found)) == 0
    return [number.value for number in found]
for kind, base, is_known in (ctypes.c_int32, 0, True), (c_int64, 1, True), (ctypes.c_int32, 0, False):
    rows, middle, columns = (random.randint(300, 400) for _ in range(3))
    (a, places), (b, of_middle) = matrix(rows, middle, kind, base, True), matrix(middle, columns, kind, base, is_known)
    true = sum(len(set().union(*(of_middle[k] for k in row))) for row in places)
    assert size_of(a) == [rows, middle, sum(map(len, places))]
    c, bytes_needed, product = c_void_p(), c_size_t(77), c_void_p()
    none = c_int64(0)
    sparse.cusparseCreateCsr(byref(c), c_int64(rows), c_int64(columns), none, None, None, None, 2, 2, 0, 0)
    assert sparse.cusparseSpGEMM_createDescr(byref(product)) == 0
    call = (None, 0, 0, None, a, b, None, c, 0, 0, product, byref(bytes_needed), None)
    assert sparse.cusparseSpGEMM_workEstimation(*call) == 0 and bytes_needed.value == 0
    assert sparse.cusparseSpGEMM_compute(*call) == 0 and bytes_needed.value == 0
    *shape, found = size_of(c)
    assert shape == [rows, columns]
    assert found == true if is_known else 0.9 * true < found < 1.1 * true, (found, true)
    offsets = on_card([1, 2], kind)
    assert sparse.cusparseCsrSetPointers(c, offsets, None, None) == 0
    assert sparse.cusparseSpGEMM_copy(*call[:11]) == 0
    assert not cuda.headroom_gpu_knows(offsets, c_size_t(8))
    assert sparse.cusparseDestroySpMat(c) == 0
""")
    assert answer.status == 0, answer.errors
    assert answer.figures["sizes_not_known"] == {"cusparseSpGEMM_compute": 3, "cusparseSpGEMM_workEstimation": 3}
    assert list(answer.figures["sizes_estimated"].values()) == [1]


def test_a_function_for_the_host_runs(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
called = []
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
assert ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc(None, function, ctypes.c_void_p(5)) == 0
assert called == [5]
""")
    assert answer.status == 0, answer.errors


def test_a_function_that_is_not_there_stops_the_program_with_its_name(gpu):
    answer = gpu("l4", program="""
import ctypes
ctypes.CDLL("libcusolver.so.12").cusolverDnSgebrd_bufferSize()
""")
    assert answer.status == 2
    assert "cusolverDnSgebrd_bufferSize" in answer.first_line
    assert answer.figures["not_supported"] == ["cusolverDnSgebrd_bufferSize"]


def test_a_size_that_only_the_library_knows_is_said_to_be_not_known(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
size = ctypes.c_size_t(1)
ctypes.CDLL("libcudnn.so.9").cudnnDropoutGetStatesSize(None, ctypes.byref(size))
assert size.value == 0
""")
    assert answer.figures["sizes_not_known"] == {"cudnnDropoutGetStatesSize": 1}
    assert "counted as 0 bytes: memory of cuDNN (cudnnDropoutGetStatesSize, called 1 time)\n" in answer.output


def test_convolutions_can_be_described_in_the_older_way_of_cudnn(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
cudnn = ctypes.CDLL("libcudnn.so.9")
ref = ctypes.byref
convolution, math, size = ctypes.c_void_p(), ctypes.c_int(7), ctypes.c_size_t(1)
assert cudnn.cudnnCreateConvolutionDescriptor(ref(convolution)) == 0
for wanted in 0, 2:
    assert cudnn.cudnnSetConvolutionMathType(convolution, wanted) == 0
    assert cudnn.cudnnGetConvolutionMathType(convolution, ref(math)) == 0
    assert math.value == wanted
for direction in "Forward", "BackwardData", "BackwardFilter":
    size.value = 1
    assert cudnn[f"cudnnGetConvolution{direction}WorkspaceSize"](None, None, None, convolution, None, 1, ref(size)) == 0
    assert size.value == 0
""")
    assert answer.status == 0, answer.errors
    assert len(answer.figures["sizes_not_known"]) == 3


@pytest.mark.parametrize("card, status", [("h100", 0), ("l4", 3)])
def test_cards_since_hopper_say_that_they_are_attached_to_no_fabric(gpu, card, status):
    answer = gpu(card, program=RUNTIME + """
import sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, info = ctypes.c_void_p(), bytearray(b"x" * 64)
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
status = nvml.nvmlDeviceGetGpuFabricInfoV(device, (ctypes.c_char * 64).from_buffer(info))
print("status", status, "state", info[28])
""")
    assert f"status {status} state {0 if status == 0 else ord('x')}\n" in answer.output, answer.errors


def test_factorisations_report_that_they_went_well(gpu):
    answer = gpu("l4", program=RUNTIME + """
cublas = ctypes.CDLL("libcublas.so.13")
for name, arguments in (("geqrf", 6), ("gels", 9), ("getrs", 9)):
    for kind in "SDCZ":
        error = ctypes.c_int(7)
        function = getattr(cublas, f"cublas{kind}{name}Batched")
        assert function(*[None] * arguments, ctypes.byref(error), None, ctypes.c_int(1)) == 0
        assert error.value == 0
_, error = allocate(1 << 20)
cusolver, read = ctypes.CDLL("libcusolver.so.12"), ctypes.c_int(7)
for name, arguments in (("Xgeev", 21), ("XsyevBatched", 15), ("Spotrf", 7), ("Dgesvdj", 14)):
    assert cuda.cudaMemcpy(error, ctypes.byref(ctypes.c_int(7)), ctypes.c_size_t(4), 1) == 0
    assert getattr(cusolver, f"cusolverDn{name}")(*[None] * arguments, error) == 0
    assert cuda.cudaMemcpy(ctypes.byref(read), error, ctypes.c_size_t(4), 2) == 0
    assert read.value == 0, name
assert cuda.cudaMemcpy(error, ctypes.byref(ctypes.c_int(7)), ctypes.c_size_t(4), 1) == 0
assert cublas.cublasSgetrfBatched(*[None] * 5, error, ctypes.c_int(1)) == 0
assert cuda.cudaMemcpy(ctypes.byref(read), error, ctypes.c_size_t(4), 2) == 0
assert read.value == 0
""")
    assert answer.status == 0, answer.errors


def test_the_host_reads_the_numbers_that_a_stream_writes(gpu):
    answer = gpu("l4", program=RUNTIME + """
allocate(1)
driver = ctypes.CDLL("libcuda.so.1")
address = ctypes.c_void_p()
assert driver.cuMemHostAlloc(ctypes.byref(address), ctypes.c_size_t(16), 2) == 0
assert driver.cuStreamWriteValue64_v2(None, address, ctypes.c_uint64(2**64 - 3), 0) == 0
assert driver.cuStreamWriteValue32_v2(None, ctypes.c_void_p(address.value + 8), ctypes.c_uint32(7), 0) == 0
assert ctypes.c_uint64.from_address(address.value).value == 2**64 - 3
assert ctypes.c_uint32.from_address(address.value + 8).value == 7
""")
    assert answer.status == 0, answer.errors
