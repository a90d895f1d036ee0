"""Values that ranks get from each other."""

import pytest
from conftest import TWO_RANKS, printed_by

NUMBERS = """
import numpy
import os
import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_to_all_single
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
lines = []
def show(*values):
    lines.append(f"rank {rank}, {how}: " + " ".join(str(value.tolist()) for value in values) + "\\n")
two = lambda: torch.zeros(2, dtype=torch.int64, device="cuda")
"""
ON_TWO_RANKS = {
    "reduced": ("""
total, most, mean, on_one = own.clone(), own.clone(), own.double(), own.clone()
dist.all_reduce(total)
dist.all_reduce(most, dist.ReduceOp.MAX)
dist.all_reduce(mean, op=dist.ReduceOp.AVG)
dist.reduce(on_one, dst=1)
show(total, most, mean, on_one)
""", ["[3, 9] [2, 5] [1.5, 4.5] [1, 5]", "[3, 9] [2, 5] [1.5, 4.5] [3, 9]"]),
    "sent by one": ("""
told, dealt = own.clone(), two()
dist.broadcast(told, src=1)
dist.scatter(dealt, [own * 2, own * 3] if rank == 0 else None, src=0)
show(told, dealt)
""", ["[2, 4] [2, 10]", "[2, 4] [3, 15]"]),
    "gathered": ("""
listed, joined, on_one = [two(), two()], torch.empty(4, dtype=torch.int64).cuda(), [two(), two()]
dist.all_gather(listed, own)
dist.all_gather_into_tensor(joined, own)
dist.gather(own, on_one if rank == 0 else None, dst=0)
show(*listed, joined, *on_one)
""", ["[1, 5] [2, 4] [1, 5, 2, 4] [1, 5] [2, 4]", "[1, 5] [2, 4] [1, 5, 2, 4] [0, 0] [0, 0]"]),
    "in parts": ("""
sent, received = ([1, 3], [1, 2]) if rank == 0 else ([2, 2], [3, 2])
parts, rows = two(), torch.empty(sum(received), dtype=torch.int64, device="cuda")
dist.all_to_all_single(parts, own)
dist.all_to_all_single(rows, torch.arange(4, device="cuda") + 10 * rank, numpy.array(received), numpy.array(sent))
listed = [torch.empty(n, device="cuda") for n in received]
dist.all_to_all(listed, [torch.full((n,), rank + 0.5, device="cuda") for n in sent])
show(parts, all_to_all_single(own, None, None, dist.group.WORLD) + 0, rows, *listed)
""", ["[1, 2] [1, 2] [0, 10, 11] [0.5] [1.5, 1.5]", "[5, 4] [5, 4] [1, 2, 3, 12, 13] [0.5, 0.5, 0.5] [1.5, 1.5]"]),
    "between two": ("""
first, second = two(), two()
if rank == 0:
    dist.send(own, 1)
else:
    dist.recv(first, 0)
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own, 1 - rank), dist.P2POp(dist.irecv, second, 1 - rank)]):
    work.wait()
show(first, second)
""", ["[0, 0] [2, 4]", "[1, 5] [1, 5]"]),
    "until one stops": ("""
steps, stop = torch.tensor(0), torch.tensor(0, device="cuda")
while not stop.item():
    steps += 1
    if rank == 0 and steps == 3:
        stop.fill_(1)
    dist.broadcast(stop, 0)
show(steps)
""", ["3", "3"]),
}


@pytest.fixture(scope="module")
def numbers(shared_gpu, pytorch, tmp_path_factory):
    """What two ranks print of the numbers that they get from each other."""
    script = tmp_path_factory.mktemp("numbers") / "ranks.py"
    script.write_text(NUMBERS + "".join(
        f"how, own = {how!r}, torch.tensor([rank + 1, 5 - rank]).cuda()\n" + body
        for how, (body, _) in ON_TWO_RANKS.items()) + 'os.write(1, "".join(lines).encode())  # at once\n')
    answer = shared_gpu("h100", "--gpus", "2", python=pytorch, program=TWO_RANKS, arguments=[str(script)])
    assert answer.status == 0, answer.errors
    return answer.output


@pytest.mark.parametrize("how", ON_TWO_RANKS)
def test_ranks_know_the_numbers_that_others_send(numbers, how):
    for rank, values in enumerate(ON_TWO_RANKS[how][1]):
        assert f"rank {rank}, {how}: {values}\n" in numbers


