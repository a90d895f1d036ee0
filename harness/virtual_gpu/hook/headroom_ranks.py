"""Lets PyTorch's ranks work together although kernels do not run and therefore no tensor reaches another rank."""

import collections
import ctypes
import functools
import importlib
import inspect
import pickle
import time

import headroom_known
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

# Functions of whole groups that send Python objects as tensors, whose bytes the receivers read.
OBJECTS = ("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list")
# What PyTorch says of sizes that other ranks would have sent: that they are not the same, or no sizes at all.
OF_UNKNOWN_SIZES = ("DDP expects same model across all ranks", "cannot be converted to type int without overflow")
on_host = {}  # group whose tensors are on GPUs → group of the same ranks that exchanges through the host


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


def exchange_objects_on_the_host():
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


def exchange_objects_of_two_through_the_store():
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


def from_each(outputs, sent, ranks, rank):
    return [(output, sent.clone()) for output in outputs]


def from_each_into_one(output, sent, ranks, rank):
    return [(output, sent.flatten().repeat(ranks))]


def one_part_from_each(output, sent, ranks, rank):
    return [(output, sent.flatten().tensor_split(ranks)[rank].repeat(ranks))]


def know_sum(reduce):
    """Lets a program know the sum over all ranks of numbers that it knows."""

    @functools.wraps(reduce)
    def reduce_and_know(tensor, op=torch.distributed.ReduceOp.SUM, group=None, async_op=False):
        known = headroom_known.value_of(tensor) if tensor.is_cuda and headroom_known.is_known(tensor) else None
        work = reduce(tensor, op, group, async_op)
        if known is not None and op == torch.distributed.ReduceOp.SUM:
            headroom_known.remember(tensor, known * torch.distributed.get_world_size(group))
        return work

    return reduce_and_know


def know(received, output, sent, group):
    """Records the integers that this rank gets from the others of a group."""
    ranks, rank = torch.distributed.get_world_size(group), torch.distributed.get_rank(group)
    if rank >= 0 and isinstance(sent, (list, tuple)):  # a tensor for each rank
        sent = sent[rank]
    if rank >= 0 and sent.is_cuda and not sent.is_floating_point() and not sent.is_complex():
        headroom_known.remember_received(received, output, sent, ranks, rank)


def know_what_ranks_send():
    """Lets a program know the integers that it gets from other ranks, such as the number of tokens for an expert: every
    rank is assumed to send what this one sends."""
    c10d = torch.distributed.distributed_c10d

    def and_know(function, received):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def exchange(*arguments, **named):
            work = function(*arguments, **named)
            given = signature.bind(*arguments, **named).arguments
            output, sent, *_ = given.values()
            know(received, output, sent, given.get("group"))
            return work

        return exchange

    for name, received in (("all_gather", from_each), ("all_gather_into_tensor", from_each_into_one),
                           ("all_to_all", from_each), ("all_to_all_single", one_part_from_each)):
        for module in (c10d, torch.distributed):
            setattr(module, name, and_know(getattr(module, name), received))
    c10d.all_reduce = torch.distributed.all_reduce = know_sum(c10d.all_reduce)


def know_what_functions_return(collectives):
    """Called after torch.distributed._functional_collectives has been imported."""
    exchange = collectives.all_to_all_single

    def group_of(given):
        if isinstance(given, tuple):  # a mesh of devices and one of its dimensions
            return given[0].get_group(given[1])
        return given.get_group() if hasattr(given, "get_group") else given

    @functools.wraps(exchange)
    def exchange_and_know(sent, output_split_sizes, input_split_sizes, group, *tag, **named):
        result = exchange(sent, output_split_sizes, input_split_sizes, group, *tag, **named)
        if headroom_known.FOLLOW and not torch.compiler.is_compiling() and not isinstance(group, (str, list)):
            know(one_part_from_each, headroom_known.awaited(result), sent, group_of(group))
        return result

    collectives.all_to_all_single = exchange_and_know


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

    def alone(url, timeout=None, **_):
        yield torch.distributed.HashStore(), 0, ranks

    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    rendezvous._rendezvous_handlers["env"] = alone
