"""Lets ranks exchange Python objects, which NCCL would send as tensors."""

import collections
import functools
import inspect
import pickle

import torch

# Functions of whole groups that send Python objects as tensors, whose bytes the receivers read.
OBJECTS = ("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list")
on_host = {}  # group whose tensors are on GPUs → group of the same ranks that exchanges through the host


def group_on_host(group):
    """Returns the group through which the ranks of `group` exchange objects. Every one of them must call this."""
    c10d = torch.distributed.distributed_c10d
    device_of = getattr(c10d, "_get_object_coll_device", None) or c10d._get_pg_default_device  # before PyTorch 2.6
    if c10d._rank_not_in_group(group) or torch.device(device_of(group)).type == "cpu":
        return group
    group = group or c10d._get_default_group()
    if group not in on_host:
        ranks = torch.distributed.get_process_group_ranks(group)
        on_host[group] = torch.distributed.new_group(ranks, backend="gloo", use_local_synchronization=True)
    return on_host[group]


def exchange_on_the_host():
    """Lets ranks exchange objects through the host, so that they arrive. NCCL would hold their bytes on the GPU."""
    c10d = torch.distributed.distributed_c10d

    def through_host(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def exchange(*arguments, **named):
            given = signature.bind(*arguments, **named).arguments
            given["group"] = group_on_host(given.get("group"))
            given.pop("device", None)  # the GPU, if the caller names it
            return function(**given)

        return exchange

    for name in OBJECTS:
        if function := getattr(c10d, name, None):
            for module in (c10d, torch.distributed):
                setattr(module, name, through_host(function))


def exchange_of_two_through_the_store():
    """Lets two ranks exchange objects through the store by which all ranks have found each other. To make a group on
    the host, the other ranks would have to take part."""
    c10d = torch.distributed.distributed_c10d
    counts = collections.Counter()

    def next_key(source, target):
        counts[source, target] += 1
        return f"headroom/{source}/{target}/{counts[source, target]}"

    def global_rank(rank, group, rank_in_group):
        if rank_in_group is None:
            return rank
        return c10d.get_global_rank(group or c10d._get_default_group(), rank_in_group)

    def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, **_):
        key = next_key(c10d.get_rank(), global_rank(dst, group, group_dst))
        c10d._get_default_store().set(key, pickle.dumps(list(object_list)))

    def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, **_):
        source = global_rank(src, group, group_src)
        object_list[:] = pickle.loads(c10d._get_default_store().get(next_key(source, c10d.get_rank())))
        return source

    for replacement in (send_object_list, recv_object_list):
        for module in (c10d, torch.distributed):
            setattr(module, replacement.__name__, replacement)
