"""Follows the training of a PyTorch program: counts its steps, and records which tensors are weights, buffers,
gradients and optimizer state."""

import array
import functools
import itertools
import os
import time
import weakref

import headroom_modules
import headroom_notes
import headroom_served

BY_MODULE = os.environ.get("HEADROOM_GPU_MODULES", "on") != "off" and not headroom_served.ONLY_FIGURES
MARKED_STEPS = 8  # roles are recorded in these steps; later steps repeat them unless the peak rises
MOST_SEARCHES = 20  # limit on searches for all live modules


class Notes(headroom_notes.Record):
    def __init__(self):
        super().__init__()
        self.stepping = []  # ids of the optimizers that are in a step, the outermost first
        self.peaks = {}  # id of an optimizer → the allocated peak when its tensors were last marked
        self.stepped_in_backward = False  # whether an optimizer stepped in the current backward pass
        self.stepped = set()  # ids of the optimizers that have stepped since the latest backward pass
        self.stepped_in_capture = False  # whether an optimizer stepped in the CUDA graph that is being captured
        self.backward_passes = 0  # those after which roles were recorded, because there was no step
        self.step_times = array.array("q")  # end of each optimizer step, in µs
        self.marks = []  # (time in µs, address, bytes, role, module)
        self.device_type = "cuda"  # of the memory that is recorded
        self.cpu = None  # history of the machine's own memory, where that is recorded
        self.active = False


notes = Notes()
modules = headroom_modules.Modules()


def now_us():
    return time.time_ns() // 1000


def places_of(tensor):
    """Returns the addresses and sizes in bytes of a tensor's data on the recorded device. Buffers of DeepSpeed, FSDP
    and DistributedDataParallel hold the data of many tensors."""
    import torch

    if hasattr(tensor, "__tensor_flatten__"):  # such as a DTensor, which holds its shard, and its mesh
        parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        return [place for part in parts if isinstance(part, torch.Tensor) for place in places_of(part)]
    if tensor.device.type != notes.device_type:
        return []
    if tensor.layout == torch.sparse_coo:
        return [*places_of(tensor._indices()), *places_of(tensor._values())]
    if tensor.is_contiguous():
        return [(tensor.data_ptr(), tensor.nbytes)]
    storage = tensor.untyped_storage()
    return [(storage.data_ptr(), storage.nbytes())]


def mark(tensors, role, owners=()):
    """Records that the memory of `tensors` now serves `role`. `owners` are their parameters."""
    at = now_us()
    for tensor, owner in itertools.zip_longest(tensors, owners):
        if tensor is None:
            continue
        module = modules.owner_of(owner) if BY_MODULE and owner is not None else ""
        try:
            notes.marks += [(at, *place, role, module) for place in places_of(tensor)]
        except (RuntimeError, ValueError):  # without data, such as a FakeTensor or a lazy parameter
            continue


def tensors_in(state, in_object=False):
    """Returns the tensors of an optimizer's state for a parameter, which may hold lists of them, as in LBFGS, and
    objects that hold them, as the projections of GaLore do. A parameter in such an object is not state."""
    import torch

    if isinstance(state, torch.Tensor):
        return [] if in_object and isinstance(state, torch.nn.Parameter) else [state]
    if isinstance(state, dict):
        values = list(state.values())
    elif isinstance(state, (list, tuple)):
        values = state
    elif in_object:
        return []
    else:
        values, in_object = list(getattr(state, "__dict__", {}).values()), True
    return [tensor for value in values for tensor in tensors_in(value, in_object)]


def mark_state(optimizer):
    import torch

    of_all = isinstance(optimizer, torch.optim.LBFGS)  # keeps the state of all parameters as that of the first
    for parameter, state in getattr(optimizer, "state", {}).items():  # none if its constructor failed
        tensors = tensors_in(state)
        mark(tensors, "optimizer state", [None if of_all else parameter] * len(tensors))


def parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def peak_so_far():
    """Returns the allocated peak of the device on which it is highest."""
    import torch

    devices = range(torch.cuda.device_count() if notes.device_type == "cuda" else 0)
    return max((torch.cuda.max_memory_allocated(device) for device in devices), default=0)


def mark_tensors_of(optimizer, parameters_of=parameters_of, mark_state=mark_state):
    """Records the roles of an optimizer's tensors, unless they were recorded at the same peak before."""
    if headroom_served.ONLY_FIGURES:
        return
    peak = peak_so_far()
    known = notes.peaks.get(id(optimizer), -1)
    if known < 0 and len(notes.peaks) < MOST_SEARCHES:
        mark_what_lives()  # includes weights that no optimizer changes, such as frozen ones and averages
    if notes.steps < MARKED_STEPS or peak > known:
        notes.peaks[id(optimizer)] = peak
        parameters = parameters_of(optimizer)
        mark(parameters, "weights", parameters)
        mark([p.grad for p in parameters], "gradients", parameters)
        mark_state(optimizer)


def update_of_keras(optimizer, variables, update):
    """Calls `update`, which changes Keras's `variables`. It counts as a step, although Keras uses no optimizer of
    PyTorch."""

    def mark_tensors():
        mark_tensors_of(optimizer, lambda _: [variable.value for variable in variables],
                        lambda _: mark([variable.value for variable in optimizer.variables], "optimizer state"))

    mark_tensors()
    result = update()
    mark_tensors()
    end_step()
    return result


