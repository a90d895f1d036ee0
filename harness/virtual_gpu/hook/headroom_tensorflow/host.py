"""Lets the host do what depends on few whole numbers or on scalars in TensorFlow, because a kernel of the virtual GPU
computes nothing: the rows of ragged and of sparse tensors, the points of tf.linspace, or how often a loop runs. Makes
assertions hold where they are about other values. Assertions about shapes and other integers that TensorFlow keeps on
the host are still checked."""

import functools
import math
import threading

from headroom_known import Lines
from headroom_tensorflow import large
from headroom_tensorflow.large import FEW_NUMBERS
from tensorflow import (
    Tensor, TensorShape, as_dtype, compat, constant, control_dependencies, device, errors, executing_eagerly,
    get_static_value, int32, logical_or, no_op, string)
from tensorflow.python.util import tf_stack

OF_INTEGERS = {"AddV2", "All", "Any", "BroadcastTo", "Cast", "ConcatV2", "Cumsum", "DenseBincount", "DynamicPartition",
               "Equal", "ExpandDims", "GatherV2", "Greater", "GreaterEqual", "Less", "LessEqual", "Max", "Maximum",
               "Min", "Minimum", "Mul", "NotEqual", "Pack", "Prod", "Range", "ReverseV2", "SelectV2", "Slice",
               "SparseFillEmptyRows", "StridedSlice", "Sub", "Sum", "Tile", "Transpose", "Unique", "UniqueV2", "Where"}
OF_LARGE = OF_INTEGERS | {"BitwiseAnd", "Bincount", "FloorDiv", "FloorMod", "Identity", "LogicalAnd", "LogicalNot",
                          "LogicalOr", "Neg", "OnesLike", "RaggedBincount", "Reshape", "Squeeze", "TopKV2",
                          "UniqueWithCounts", "UniqueWithCountsV2", "Unpack", "UnsortedSegmentSum", "Split", "SplitV",
                          "ZerosLike"}  # in eager mode
WITH_KERNEL_FOR_INT32 = {"Cast", "Cumsum", "DenseBincount", "DynamicPartition", "GatherV2", "SelectV2", "Tile",
                         "Transpose", "Unique", "UniqueV2", "Where"}
WITH_OTHER_OPERANDS_FIRST = {"DynamicPartition", "SelectV2"}  # the rest are few whole numbers
OF_SCALARS = {"Cast", "FloorDiv", "FloorMod", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "SelectV2"}
OF_ANY_NUMBERS = {"IsFinite", "IsInf", "IsNan"}  # unknown ones read as 0
FINITE = "_headroom_finite"  # attribute of a tensor of flags that say which values are finite
held = Lines("assertions about values that a virtual GPU does not compute, taken to hold")


def note_held():
    """Notes the line of an assertion. TensorFlow knows which line of the program AutoGraph has converted."""
    held.note([(frame.filename, frame.lineno) for frame in reversed(tf_stack.extract_stack())])


def is_on_host(values):
    """Whether TensorFlow compares these on the host: scalars of these types."""
    return all(
        not isinstance(value, Tensor) or value.dtype in (int32, string) and value.shape.rank == 0 for value in values
    )


def compared_by(condition):
    """Returns the operands of the comparison in a graph that a condition is the result of, or the condition."""
    if not isinstance(condition, Tensor) or executing_eagerly():
        return [condition]
    operation = condition.op
    if operation.type == "All":
        operation = operation.inputs[0].op
    return operation.inputs


def hold(tensorflow):
    """Called after TensorFlow has been imported."""
    from tensorflow.python.ops import check_ops, control_flow_assert

    assert_true, compare = control_flow_assert.Assert, check_ops._binary_assert

    @functools.wraps(assert_true)
    def assert_or_hold(condition, data, summarize=None, name=None):
        if is_on_host(compared_by(condition)):
            return assert_true(condition, data, summarize, name)
        note_held()
        if executing_eagerly():
            return None
        with control_dependencies([condition]):  # the comparison takes memory on a card
            return no_op(name or "Assert")

    @functools.wraps(compare)
    def compare_or_hold(sym, opname, op_func, static_func, x, y, *more, **named):
        try:
            return compare(sym, opname, op_func, static_func, x, y, *more, **named)
        except errors.InvalidArgumentError:
            if is_on_host([x, y]):
                raise
            note_held()
            return None

    for module in (tensorflow, tensorflow.debugging, tensorflow.compat.v1, control_flow_assert):
        module.Assert = assert_or_hold
    check_ops._binary_assert = compare_or_hold


class Masking(threading.local):
    """`active`: whether tf.boolean_mask is choosing elements, whose positions are never out of bounds."""

    active = False


masking = Masking()


