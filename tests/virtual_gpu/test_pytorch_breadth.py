"""Several ways to train in PyTorch, each checked against a figure that follows from its sizes."""

import pytest
from conftest import printed_by, python_of

WEIGHTS = 8 * 1024 * 1024 * 4  # of eight linear layers of width 1024


@pytest.fixture
def together(run_together, pytorch):
    """The answer of the one process that runs the programs which tests are marked with."""
    return run_together(pytorch)[0]


def test_a_device_that_holds_nothing_is_not_listed(gpu, pytorch):
    answer = gpu("rtx4090", "--gpus", "2", python=pytorch, program="""
import torch
torch.cuda.init()
torch.cuda.memory._snapshot()  # adds an event to the history of each device, and so does starting NCCL
tensor = torch.zeros(1 << 20, device="cuda:0")
""")
    assert answer.status == 0, answer.errors
    device, = answer.figures["frameworks"][0]["devices"]
    assert device["device"] == 0


@pytest.mark.parametrize("make", [
    """
optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}
def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()
for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(update)
""", """
from torch.distributed.optim import _apply_optimizer_in_backward
_apply_optimizer_in_backward(torch.optim.Adam, model.parameters(), {})
"""], ids=["hooks", "a function of PyTorch"])
def test_updates_within_a_backward_pass_are_one_step(gpu, pytorch, make):
    answer = gpu("rtx4090", "--until-step", "3", python=pytorch, program="""
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(8)]).cuda()
MAKE
for batch in range(10):
    print("batch", batch)
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
""".replace("MAKE", make))
    assert answer.status == 0, answer.errors
    framework = answer.figures["frameworks"][0]
    assert (framework["steps"], framework["stopped_at_step"]) == (3, True)
    assert "batch 2" in answer.output and "batch 3" not in answer.output
    roles = {share["name"]: share["bytes"] for share in framework["devices"][0]["roles"]}
    assert (roles["weights"], roles["optimizer state"]) == (WEIGHTS, 2 * WEIGHTS)
    assert roles["gradients"] <= WEIGHTS // 4, "each gradient is freed at once"


@pytest.mark.program("""
import torch
x = torch.randn(512, 1024, device="cuda")
before = torch.cuda.memory_allocated()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1
    z = torch.relu(y)
graph.replay()
pool = [segment for segment in torch.cuda.memory._snapshot()["segments"]
        if tuple(segment["segment_pool_id"]) == tuple(graph.pool())]
print("in the pool", sum(segment["allocated_size"] for segment in pool))
""")
def test_a_cuda_graph_keeps_what_its_capture_allocated(printed):
    assert printed == [f"in the pool {2 * 512 * 1024 * 4}"]


@pytest.mark.program("""
import torch
x, known = torch.randn(8, device="cuda"), torch.arange(8).cuda()
for forbidden in (lambda: x.sum().item(), lambda: known[0].item(), lambda: x[x > 0], torch.cuda.synchronize, x.relu):
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            try:
                forbidden()
            except RuntimeError as error:
                print(str(error).splitlines()[0])
        print("captured")
    except RuntimeError as error:
        print(str(error).splitlines()[0])
""")
def test_what_waits_for_the_gpu_is_not_permitted_while_a_graph_is_captured(printed):
    refused = ["CUDA error: operation not permitted when stream is capturing",
               "CUDA error: operation failed due to a previous error during capture"]
    assert printed == refused * 4 + ["captured"]


def test_a_replay_of_a_captured_step_is_a_step(gpu, pytorch):
    answer = gpu("rtx4090", "--until-step", "4", python=pytorch, program="""
import torch
model = torch.nn.Linear(1024, 1024, bias=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
x = torch.randn(64, 1024, device="cuda")
def step():
    optimizer.zero_grad(set_to_none=True)
    model(x).sum().backward()
    optimizer.step()
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for replay in range(100):
    print("replay", replay)
    graph.replay()
""")
    assert answer.status == 0, answer.errors
    framework = answer.figures["frameworks"][0]
    assert (framework["steps"], framework["stopped_at_step"]) == (4, True)
    assert "replay 2" in answer.output and "replay 3" not in answer.output


@pytest.mark.program("""
import torch
def chain(x):
    return (x * 2 + 1).relu().sin() * 3
x = torch.randn(1 << 20, device="cuda")
for name, function in (("eager", chain), ("compiled", torch.compile(chain))):
    function(x)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function(x)
    print(name, torch.cuda.max_memory_allocated() - before)
""")
def test_a_compiled_chain_of_operators_allocates_its_result_alone(triton, printed):
    assert printed == [f"eager {2 * (4 << 20)}", f"compiled {4 << 20}"]