def before_step(optimizer, *_):
    enter_step(optimizer)
    mark_tensors_of(optimizer)


def after_step(optimizer, *_):
    mark_tensors_of(optimizer)
    leave_step(optimizer)


def enter_step(optimizer):
    # If this optimizer is still listed, an exception ended its last step.
    if id(optimizer) in notes.stepping:
        del notes.stepping[notes.stepping.index(id(optimizer)) :]
    notes.stepping.append(id(optimizer))


def leave_uncounted(optimizer):
    del notes.stepping[notes.stepping.index(id(optimizer)) :]


def leave_step(optimizer):
    """Counts a step, unless another optimizer has stepped after the same backward pass: one may train the matrices of
    a model, and another the rest."""
    leave_uncounted(optimizer)
    if notes.stepping:  # an inner step, such as that of ZeroRedundancyOptimizer
        return
    if is_capturing():
        notes.stepped_in_capture = True  # counted when the graph is replayed
    elif in_backward():  # one of many, each of which changes the weights whose gradient has just been computed
        notes.stepped_in_backward = True
    else:
        if not notes.stepped or id(optimizer) in notes.stepped:
            notes.stepped = set()
            end_step()
        notes.stepped.add(id(optimizer))


def around(step, before, after):
    """Returns `step`, a method of an optimizer that is none of PyTorch's, with calls before and after it."""

    @functools.wraps(step)
    def step_between(optimizer, *arguments, **options):
        before(optimizer)
        result = step(optimizer, *arguments, **options)
        after(optimizer)
        return result

    return step_between


def count_steps_of_fastai(optimizers):
    """Called once fastai.optimizer has been imported."""
    optimizers.Optimizer.step = around(optimizers.Optimizer.step, before_step, after_step)


def count_steps_of_deepspeed(module):
    """Called once a module of DeepSpeed's ZeRO has been imported. Its optimizer calls one of PyTorch's for each group of
    parameters, and at the beginning only to make its state."""
    stage_3 = module.__name__.endswith("stage3")
    kind = module.DeepSpeedZeroOptimizer_Stage3 if stage_3 else module.DeepSpeedZeroOptimizer
    kind.step = around(kind.step, enter_step, leave_step)
    kind.initialize_optimizer_states = around(kind.initialize_optimizer_states, enter_step, leave_uncounted)


def is_capturing():
    import torch

    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def count_replays(torch):
    """Counts a step at each replay of a CUDA graph that has captured one."""
    end, replay = torch.cuda.CUDAGraph.capture_end, torch.cuda.CUDAGraph.replay
    with_step = weakref.WeakSet()

    @functools.wraps(end)
    def capture_end(graph, *arguments):
        end(graph, *arguments)
        if notes.stepped_in_capture:
            notes.stepped_in_capture = False
            with_step.add(graph)

    @functools.wraps(replay)
    def replay_and_count(graph):
        replay(graph)
        if graph in with_step:
            end_step()

    torch.cuda.CUDAGraph.capture_end, torch.cuda.CUDAGraph.replay = capture_end, replay_and_count


def in_backward():
    import torch

    return torch._C._current_graph_task_id() != -1


def end_step():
    headroom_served.end_step()
    notes.step_times.append(now_us())
    notes.count_steps(1)


def mark_what_lives():
    """Records the roles of what belongs to a module or an optimizer, wherever the program keeps it."""
    import torch

    for thing in headroom_notes.live_objects(torch.nn.Module, torch.optim.Optimizer):
        if issubclass(type(thing), torch.nn.Module):
            parameters = [p for p in thing.__dict__.get("_parameters", {}).values() if p is not None]
            mark(parameters, "weights", parameters)
            # The part of a parameter that DeepSpeed's ZeRO-3 leaves to this rank.
            mark([getattr(p, "ds_tensor", None) for p in parameters], "weights", parameters)
            for name in ("grad", "main_grad"):  # the latter is Megatron's
                mark([getattr(p, name, None) for p in parameters], "gradients", parameters)
            buffers = [buffer for buffer in thing.__dict__.get("_buffers", {}).values() if buffer is not None]
            mark(buffers, "buffers", buffers)
        else:
            mark_state(thing)


def after_backward():
    """Counts the steps of a backward pass as one. Records the roles of gradients if the program changes the weights
    itself, without an optimizer."""
    if not in_backward():
        notes.stepped.clear()
        if notes.stepped_in_backward:
            notes.stepped_in_backward = False
            end_step()
    is_marked = notes.peaks or headroom_served.ONLY_FIGURES
    if notes.active and not is_marked and notes.backward_passes < MARKED_STEPS:
        notes.backward_passes += 1
        mark_what_lives()


def watch_backward(torch):
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def backward_and_mark(*arguments, **options):
        result = backward(*arguments, **options)
        after_backward()
        return result

    torch.autograd.backward = backward_and_mark


def forget():
    global notes
    notes = Notes()


def follow(torch):
    """Called after PyTorch has been imported."""
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    global modules
    register_optimizer_step_pre_hook(before_step)
    register_optimizer_step_post_hook(after_step)
    count_replays(torch)
    watch_backward(torch)
    if BY_MODULE:
        modules = headroom_modules.watch()
