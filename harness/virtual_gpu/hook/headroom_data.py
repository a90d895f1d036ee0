"""Lets datasets of TensorFlow have the arrays that a program made them of. TensorFlow copies these to the GPU and back,
and a virtual GPU keeps no large copies."""

import functools

import numpy as np
from headroom_tensorflow.large import KNOWN
from tensorflow import device
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op
from tensorflow.python.ops import gen_dataset_ops

ARRAY = "_headroom_array"  # attribute of a tensor on a GPU: the array that it is a copy of


def read_arrays():
    """Called after TensorFlow has been imported."""
    convert = constant_op.convert_to_eager_tensor

    @functools.wraps(convert)
    def convert_and_note(value, *arguments, **options):
        tensor = convert(value, *arguments, **options)
        if isinstance(value, np.ndarray) and "GPU" in tensor.device and not hasattr(tensor, KNOWN):
            setattr(tensor, ARRAY, value)
        return tensor

    def on_host(tensor):
        array = getattr(tensor, ARRAY, None)
        if array is None:
            return tensor
        with device("CPU"):
            return convert(array, context.context(), tensor.dtype)

    def of_arrays(make):
        @functools.wraps(make)
        def make_of_arrays(components, *arguments, **options):
            return make(list(map(on_host, components)), *arguments, **options)

        return make_of_arrays

    constant_op.convert_to_eager_tensor = convert_and_note
    for name in ("tensor_dataset", "tensor_slice_dataset"):
        setattr(gen_dataset_ops, name, of_arrays(getattr(gen_dataset_ops, name)))
