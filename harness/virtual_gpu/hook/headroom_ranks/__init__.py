"""Lets PyTorch's ranks work together although kernels do not run and therefore no tensor reaches another rank."""

import ctypes
import functools
import importlib
import time

import headroom_known
import torch
from headroom_ranks import numbers, symmetric
from torch.optim.optimizer import register_optimizer_step_post_hook

# What PyTorch says of sizes that other ranks would have sent: that they are not the same, or no sizes at all.
OF_UNKNOWN_SIZES = ("DDP expects same model across all ranks", "cannot be converted to type int without overflow")


def trust_other_ranks():
    """Lets DistributedDataParallel accept its parameters: it compares them with those of other ranks, which
    a kernel that did not run would have received."""
    module = torch.nn.parallel.distributed
    verify = getattr(module, "_verify_param_shape_across_processes", None)
    if verify is None:
        return

    def verify_what_is_known(*arguments):
        try:
            return verify(*arguments)
        except RuntimeError as error:
            if not any(reason in str(error) for reason in OF_UNKNOWN_SIZES):
                raise

    module._verify_param_shape_across_processes = verify_what_is_known


def trust_the_first_rank(utils):
    """Called after deepspeed.runtime.zero.utils has been imported. DeepSpeed compares integers with those that rank 0
    would have sent."""
    utils.assert_ints_same_as_other_ranks = lambda ints: None


def tell_sizes_of_splits():
    """Tells a group that is split off another one its number of ranks, which NCCL would count by asking all ranks.
    Where PyTorch could either split a group off or make a new one, it makes a new one."""
    torch.distributed.distributed_c10d._get_split_source = lambda *_: None
    split = getattr(torch.distributed.ProcessGroup, "split_group", None)
    if split is None:
        return  # Older versions pass the size of each group to NCCL.

    @functools.wraps(split)
    def split_group(self, ranks, *arguments, **options):
        ctypes.CDLL(None).headroom_gpu_next_split_has(len(ranks))
        return split(self, ranks, *arguments, **options)

    torch.distributed.ProcessGroup.split_group = split_group


class Sent:
    """`by_future`: whether a rank has waited by a future for what it sent, which PyTorch then held until later."""

    by_future = False


def what_is_held_longer():
    """Says that a card whose steps are short may hold more than a virtual one, which waits."""
    if not Sent.by_future:
        return []
    return ["what a rank sent and waited for by a future is freed before its next step; this version of PyTorch may "
            "take 0.1 s to free it, so a card with shorter steps may still hold it in the next one"]


def wait_after_steps():
    """Waits 0.3 s after the first step of a rank, and 0.15 s after later ones in which it asked for the future of what
    it sent. PyTorch 2.7 to 2.14 hold what was sent until the program has waited for it, other than by its future, or a
    thread, which looks every 100 ms, has seen that it has arrived. A step on a card mostly takes longer than that, so
    what was sent in one step is free before the next one needs as much."""
    is_first, futures = True, []
    ask = torch.distributed.Work.get_future

    @functools.wraps(ask)
    def get_future(work):
        Sent.by_future = True
        futures.append(True)
        return ask(work)

    def wait(*_):
        nonlocal is_first
        if torch.distributed.is_initialized() and (is_first or futures):
            time.sleep(0.3 if is_first else 0.15)
            is_first = False
            futures.clear()

    torch.distributed.Work.get_future = get_future
    register_optimizer_step_post_hook(wait)


def know_scattered_parts():
    """Lets the replicas of torch.nn.DataParallel know the integers and booleans of their parts of a batch."""
    scatter = torch.nn.parallel.comm.scatter

    @functools.wraps(scatter)
    def scatter_known(tensor, devices=None, chunk_sizes=None, dim=0, *more, **named):
        parts = scatter(tensor, devices, chunk_sizes, dim, *more, **named)
        if not tensor.is_floating_point() and headroom_known.is_known(tensor):
            known = headroom_known.value_of(tensor).split([part.shape[dim] for part in parts], dim)
            for part, value in zip(parts, known):
                headroom_known.remember(part, value.clone())
        return parts

    torch.nn.parallel.comm.scatter = scatter_known


def pretend_world(ranks):
    """Makes this process rank 0 of `ranks`. No other rank exists: the messages that ranks exchange at the start
    stay in this process."""
    numbers.is_alone = True

    def alone(url, timeout=None, **_):
        yield torch.distributed.HashStore(), 0, ranks

    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    rendezvous._rendezvous_handlers["env"] = alone
    symmetric.share_with_itself()
