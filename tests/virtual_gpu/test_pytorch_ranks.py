"""PyTorch on several ranks, processes or cards, each checked against a figure that follows from its sizes."""

import random

import pytest
from conftest import TWO_RANKS

WEIGHTS = 8 * 1024 * 1024 * 4  # of eight linear layers of width 1024
TRAIN_ON_RANKS = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(8)])
WRAP
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(3):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
os.write(1, f"live {torch.cuda.memory_allocated()}\\n".encode())  # at once: there are two ranks
dist.destroy_process_group()
"""
TORCHRUN = "import runpy, sys; sys.argv[:1] = ['torchrun', '--nproc-per-node', '2']; " \
    "runpy.run_module('torch.distributed.run', run_name='__main__')"


@pytest.fixture(scope="module")
def on_two_ranks(shared_gpu, pytorch, tmp_path_factory):
    """on_two_ranks(WRAP) trains on two GPUs and returns the roles of both GPUs and the answer. `group` are
    further arguments of init_process_group()."""

    def run(wrap, group="", launch=TWO_RANKS):
        program = TRAIN_ON_RANKS.replace("WRAP", wrap).replace('group("nccl"', f'group("nccl", {group}')
        script = tmp_path_factory.mktemp("ranks") / "train.py"
        script.write_text(program)
        answer = shared_gpu("rtx4090", "--gpus", "2", program=launch, python=pytorch, arguments=[str(script)])
        assert answer.status == 0, answer.errors
        devices = [device for framework in answer.figures["frameworks"]
                   for device in framework["devices"]]
        assert sorted(device["device"] for device in devices) == [0, 1]
        return answer, [{share["name"]: share["bytes"] for share in device["roles"]}
                        for device in devices]

    return run


def test_distributed_data_parallel_holds_buckets_as_large_as_the_gradients(on_two_ranks):
    _, ranks = on_two_ranks(
        "model = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[rank])", launch=TORCHRUN)
    for roles in ranks:
        assert roles["weights"] == roles["gradients"] == WEIGHTS
        assert roles["gradient buckets"] == WEIGHTS
        # A fused optimizer keeps the step count of each of the eight weights on the GPU.
        assert roles["optimizer state"] == 2 * WEIGHTS + 8 * 4


def test_a_fully_sharded_model_holds_half_on_each_of_two_ranks(on_two_ranks):
    answer, ranks = on_two_ranks(SHARDED)
    assert "GPUs 0, 1, each:" in answer.output and " torch/distributed/fsdp/" in answer.output
    for roles in ranks:
        assert roles["optimizer state"] == 2 * WEIGHTS // 2 + 8 * 4
        assert roles["weights"] == WEIGHTS // 2
        assert WEIGHTS // 8 <= roles["gathered weights"] <= WEIGHTS // 2, "those of one layer to a few"
    # Weights and two moments, and 512 bytes for each step count.
    assert answer.output.count(f"live {3 * WEIGHTS // 2 + 8 * 512}") == 2


def test_a_model_that_the_first_version_of_fsdp_shards_is_saved(on_two_ranks):
    _, ranks = on_two_ranks("""
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
model = FSDP(model, device_id=rank, auto_wrap_policy=ModuleWrapPolicy({torch.nn.Linear}), use_orig_params=True)
import atexit
atexit.register(lambda: os.write(1, b"saved\\n"))
with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
    for weight in model.state_dict().values():
        weight.cpu()
""")
    for roles in ranks:
        assert roles["gathered weights"] >= WEIGHTS // 8


SHARDED = """
from torch.distributed.fsdp import fully_shard
for layer in model:
    fully_shard(layer)