@pytest.mark.program("""
import torch
from torch._tensor import has_torch_function  # the compiler knows it by what torch.overrides has
class Own(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
def doubled(x):
    return x if has_torch_function((x,)) else x * 2
mask = torch.ones(4, dtype=torch.bool).cuda()
with Own():
    print(torch.compile(doubled, backend="eager", fullgraph=True)(torch.randn(4, device="cuda")).shape)
    print(mask.all().item())
print((mask & mask).all().item())
""")
def test_a_function_is_compiled_in_a_mode_of_the_programs_own(printed):
    assert printed == ["torch.Size([4])", "True", "True"]


@pytest.mark.program("""
import os, pathlib, tempfile
place = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = os.environ["TORCHINDUCTOR_CACHE_DIR"] = place.name
import torch
multiply = torch.compile(torch.mm, mode="max-autotune-no-cudagraphs")
before = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
multiply(torch.randn(256, 512, device="cuda"), torch.randn(512, 256, device="cuda"))
cleared_between_trials = torch.cuda.get_device_properties(0).L2_cache_size
print(torch.cuda.max_memory_allocated() - before > cleared_between_trials,
      len(list(pathlib.Path(place.name).rglob("*.cubin"))))
""")
def test_trying_kernels_for_a_product_takes_its_memory_and_compiles_none_of_them(triton, printed):
    assert printed == ["True 0"]


@pytest.mark.program("""
import os, pathlib, tempfile
place = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = os.environ["TORCHINDUCTOR_CACHE_DIR"] = place.name
import torch
x = torch.ones(1 << 20, device="cuda")
for torch._inductor.config.coordinate_descent_tuning in False, True:
    torch.compile(torch.exp if torch._inductor.config.coordinate_descent_tuning else torch.sin)(x)
    print(len(list(pathlib.Path(place.name).rglob("*.cubin"))))
""")
def test_neighbours_of_a_kernels_variants_are_not_compiled_because_none_is_faster(triton, printed):
    of_one, of_both = map(int, printed)
    assert of_both <= of_one + 2


@pytest.mark.program("""
import torch
from triton.testing import do_bench
calls = []
x = torch.ones(8, device="cuda")
do_bench(lambda: calls.append(x + 1))
print(len(calls))
""")
def test_measuring_a_kernel_does_not_repeat_it_for_long(triton, printed):
    """Triton repeats a kernel as often as fits into a tenth of a second, by the time that the GPU says it takes."""
    assert int(*printed) < 100


@pytest.mark.program("""
import torch
import triton
import triton.language as tl
tried = set()
def variant(block):
    return triton.Config({"BLOCK": block}, pre_hook=lambda arguments: tried.add(arguments["BLOCK"]))
@triton.autotune([variant(block) for block in (32, 64, 128, 256)], key=["count"])
@triton.jit
def fill(x, count, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 32)
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + places, 1.0, mask=places < count)
fill[(8,)](torch.zeros(1000, device="cuda"), 1000)
print(*sorted(tried))
""")
def test_of_the_variants_of_a_kernel_the_first_that_can_be_compiled_is_taken(triton, printed):
    assert printed == ["32 64"]


def test_what_compilers_measure_here_is_not_kept_where_a_real_card_finds_it(gpu, triton, pytorch, tmp_path):
    users = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    answer = gpu("rtx4090", python=pytorch, environment=users, program="""
import torch
print(torch.compile(lambda x: x * 2 + 1)(torch.ones(8, device="cuda")).shape)
""")
    assert answer.status == 0, answer.errors
    assert not (tmp_path / "inductor").exists() and not (tmp_path / "triton").exists()


def test_a_program_compiles_also_where_the_users_cache_cannot_be_written(gpu, triton, pytorch):
    """The compiler's processes compile it, as they do unless the tests ask for one thread."""
    environment = {"XDG_CACHE_HOME": "/proc/none", "TORCHINDUCTOR_COMPILE_THREADS": "2"}
    answer = gpu("rtx4090", python=pytorch, environment=environment, program="""
import torch
print(torch.compile(lambda x: x * 2 + 1)(torch.ones(8, device="cuda")).shape)
""")
    assert printed_by(answer) == ["torch.Size([8])"]


@pytest.mark.program("""
import torch
edges = torch.randint(0, 1000, (2, 8000))
graph = torch.sparse_coo_tensor(edges, torch.ones(8000), (1000, 1000)).coalesce()
for matrix in graph, graph.to_sparse_csr():
    product = torch.sparse.mm(matrix.cuda(), matrix.cuda())
    true = torch.sparse.mm(matrix, matrix)
    print(product._nnz() / true._nnz())
""")
def test_two_sparse_matrices_are_multiplied(printed, together):
    assert [float(ratio) for ratio in printed] == pytest.approx([1, 1], abs=0.05)
    assert any("cusparseSpGEMM_compute" in name for name in together.figures["sizes_estimated"])


