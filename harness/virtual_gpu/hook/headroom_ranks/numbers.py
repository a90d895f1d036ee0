"""Lets a program know the numbers that its ranks send each other, such as how many tokens they have for an expert. No
kernel carries them to another rank, so the ranks tell each other through the store by which they have found each other.
A rank waits for what another one tells only when its program uses it, as it would wait for the GPU."""

import collections
import contextlib
import functools
import inspect
import itertools
import os
import pickle
import time

import torch
from headroom_known import FOLLOW, MOST_ELEMENTS, Unknown, Used, awaited, expect, value_of
from torch.distributed import ReduceOp, get_group_rank, get_process_group_ranks

c10d = torch.distributed.distributed_c10d
MOST_INTEGERS = 1 << 16  # elements of a tensor that ranks tell each other
MOST_OTHERS = 1 << 12  # elements, if they are not integers or booleans
MOST_KEPT = 32 << 20  # bytes of the messages of a rank that the store keeps
PATIENCE = 120  # seconds for which a rank waits for what another one tells
PATIENCE_AT_END = 30  # seconds for which the first rank waits for the others
REDUCTIONS = {ReduceOp.SUM: torch.sum, ReduceOp.PRODUCT: torch.prod, ReduceOp.MIN: torch.amin, ReduceOp.MAX: torch.amax,
              ReduceOp.AVG: lambda values, dim: torch.mean(values.double(), dim)}
calls = collections.defaultdict(itertools.count)  # by group, or by pair of ranks in a group
is_alone = False  # whether this process only pretends that there are other ranks


def is_integer(tensor):
    return not tensor.is_floating_point() and not tensor.is_complex()


def is_small(tensor):
    return tensor.numel() <= (MOST_INTEGERS if is_integer(tensor) else MOST_OTHERS)


def known(tensor, ranks):
    try:
        if is_small(tensor) or is_integer(tensor) and tensor.numel() * ranks <= MOST_ELEMENTS:
            return value_of(tensor).clone()
    except Unknown:
        pass
    return None


class Told:
    """What this rank has told: the store, which may end with the first rank, the ranks that it has told something, and
    the keys and lengths of the latest messages, the oldest first."""

    store, rank, others = None, 0, set()
    messages, bytes = collections.deque(), 0

    @classmethod
    def put(cls, key, message, others):
        cls.store, cls.rank = c10d._get_default_store(), torch.distributed.get_rank()
        cls.others.update(others)
        cls.store.set(key, message)
        cls.messages.append((key, len(message)))
        cls.bytes += len(message)
        while cls.bytes > MOST_KEPT:
            oldest, length = cls.messages.popleft()
            cls.store.delete_key(oldest)
            cls.bytes -= length

    @classmethod
    def wait_for(cls, keys, patience):
        """Returns whether the store has the keys, for which this waits."""
        until = time.monotonic() + patience
        try:
            while not cls.store.check(keys):
                if time.monotonic() > until:
                    return False
                time.sleep(0.001)
        except RuntimeError:  # the store has ended
            return False
        return True

    @classmethod
    def forget(cls):
        """Called in a forked child, which is no rank. The connection to the store is that of its parent."""
        cls.store, cls.others, cls.messages, cls.bytes = None, set(), collections.deque(), 0

    @classmethod
    def leave(cls, has_failed):
        """Called when the process ends. The first rank, in whose process the store may be, waits for the others, which
        may not have read yet what it has told."""
        if cls.store is None:
            return
        with contextlib.suppress(RuntimeError):  # the store has ended
            cls.store.set(f"headroom/left/{cls.rank}", b"")
            if cls.rank == 0 and not has_failed:
                cls.wait_for([f"headroom/left/{rank}" for rank in cls.others], PATIENCE_AT_END)


class Message:
    """What a rank tells the others of a group, or one of them, in one call: the values of the small ones among the
    tensors that it sends, if it knows them. Every rank makes one for each call, also one that only receives."""

    def __init__(self, group, sent, pair=()):
        self.ranks, self.rank = group.size(), group.rank()
        self.place = f"headroom/{group.group_name}/" + "-".join(map(str, pair))
        self.number = next(calls[self.place])
        self.is_alone = is_alone or torch.distributed.get_backend(group) == "fake"
        Used.drawn = False
        self.sent, self.drawn = [known(tensor, self.ranks) for tensor in sent], Used.drawn
        if not self.is_alone and any(map(is_small, sent)):
            told = [value if is_small(tensor) else None for tensor, value in zip(sent, self.sent)]
            ranks = get_process_group_ranks(group)
            Told.put(self.key(self.rank), pickle.dumps((self.drawn, told)), [ranks[one] for one in pair] or ranks)

    def key(self, rank):
        return f"{self.place}/{self.number}/{rank}"

    def told_by(self, rank):
        if not Told.wait_for([self.key(rank)], PATIENCE):
            raise Unknown
        return pickle.loads(Told.store.get(self.key(rank)))

    def value(self, small, rank, at=0):
        """Returns the value that a tensor, which may be small, gets from a rank, which sends it as the tensor at position
        `at`. What ranks do not tell each other is taken to be the same for all. Raises Unknown."""
        is_told = small and rank != self.rank and not self.is_alone
        drawn, sent = self.told_by(rank) if is_told else (self.drawn, self.sent)
        if sent[at] is None:
            raise Unknown
        Used.drawn |= drawn
        return sent[at]

    def values(self, small, at=0):
        """Returns the values that tensors get, one from each rank, of which each may be small."""
        return [self.value(one, rank, at) for rank, one in enumerate(small)]

    def reduced(self, small, dtype, op):
        if self.sent[0] is None or op not in REDUCTIONS:
            raise Unknown
        return REDUCTIONS[op](torch.stack(self.values([small] * self.ranks)), 0).to(dtype)