fully_shard(model)
model.cuda()
"""
ZERO = """
from torch.distributed.optim import ZeroRedundancyOptimizer
model = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[0])
shards = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, momentum=0.9)
"""


@pytest.fixture(scope="module")
def exchanged(on_two_ranks):
    """What two ranks print that exchange objects."""
    return on_two_ranks(AMONG_ALL + BETWEEN_TWO + "model.cuda()")[0].output


AMONG_ALL = """
told = [f"from {rank}"]
dist.broadcast_object_list(told, src=1, device=torch.device("cuda"))
everyone = [None] * 2
dist.all_gather_object(everyone, {"rank": rank})
gathered = [None] * 2 if rank == 0 else None
dist.gather_object(rank, gathered, dst=0)
dealt = [None]
dist.scatter_object_list(dealt, ["first", "second"] if rank == 0 else None, src=0)
os.write(1, f"{rank}: {told} {everyone} {gathered} {dealt}\\n".encode())
"""
BETWEEN_TWO = """
if rank == 0:
    dist.send_object_list(["first", {"shape": (2, 3)}], dst=1)
    dist.send_object_list(["second"], dst=1, device=torch.device("cuda"))
else:
    for length in (2, 1):
        told = [None] * length
        source = dist.recv_object_list(told, src=0)
        os.write(1, f"{told} from {source}\\n".encode())
"""


def test_ranks_exchange_objects(exchanged):
    everyone = [{"rank": 0}, {"rank": 1}]
    assert f"0: ['from 1'] {everyone} [0, 1] ['first']\n" in exchanged
    assert f"1: ['from 1'] {everyone} None ['second']\n" in exchanged


def test_two_ranks_exchange_objects(exchanged):
    assert [line for line in exchanged.splitlines() if line.endswith("from 0")] == [
        "['first', {'shape': (2, 3)}] from 0", "['second'] from 0"]


def test_one_process_pretends_a_world_and_holds_its_share(gpu, pytorch):
    world = random.choice([2, 4, 8])
    answer = gpu("rtx4090", "--world", str(world), python=pytorch,
                 program=TRAIN_ON_RANKS.replace("WRAP", SHARDED))
    assert answer.status == 0, answer.errors
    assert f"live {3 * WEIGHTS // world + 8 * 512}" in answer.output, world


def test_ranks_map_the_memory_of_each_other(gpu, pytorch, tmp_path):
    (tmp_path / "ranks.py").write_text("""
import os
import torch
import torch.distributed._symmetric_memory as symmetric
torch.cuda.set_device(int(os.environ["RANK"]))
torch.distributed.init_process_group("nccl")
before = torch.cuda.mem_get_info()[0]
own = symmetric.empty(6 * 2**20, dtype=torch.uint8, device="cuda")
memory = symmetric.rendezvous(own, torch.distributed.group.WORLD)
of_other = memory.get_buffer(1 - memory.rank, (4, 8), torch.float32)
taken = before - torch.cuda.mem_get_info()[0] >> 20
os.write(1, f"{tuple(of_other.shape)} {taken}\\n".encode())  # at once: there are two ranks
torch.ops.symm_mem.one_shot_all_reduce(own.view(torch.float32), "sum", torch.distributed.group.WORLD.group_name)
""")
    answer = gpu("rtx4090", "--gpus", "2", python=pytorch, program=TORCHRUN, arguments=[str(tmp_path / "ranks.py")])
    assert answer.status == 0, answer.errors
    # 6 MiB and the signals of the ranks are 8 MiB in granules; PyTorch's allocator takes 2 MiB for the addresses.
    assert answer.output.count("(4, 8) 10") == 2


def test_memory_of_a_rank_that_is_alone_stands_for_that_of_the_others(gpu, pytorch):
    world = random.choice([2, 4, 8])
    answer = gpu("h100", "--world", str(world), python=pytorch, program="""