@pytest.mark.program("""
import torch
edges = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 3]])
graph = torch.sparse_coo_tensor(edges, torch.ones(4), (4, 4)).coalesce().cuda()
layer = torch.nn.Linear(8, 8).cuda()
torch.sparse.mm(graph, layer(torch.randn(4, 8, device="cuda"))).sum().backward()
print(tuple(layer.weight.grad.shape))
""")
def test_a_sparse_matrix_is_multiplied(printed, together):
    assert printed == ["(8, 8)"]
    assert "cusparseSpMM_bufferSize" in together.figures["sizes_not_known"]


@pytest.mark.program("""
import torch
matrices = torch.randn(3, 8, 8, device="cuda", requires_grad=True)
values, vectors = torch.linalg.eig(matrices)
values.abs().sum().backward()
print(tuple(values.shape), tuple(vectors.shape), values.dtype, tuple(matrices.grad.shape))
torch.linalg.qr(matrices)[1].sum().backward()
print(tuple(torch.segment_reduce(matrices.detach(), "max", lengths=torch.tensor([2, 1]).cuda()).shape))
""")
def test_functions_that_check_values_are_run(printed):
    """PyTorch asks whether all elements of the matrices are finite, and whether the lengths add up to 3."""
    assert printed == ["(3, 8) (3, 8, 8) torch.complex64 (3, 8, 8)", "(2, 8, 8)"]


def test_a_card_for_which_the_build_has_no_kernels_counts_bytes_and_is_told_of(gpu, pytorch):
    """The backward pass of an embedding sorts, and asks for which architecture the sorting kernels were built."""
    answer = gpu("v100-16gb", python=pytorch, program=(
        "import torch\n"
        "table = torch.nn.Embedding(1000, 128).cuda()\n"
        "table(torch.zeros(8, 512, dtype=torch.long, device='cuda')).sum().backward()\n"
        "print('kernels for', *torch.cuda.get_arch_list())\n"))
    assert answer.status == 0, answer.errors
    lacks_kernels = "sm_70" not in answer.output and "sm_60" not in answer.output
    assert ("a real card refuses this build of PyTorch" in answer.output) == lacks_kernels


TRAIN_ONCE = """
import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())
halve = torch._disable_dynamo(lambda batch: batch / 2)
def train(batch):
    model(halve(batch)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
train(torch.randn(8, 64, device="cuda"))
"""
COMPILE = """
graphs = []
def keep(graph, inputs):
    graphs.append([getattr(node.target, "__name__", node.target) for node in graph.graph.nodes])
    return graph
torch.compile(train, backend=keep)(torch.randn(8, 64, device="cuda"))
print(graphs)
"""


def test_a_program_that_compiles_nothing_does_not_load_the_compiler(gpu, pytorch):
    answer = gpu("rtx4090", "--until-step", "all", python=pytorch, program="""
import atexit, sys
atexit.register(lambda: print("loaded:", "torch._dynamo" in sys.modules))  # after all other work at the exit
""" + TRAIN_ONCE)
    assert answer.figures["frameworks"][0]["steps"] == 1, answer.errors
    assert answer.output.startswith("loaded: False")


def test_a_function_that_is_excluded_from_compiled_code_stays_so_when_the_compiler_comes_late(gpu, pytorch):
    answer = gpu("rtx4090", "--until-step", "all", python=pytorch, program=TRAIN_ONCE + COMPILE)
    assert answer.status == 0, answer.errors
    assert "linear" in answer.first_line
    assert "truediv" not in answer.first_line, "halve"


@pytest.mark.program("""
import torch
from torch._dynamo.utils import clear_compilation_metrics, get_compilation_metrics
clear_compilation_metrics()
double = torch.compile(lambda x: x * 2, backend="eager")
@torch.compiler.disable(recursive=False)
def excluded(x):
    return double(x)
class Halves(torch.nn.Module):
    def forward(self, x):
        return excluded(x + 1) + 3
half = Halves()
half.compile(backend="eager")
half(torch.randn(4, device="cuda"))
print(*[metric.co_name.split("_at_")[0] for metric in get_compilation_metrics()])
""")
def test_functions_of_headroom_between_compiled_ones_are_not_compiled(printed):
    assert printed == ["forward <lambda> torch_dynamo_resume_in_forward"]


def test_memory_of_generated_code_without_known_lines_is_reported_with_pytorch_2_6(gpu):
    answer = gpu("rtx4090", python=python_of("pytorch-2.6"), program="""
from torch._inductor.codecache import PyCodeCache
PyCodeCache.load("import torch; kept = torch.ones(1 << 20, device='cuda')")
""")
    assert "4.00 MiB allocated at the peak" in answer.output, answer.errors
