"""Keeps the values of large tensors of whole numbers in TensorFlow's eager mode: of those that the program copies to
the virtual GPU, which keeps only small ones by itself, and of what follows from them alone, which the host works out
beside the card. The card allocates what it would allocate anyway."""

import ctypes
import functools

import numpy as np
from tensorflow import Tensor, TensorShape, as_dtype, device, experimental
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op

FEW_NUMBERS = 4096  # with which the host works in any case
MOST_NUMBERS = 1 << 24
KEPT_BYTES = 64 << 10  # that the virtual GPU keeps of each copy by itself
KNOWN = "_headroom_known"  # attribute of a large tensor on the card of which TensorFlow has a copy on the host
driver = ctypes.CDLL(None)
pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
pointer_in.restype, pointer_in.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def is_whole(operand):
    kind = as_dtype(operand.dtype)
    return kind.is_integer or kind.name == "bool"


def is_large(operand):
    return (TensorShape(operand.shape).num_elements() or 0) > FEW_NUMBERS


def is_on_card(tensor):
    return "GPU" in tensor.backing_device


def has_too_many(operand):
    return (TensorShape(operand.shape).num_elements() or 0) > MOST_NUMBERS


def is_known(operand):
    """Whether the values of a large operand are known. It may be a tensor, a variable, or an array of NumPy."""
    if has_too_many(operand):
        return False
    if isinstance(operand, Tensor):
        return hasattr(operand, KNOWN) or not is_on_card(operand)
    return isinstance(operand, np.ndarray)


def are_known(operation, operands):
    """Whether an operation depends on large operands of whole numbers, and on known ones only."""
    parts = [part for one in operands for part in (one if isinstance(one, (list, tuple)) else [one])]
    tensors = [part for part in parts if hasattr(part, "shape")]
    if operation == "DynamicPartition":  # divides any numbers by whole ones
        tensors = tensors[1:]
    large = [one for one in tensors if is_large(one)]
    return bool(large) and all(map(is_whole, tensors)) and all(map(is_known, large))


def keep(tensor, values):
    """Keeps the values of a tensor on the card."""
    values = np.ascontiguousarray(values)
    capsule = experimental.dlpack.to_dlpack(tensor)  # a DLTensor, which begins with the address
    place = ctypes.c_void_p.from_address(pointer_in(capsule, b"dltensor")), ctypes.c_size_t(values.nbytes)
    driver.headroom_gpu_keep(*place, ctypes.c_void_p(values.ctypes.data))
    if is_large(tensor):
        tensor._numpy()  # TensorFlow keeps what has been read as long as the tensor exists
        setattr(tensor, KNOWN, True)
    if values.nbytes > KEPT_BYTES:
        driver.headroom_gpu_forget(*place)


def on_card(made, known):
    """Returns what an operation made, with the values that the host knows."""
    if not is_on_card(made):
        return known
    if made.shape != known.shape:  # which depends on the values
        made = known._copy(context.context(), made.device)
    if is_whole(known) and known.shape.num_elements():
        keep(made, known.numpy())
    return made


def worked_out(work, result):
    """Lets the host do the work of an operation as well, and returns its result with the values that the host found."""
    if any(map(has_too_many, result if isinstance(result, list) else [result])):
        return result
    try:
        with device("CPU"):
            known = work()
    except Exception:  # such as that an index is out of bounds, which is no error on a card
        return result
    return list(map(on_card, result, known)) if isinstance(result, list) else on_card(result, known)


def keep_constants():
    """Keeps what the program copies to the card."""
    convert = constant_op.convert_to_eager_tensor

    @functools.wraps(convert)
    def convert_and_keep(value, *options):
        tensor = convert(value, *options)
        if tensor is not value and is_whole(tensor) and is_large(tensor) and not has_too_many(tensor):
            if is_on_card(tensor):
                with device("CPU"):
                    keep(tensor, convert(value, *options).numpy())
        return tensor

    constant_op.convert_to_eager_tensor = convert_and_keep