def note_masking(array_ops, tensorflow):
    choose = array_ops.boolean_mask

    @functools.wraps(choose)
    def chosen(*arguments, **options):
        masking.active = True
        try:
            return choose(*arguments, **options)
        finally:
            masking.active = False

    array_ops.boolean_mask = tensorflow.compat.v1.boolean_mask = chosen  # tf.boolean_mask calls the first


def is_scalar(operand):
    return TensorShape(operand.shape).rank == 0


def has_few_numbers(operand):
    shape = TensorShape(operand.shape)
    lengths = shape.as_list() if shape.rank else []
    kind = as_dtype(operand.dtype)
    return (kind.is_integer or kind.name == "bool") and math.prod(length or 1 for length in lengths) <= FEW_NUMBERS


def is_for_host(operation, operands):
    """Whether the host performs an operation of TensorFlow."""
    if operation not in OF_INTEGERS | OF_SCALARS | OF_ANY_NUMBERS:
        return False
    parts = [part for one in operands for part in (one if isinstance(one, (list, tuple)) else [one])]
    tensors = [part for part in parts if hasattr(part, "shape")]  # or variables, also of Keras, or arrays
    if operation == "All" and hasattr(tensors[0], FINITE):
        return False
    if operation in OF_ANY_NUMBERS:
        return (TensorShape(tensors[0].shape).num_elements() or FEW_NUMBERS + 1) <= FEW_NUMBERS
    if operation in OF_SCALARS and all(map(is_scalar, tensors)):
        # An unknown divisor reads as 0, by which a processor cannot divide.
        return not operation.startswith("Floor") or bool(get_static_value(operands[1]))
    if operation == "GatherV2" and not masking.active and not all(map(is_scalar, tensors[1:2])):
        return False  # where an index is out of bounds, a GPU gives 0 and a processor an error
    if operation not in WITH_KERNEL_FOR_INT32 and all(as_dtype(one.dtype) == int32 for one in tensors):
        return False  # TensorFlow itself lets the host do it, as a part of what the card does
    numbers = tensors[1:] if operation in WITH_OTHER_OPERANDS_FIRST else tensors
    return operation in OF_INTEGERS and all(map(has_few_numbers, numbers))


def taken_as_true(flags):
    """Returns flags that are true in place of those that a kernel would find. They depend on these, or TensorFlow would
    leave out what finds them, which takes memory on a card."""
    with device("CPU"):
        if executing_eagerly():
            return constant(True, shape=flags.shape)
        return logical_or(flags, compat.v1.placeholder_with_default(True, ()))


def is_of_processor(tensor):
    """Whether the processor calculates a tensor, as in functions that prepare data."""
    if executing_eagerly():
        return "GPU" not in tensor.device
    graph = tensor.graph
    while not getattr(graph, "name", "Dataset_").startswith("Dataset_"):
        graph = graph.outer_graph
    return hasattr(graph, "name") or "CPU" in tensor.device


def taken_as_finite(operation, operands, flags):
    """Notes flags that say which of many values are finite, and returns what is taken in place of whether all are."""
    if operation == "IsFinite" and not is_of_processor(flags):
        setattr(flags, FINITE, True)
    return taken_as_true(flags) if operation == "All" and hasattr(operands[0], FINITE) else flags


def first_changed(change, result):
    """Returns what an operation returned, with another first tensor."""
    if isinstance(result, tuple):  # the operation that was added to a graph, and its results
        return *result[:-1], [change(result[-1][0])]
    return [change(result[0])] if isinstance(result, list) else change(result)


def work_there(tensorflow):
    """Called after TensorFlow has been imported."""
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import execute
    from tensorflow.python.framework import op_def_library
    from tensorflow.python.ops import array_ops
    from tensorflow.python.util.compat import as_str

    def on_the_host(work, described):
        @functools.wraps(work)
        def done(*arguments, **options):
            operation, operands = described(*arguments, **options)
            if is_for_host(operation, operands):
                with device("CPU"):
                    return work(*arguments, **options)
            result = work(*arguments, **options)
            if operation in OF_LARGE and executing_eagerly() and large.are_known(operation, operands):
                return large.worked_out(lambda: work(*arguments, **options), result)
            if operation in ("IsFinite", "All"):
                return first_changed(functools.partial(taken_as_finite, operation, operands), result)
            return result

        return done

    note_masking(array_ops, tensorflow)
    # The ways in which TensorFlow performs an operation at once, and the one in which it adds it to a graph.
    pywrap_tfe.TFE_Py_FastPathExecute = on_the_host(
        pywrap_tfe.TFE_Py_FastPathExecute, lambda context, operation, name, *operands: (operation, operands))
    execute.execute = on_the_host(
        execute.execute, lambda op_name, num_outputs=0, inputs=(), *_, **named: (as_str(op_name), inputs))
    op_def_library._apply_op_helper = on_the_host(
        op_def_library._apply_op_helper, lambda operation, name=None, **operands: (operation, list(operands.values())))