# The following functions have the names and parameters of those of PyTorch. Each makes the message of this rank, and
# returns the tensors that the rank receives with what finds their values. The latter must not hold the tensors, which
# would then live until Python looks for cycles.


def all_reduce(tensor, op, group, **_):
    message = Message(group, [tensor])
    return [(tensor, functools.partial(message.reduced, is_small(tensor), tensor.dtype, op))]


def reduce(tensor, dst, op, group, group_dst=None, **_):
    received = all_reduce(tensor, op, group)
    return received if group.rank() == rank_in(group, dst, group_dst) else []


def broadcast(tensor, src, group, group_src=None, **_):
    message = Message(group, [tensor])
    return [(tensor, functools.partial(message.value, is_small(tensor), rank_in(group, src, group_src)))]


def all_gather(tensor_list, tensor, group, **_):
    message = Message(group, [tensor])
    return [(part, functools.partial(message.value, is_small(part), rank)) for rank, part in enumerate(tensor_list)]


def all_gather_into_tensor(output_tensor, input_tensor, group, **_):
    message, small = Message(group, [input_tensor]), [is_small(input_tensor)] * group.size()
    return [(output_tensor, lambda: torch.cat([value.flatten() for value in message.values(small)]))]


def gather(tensor, gather_list, group, **_):
    return all_gather(gather_list or [], tensor, group)


def scatter(tensor, scatter_list, src, group, group_src=None, **_):
    message = Message(group, scatter_list or [tensor] * group.size())
    source = rank_in(group, src, group_src)
    return [(tensor, functools.partial(message.value, is_small(tensor), source, group.rank()))]


def all_to_all(output_tensor_list, input_tensor_list, group, **_):
    message = Message(group, input_tensor_list)
    return [(part, functools.partial(message.value, is_small(part), rank, group.rank()))
            for rank, part in enumerate(output_tensor_list)]


def all_to_all_single(output, input, output_split_sizes, input_split_sizes, group, **_):
    message = Message(group, parts_of(input, input_split_sizes, group))
    small = list(map(is_small, parts_of(output, output_split_sizes, group)))
    return [(output, lambda: torch.cat(message.values(small, group.rank())))]


def send(tensor, dst, group, group_dst=None, **_):
    Message(group, [tensor], (group.rank(), rank_in(group, dst, group_dst)))
    return []


def recv(tensor, src, group, group_src=None, **_):
    source = rank_in(group, src, group_src)
    message = Message(group, [tensor], (source, group.rank()))
    return [(tensor, functools.partial(message.value, is_small(tensor), source))]


def rank_in(group, rank, rank_in_group):
    """The rank in a group that a caller names by its rank among all or by that in the group, else the first."""
    if rank_in_group is None:
        return 0 if rank is None else get_group_rank(group, rank)
    return rank_in_group


def parts_of(tensor, sizes, group):
    sizes = [] if sizes is None else list(map(int, sizes))  # those of an array of NumPy, too
    return tensor.split(sizes) if sizes else tensor.tensor_split(group.size())


FOLLOWED = {"all_reduce": all_reduce, "reduce": reduce, "broadcast": broadcast, "all_gather": all_gather,
            "all_gather_into_tensor": all_gather_into_tensor, "gather": gather, "scatter": scatter,
            "all_to_all": all_to_all, "all_to_all_single": all_to_all_single,
            "send": send, "isend": send, "recv": recv, "irecv": recv}


def followed(function, received):
    """Returns a function of PyTorch that records in each tensor that it receives what finds its value."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def exchange(*arguments, **named):
        if torch.compiler.is_compiling():
            return function(*arguments, **named)
        results = finders(signature, received, arguments, named)
        work = function(*arguments, **named)
        for tensor, find in results:
            expect(tensor, find)
        return work

    return exchange


def finders(signature, received, arguments, named):
    """Returns the tensors that a call receives and what finds their values; none if it is not about tensors on GPUs."""
    try:
        given = signature.bind(*arguments, **named)
    except TypeError:  # PyTorch will say so
        return []
    given.apply_defaults()
    given = given.arguments
    group = given["group"] = given["group"] or c10d._get_default_group()
    first = next((thing for thing in given.values() if thing is not None), None)
    first = first[0] if isinstance(first, (list, tuple)) and first else first
    if c10d._rank_not_in_group(group) or not isinstance(first, torch.Tensor) or not first.is_cuda:
        return []
    return received(**given)


def follow():
    """Lets a program know the numbers that it gets from other ranks."""
    os.register_at_fork(after_in_child=Told.forget)
    for name, received in FOLLOWED.items():
        function = followed(getattr(c10d, name), received)
        for module in (c10d, torch.distributed):
            setattr(module, name, function)


def follow_functions(collectives):
    """Called after torch.distributed._functional_collectives has been imported."""
    exchange = collectives.all_to_all_single

    def group_of(given):
        if isinstance(given, tuple):  # a mesh of devices and one of its dimensions
            return given[0].get_group(given[1])
        return given.get_group() if hasattr(given, "get_group") else given

    @functools.wraps(exchange)
    def exchange_and_know(sent, output_split_sizes, input_split_sizes, group, *tag, **named):
        result = exchange(sent, output_split_sizes, input_split_sizes, group, *tag, **named)
        if FOLLOW and not torch.compiler.is_compiling() and not isinstance(group, (str, list)):
            received = awaited(result)
            [(_, find)] = all_to_all_single(received, sent, output_split_sizes, input_split_sizes, group_of(group))
            expect(received, find)
        return result

    collectives.all_to_all_single = exchange_and_know
