"""Makes TensorFlow's assertions hold where they are about values that a virtual GPU does not compute. Assertions about
shapes and other integers that TensorFlow keeps on the host are still checked."""

import functools

from headroom_known import Lines
from tensorflow import Tensor, control_dependencies, errors, executing_eagerly, int32, no_op, string

held = Lines("assertions about values that a virtual GPU does not compute, taken to hold")


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
        held.note()
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
            held.note()
            return None

    for module in (tensorflow, tensorflow.debugging, tensorflow.compat.v1, control_flow_assert):
        module.Assert = assert_or_hold
    check_ops._binary_assert = compare_or_hold
