"""Symmetric memory of a rank that is alone (--world): its own memory stands for that of the other ranks."""

import functools
import math

import torch

SIGNALS = 2048  # bytes of the signals of a rank, which PyTorch keeps behind its memory


class OwnMemory:
    """What a rendezvous returns: the memory of all ranks of a group, as PyTorch's _SymmetricMemory."""

    def __init__(self, tensor, group):
        group = torch.distributed.distributed_c10d._resolve_process_group(group)
        self.rank, self.world_size = group.rank(), group.size()
        self.bytes = tensor.detach().view(-1).view(torch.uint8)
        self.buffer_size, self.signal_pad_size = self.bytes.numel(), SIGNALS
        self.buffer_ptrs = [self.bytes.data_ptr()] * self.world_size

    def get_buffer(self, rank, sizes, dtype, storage_offset=0):
        start = storage_offset * dtype.itemsize
        return self.bytes[start:start + math.prod(sizes) * dtype.itemsize].view(dtype).view(tuple(sizes))

    def get_remote_tensor(self, peer, sizes, dtype):
        return self.get_buffer(peer, sizes, dtype)

    @functools.cached_property
    def signals(self):
        return torch.zeros(SIGNALS, dtype=torch.uint8, device=self.bytes.device)

    def get_signal_pad(self, rank, sizes=(), dtype=torch.int32, storage_offset=0):
        start = storage_offset * dtype.itemsize
        end = start + math.prod(sizes) * dtype.itemsize if sizes else SIGNALS
        return self.signals[start:end].view(dtype).view(tuple(sizes) or -1)

    def barrier(self, *_, **__):
        """Does not wait, since no other rank will come; nor do signals."""

    put_signal = wait_signal = barrier


def share_with_itself():
    """Replaces the exchange of addresses with the other ranks."""
    memory = getattr(torch._C._distributed_c10d, "_SymmetricMemory", None)
    if memory is None:
        return
    allocate, groups = memory.empty_strided_p2p, {}

    def empty_strided_p2p(size, stride, dtype, device, group_name=None, *more, **named):
        tensor = allocate(size, stride, dtype, device, group_name, *more, **named)
        groups[tensor.untyped_storage().data_ptr()] = group_name
        return tensor

    def rendezvous(tensor, group_name=None):
        place = tensor.untyped_storage().data_ptr()
        return OwnMemory(tensor, group_name or groups[place]) if place in groups else None

    memory.empty_strided_p2p, memory.rendezvous = empty_strided_p2p, rendezvous
