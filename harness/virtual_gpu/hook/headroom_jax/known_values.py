"""What the host knows of arrays of JAX on a virtual GPU."""

import ctypes
import functools
import math

import jax
import numpy as np
from jax._src import core, dtypes
from jax._src.array import ArrayImpl

MOST_NUMBERS = 4096  # of an operand
MOST_WHOLE_NUMBERS = 1 << 24  # or booleans, of an operand or of what is calculated
MOST_BYTES = 64 << 10  # of what the virtual GPU keeps; the arrays themselves have the values of longer ones
UNKNOWN, KNOWN = "unknown", "known"
HOLDS = "holds"  # a comparison that holds for all elements if what is compared is equal, or 0
VALUE = "_headroom_value"  # attribute of an array: its value if the virtual GPU does not keep it, or HOLDS
KEY_NUMBERS = "_base_array"  # attribute of keys of random numbers: the whole numbers that they consist of

read = ArrayImpl._value.fget
driver = ctypes.CDLL(None)


def is_known(array):
    """Whether a program that reads an array gets what it would get from a real card."""
    if isinstance(getattr(array, VALUE, None), np.ndarray):
        return True
    return all(
        part.nbytes == 0 or part.platform() != "gpu" or
        driver.headroom_gpu_knows(ctypes.c_void_p(part.unsafe_buffer_pointer()), ctypes.c_size_t(part.nbytes))
        for part in (shard.data for shard in array.addressable_shards))


def everywhere(value, aval):
    return np.broadcast_to(np.asarray(value, aval.dtype), aval.shape)


def is_everywhere(value):
    """Whether an array of NumPy has one value in all places, as far as its form tells."""
    return isinstance(value, (np.ndarray, np.generic)) and value.size > 0 and not any(value.strides)


def is_unknown(value):
    return value is UNKNOWN or value is HOLDS


def are_whole(kind):
    """Whether numbers of a type are integers or booleans."""
    return kind == bool or dtypes.issubdtype(kind, np.integer)


def is_key(aval):
    """Whether these are keys of random numbers."""
    return dtypes.issubdtype(aval.dtype, dtypes.prng_key)


def is_followed(aval):
    """Whether the host can calculate with operands of this type."""
    return isinstance(aval, core.ShapedArray) and (
        is_key(aval) or not dtypes.issubdtype(aval.dtype, dtypes.extended))


def can_be_known(aval):
    """Whether the host follows the values of such an operand."""
    if not is_followed(aval):
        return False
    return is_key(aval) or math.prod(aval.shape) <= (MOST_WHOLE_NUMBERS if are_whole(aval.dtype) else MOST_NUMBERS)


def value_of(operand, aval):
    """Returns the value of an operand on the host, or HOLDS or UNKNOWN."""
    if hasattr(operand, KEY_NUMBERS):
        return value_of(getattr(operand, KEY_NUMBERS), core.physical_aval(aval))
    if isinstance(operand, jax.Array):
        held = getattr(operand, VALUE, None)
        if held is not None:
            return held
    if not can_be_known(aval):
        return UNKNOWN
    if not isinstance(operand, jax.Array):
        return np.asarray(operand, aval.dtype)
    if operand.is_deleted() or not (operand.is_fully_addressable or operand.is_fully_replicated):
        return UNKNOWN
    operand.block_until_ready()
    return read(operand) if is_known(operand) else UNKNOWN


def kind_of(operand, value):
    """Returns what a slice is chosen by: whether the value is known, or a value that tells how comparisons with unknown
    ones end: one that is the same everywhere, an infinite number, or a 0 that the program gives as a number."""
    if is_unknown(value):
        return value
    is_telling = is_everywhere(value) and (
        value.ndim > 0 or is_infinite(value[()]) or not isinstance(operand, jax.Array) and value == 0)
    return value.flat[0].item() if is_telling else KNOWN


def constant(value, aval):
    """Returns the value of a literal or of another constant of a function."""
    if isinstance(value, jax.Array):
        return value_of(value, aval)
    return np.asarray(value, getattr(value, "dtype", aval.dtype))


def is_infinite(number):
    return isinstance(number, (float, np.inexact)) and bool(np.isinf(number))


def remember(array, value):
    """Lets reads of an array give a value."""
    array = getattr(array, KEY_NUMBERS, array)
    if value is HOLDS or value.nbytes > MOST_BYTES:
        setattr(array, VALUE, value)
    elif value.dtype == array.dtype:
        array.block_until_ready()  # the kernel that would write it is over
        for shard in array.addressable_shards:
            part = np.ascontiguousarray(value[shard.index])
            driver.cuMemcpyHtoD_v2(ctypes.c_void_p(shard.data.unsafe_buffer_pointer()),
                                   ctypes.c_void_p(part.ctypes.data), ctypes.c_size_t(part.nbytes))


def remember_copies(put):
    """Wraps the function of JAX that copies arrays to devices, so that the copies of whole numbers are known."""

    @functools.wraps(put)
    def put_and_remember(*arrays, **options):
        copies = put(*arrays, **options)
        for array, copy in zip(arrays, copies):
            if not isinstance(copy, ArrayImpl) or copy.nbytes <= MOST_BYTES or copy is array:
                continue
            value = getattr(array, VALUE, None) if isinstance(array, jax.Array) else array
            if isinstance(value, np.ndarray) and can_be_known(copy.aval):
                value = np.array(value, copy.dtype)  # the program may write to its own
                value.flags.writeable = False
                setattr(copy, VALUE, value)
        return copies

    return put_and_remember