import torch
import torch.distributed._symmetric_memory as symmetric
torch.distributed.init_process_group("nccl")
group = torch.distributed.group.WORLD
before = torch.cuda.mem_get_info()[0]
own = symmetric.empty(6 * 2**20, dtype=torch.uint8, device="cuda")
taken = before - torch.cuda.mem_get_info()[0] >> 20
memory = symmetric.rendezvous(own, group)
memory.barrier()
of_last = memory.get_buffer(group.size() - 1, (4, 8), torch.float32)
print(tuple(of_last.shape), of_last.data_ptr() == own.data_ptr(), taken, symmetric.rendezvous(own + 1, group))
part, weights = torch.randn(64, 32, device="cuda"), torch.randn(32, 16, device="cuda")
whole, (product,) = torch.ops.symm_mem.fused_all_gather_matmul(part, [weights], 0, group.group_name)
print(*whole.shape, *product.shape)
print(*torch.ops.symm_mem.fused_matmul_reduce_scatter(whole, weights, "avg", 0, group.group_name).shape)
""")
    assert answer.output.splitlines()[:3] == [
        "(4, 8) True 8 None", f"{64 * world} 32 {64 * world} 16", "64 16"], answer.errors


def test_two_ranks_on_one_gpu_get_the_error_of_nccl(gpu, pytorch, tmp_path):
    (tmp_path / "ranks.py").write_text("""
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
import torch
torch.distributed.init_process_group("nccl")
torch.distributed.all_reduce(torch.ones(1, device="cuda"))
""")
    answer = gpu("rtx4090", "--gpus", "2", python=pytorch, program=TORCHRUN, arguments=[str(tmp_path / "ranks.py")])
    assert answer.status == 1
    assert "Duplicate GPU detected" in answer.errors and "both on CUDA device 1" in answer.errors
    assert "invalid usage (run with NCCL_DEBUG=WARN for details)" in answer.errors  # what PyTorch shows


def test_gradients_are_divided_by_a_number_of_the_programs_choice(gpu, pytorch):
    answer = gpu("rtx4090", "--world", "4", python=pytorch, program=TRAIN_ON_RANKS.replace(
        "WRAP", SHARDED + "for part in [*model, model]: part.set_gradient_divide_factor(3.0)"))
    assert answer.status == 0, answer.output + answer.errors
    assert answer.figures["frameworks"][0]["steps"] == 3


def test_groups_of_a_mesh_of_two_dimensions_have_their_own_sizes_and_ranks(on_two_ranks):
    """PyTorch splits these groups off the group of all ranks if that group is bound to a device."""
    answer, _ = on_two_ranks("""
mesh = torch.distributed.device_mesh.init_device_mesh("cuda", (2, 1), mesh_dim_names=("rows", "columns"))
rows, columns = mesh["rows"].get_group(), mesh["columns"].get_group()
gathered = [torch.empty(4, device="cuda")]
dist.all_gather(gathered, torch.ones(4, device="cuda"), group=columns)
os.write(1, f"{rank}: {rows.rank()} of {rows.size()}, {columns.rank()} of {columns.size()}\\n".encode())
model.cuda()
""", group="device_id=torch.device('cuda', int(os.environ['LOCAL_RANK']))")
    assert "0: 0 of 2, 0 of 1\n" in answer.output
    assert "1: 1 of 2, 0 of 1\n" in answer.output


def test_a_model_is_sharded_in_some_dimensions_of_a_pretended_world(gpu, pytorch):
    sharded = """
from torch.distributed.fsdp import fully_shard
mesh = torch.distributed.device_mesh.init_device_mesh("cuda", (4, 2), mesh_dim_names=("copies", "shards"))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
model.cuda()
"""
    program = TRAIN_ON_RANKS.replace("WRAP", sharded).replace(
        'init_process_group("nccl")', 'init_process_group("nccl", device_id=torch.device("cuda", 0))')
    answer = gpu("rtx4090", "--world", "8", python=pytorch, program=program)
    assert answer.status == 0, answer.errors
    assert f"live {3 * WEIGHTS // 2 + 8 * 512}" in answer.output


def test_processes_that_train_on_one_card_are_added_up_and_run_out_of_memory_together(gpu, pytorch):
    program = """
