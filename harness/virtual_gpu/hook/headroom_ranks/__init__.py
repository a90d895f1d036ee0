"""Lets PyTorch's ranks work together although kernels do not run and therefore no tensor reaches another rank."""

import ctypes
import functools
import importlib
import time

import headroom_known
import torch
from headroom_ranks import numbers
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


def wait_after_first_step():
    """Waits 0.3 s after the first step of a rank. PyTorch 2.7 to 2.14 hold what was sent until a thread, which looks
    every 100 ms, has seen that it has arrived. Where the first step takes longer than that, as it mostly does on a
    card, the first buckets of DistributedDataParallel are free before it makes those of the second step."""
    seconds = [0.3]

    def wait(*_):
        if seconds and torch.distributed.is_initialized():
            time.sleep(seconds.pop())

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