def test_a_rank_reads_what_one_has_sent_that_ended_since(gpu, pytorch, tmp_path):
    """The store through which they tell each other is in the process of the first rank."""
    (tmp_path / "ranks.py").write_text("""
import os, time, torch
import torch.distributed as dist
dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
told = torch.tensor(7 - dist.get_rank(), device="cuda")
dist.broadcast(told, src=0)
if dist.get_rank() == 1:
    time.sleep(2)
    print(f"read {told.item()}", flush=True)
""")
    answer = gpu("h100", "--gpus", "2", python=pytorch, program=TWO_RANKS, arguments=[str(tmp_path / "ranks.py")])
    assert answer.status == 0, answer.errors
    assert "read 7\n" in answer.output


def test_a_child_of_the_first_rank_ends_while_the_ranks_go_on(gpu, pytorch, tmp_path):
    """It has the connection to the store from its parent, as workers that load data have."""
    (tmp_path / "ranks.py").write_text("""
import multiprocessing, torch
import torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
told = torch.tensor(7 - rank, device="cuda")
dist.broadcast(told, src=0)
if rank == 0:
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join(20)
    print(f"ended {child.exitcode}", flush=True)
    child.kill()
dist.all_reduce(told)
if rank == 1:
    print(f"read {told.item()}", flush=True)
""")
    answer = gpu("h100", "--gpus", "2", python=pytorch, program=TWO_RANKS, arguments=[str(tmp_path / "ranks.py")])
    assert answer.status == 0, answer.errors
    assert "ended 0\n" in answer.output and "read 14\n" in answer.output


def test_ranks_that_one_process_pretends_send_the_integers_that_it_sends(gpu, pytorch):
    """Experts on several ranks tell each other so how many tokens they get."""
    answer = gpu("h100", "--world", "4", python=pytorch, program="""
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
sent = torch.tensor([1, 2, 3, 4], device="cuda") * 2
of_all = torch.empty(4, 4, dtype=torch.int64, device="cuda")
dist.all_gather_into_tensor(of_all, sent)
listed = [torch.empty_like(sent) for _ in range(4)]
dist.all_gather(listed, sent)
from_each = torch.empty_like(sent)
dist.all_to_all_single(from_each, sent)
print(of_all.tolist() == [[2, 4, 6, 8]] * 4, [x.tolist() for x in listed] == of_all.tolist(), from_each.tolist())
parts = [torch.empty(2, dtype=torch.int64, device="cuda") for _ in range(4)]
dist.all_to_all(parts, [torch.tensor([rank, 7]).cuda() for rank in range(4)])
from torch.distributed._functional_collectives import all_to_all_single
mesh = dist.init_device_mesh("cuda", (4,))
returned = all_to_all_single(sent, None, None, mesh)
waited = torch.ops._c10d_functional.wait_tensor(all_to_all_single(sent, None, None, (mesh, 0)))
print([part.tolist() for part in parts] == [[0, 7]] * 4, (returned + 1).tolist(), waited.sum().item())
total, most = torch.tensor([3, 5]).cuda(), torch.tensor(3).cuda()
dist.all_reduce(total)
dist.all_reduce(most, dist.ReduceOp.MAX)
print(total.tolist(), most.item())
""")
    assert answer.status == 0, answer.errors
    assert "True True [2, 2, 2, 2]" in answer.output
    assert "True [3, 3, 3, 3] 8" in answer.output
    assert "[12, 20] 3" in answer.output


def test_what_a_rank_receives_is_freed_when_the_program_drops_it(gpu, pytorch):
    """And not only when Python looks for cycles. A program may hold the gradients of a step until they are reduced."""
    answer = gpu("rtx4090", "--world", "2", python=pytorch, program="""
import gc
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
gc.disable()
fresh = lambda elements=1 << 20: torch.ones(elements, device="cuda")
def exchange():
    for reduce_or_send in (dist.all_reduce, lambda x: dist.reduce(x, dst=0), lambda x: dist.broadcast(x, src=0)):
        reduce_or_send(fresh())
    dist.scatter(fresh(), [fresh(), fresh()], src=0)
    dist.all_gather([fresh(), fresh()], fresh())
    dist.all_gather_into_tensor(fresh(2 << 20), fresh())
    dist.gather(fresh(), [fresh(), fresh()], dst=0)
    dist.all_to_all([fresh(), fresh()], [fresh(), fresh()])
    dist.all_to_all_single(fresh(), fresh())
    dist.recv(fresh(), src=1)
exchange()
before = torch.cuda.memory_allocated()
exchange()
print(torch.cuda.memory_allocated() - before)
""")
    assert printed_by(answer) == ["0"]