import torch, torch.multiprocessing as mp
def train(rank, trained):
    model = torch.nn.Linear(2048, 2048).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.ones(8, 2048, device="cuda")).sum().backward()
        optimizer.step()
    trained.wait()
if __name__ == "__main__":
    mp.spawn(train, args=(mp.get_context("spawn").Barrier(2),), nprocs=2)
"""
    fits = gpu("t4", python=pytorch, program=program)
    assert fits.status == 0, fits.errors
    device, = fits.figures["devices"]
    reserved = [f["devices"][0]["peak_reserved_bytes"] for f in fits.figures["frameworks"] if f["devices"]]
    assert (device["processes"], device["peak_bytes"]) == (2, sum(reserved))
    assert "of 2 processes" in fits.output and "2 optimizer steps" in fits.output
    one_of_two = f"{reserved[0] + (8 << 20)}B"
    full = gpu("t4", "--memory", one_of_two, python=pytorch, program=program)
    assert full.figures["verdict"] == "does not fit", full.errors


def test_processes_share_the_tensors_of_one(gpu, pytorch):
    """Only the process that allocated the memory is charged for it."""
    answer = gpu("rtx4090", python=pytorch, program="""
import torch
import torch.multiprocessing as mp
def read(queue, answers):
    tensor = queue.get()
    answers.put((tuple(tensor.shape), torch.cuda.memory_allocated()))
    del tensor
if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=read, args=(queue, answers))
    process.start()
    tensor = torch.ones(1024, 1024, device="cuda")
    queue.put(tensor)
    print(answers.get(), torch.cuda.memory_allocated())
    process.join()
""")
    assert answer.status == 0, answer.errors
    assert f"((1024, 1024), 0) {1024 * 1024 * 4}\n" in answer.output


def test_a_sharded_optimizer_keeps_the_state_of_its_share(gpu, pytorch):
    program = TRAIN_ON_RANKS.replace("WRAP", ZERO).replace(
        "optimizer = torch.optim.AdamW(model.parameters(), fused=True)", "optimizer = shards")
    answer = gpu("rtx4090", "--world", "4", python=pytorch, program=program)
    assert answer.status == 0, answer.errors
    assert answer.figures["frameworks"][0]["steps"] == 3, "a step inside a step is none"
    # Weights, buckets, and one momentum of a quarter of the weights.
    assert f"live {2 * WEIGHTS + WEIGHTS // 4}" in answer.output


def test_a_model_on_two_gpus_of_one_process_trains(gpu, pytorch):
    """The second GPU holds a copy of the weights during a step, and its gradients go to the first one."""
    answer = gpu("rtx4090", "--gpus", "2", python=pytorch, program="""
import torch
model = torch.nn.DataParallel(torch.nn.Linear(1024, 1024).cuda())
optimizer = torch.optim.SGD(model.parameters())
for _ in range(2):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
    assert answer.status == 0, answer.errors
    first, second = sorted(answer.figures["frameworks"][0]["devices"], key=lambda device: device["device"])
    assert min(first["peak_allocated_bytes"], second["peak_allocated_bytes"]) >= 2 * 1024 * 1024 * 4


def test_gpus_are_shown_in_their_order_whichever_process_came_first(gpu, pytorch):
    answer = gpu("rtx4090", "--gpus", "2", python=pytorch, program="""
import subprocess, sys, torch
held = torch.empty(1 << (20 + len(sys.argv)), device="cuda:0" if "child" in sys.argv else "cuda:1")
if "child" not in sys.argv:
    subprocess.run([sys.executable, __file__, "child"])
""")
    assert answer.status == 0, answer.errors
    assert 0 < answer.output.index("GPU 0: 16.00 MiB") < answer.output.index("GPU 1: 8.00 MiB")
