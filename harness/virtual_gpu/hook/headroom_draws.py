"""Draws on the processor what a GPU would draw at random, and positions that depend on values that a virtual GPU
does not compute."""

import functools
import os

import torch
from headroom_known import FOLLOW, MOST_ELEMENTS, Unknown, Used, first_tensor, is_known, on_host, remember

MOST_DRAWN = 1 << 22  # elements of a tensor from which positions are drawn without repetition
MOST_FOUND = 1 << 19  # positions of one element each; quantization looks for the nearest number of each weight
MOST_GENERATED = 1 << 16  # elements of a result of a generator that does not hold integers

# Calls that return positions of elements of their input. Unknown positions are drawn at random, so routers of
# experts spread the tokens as those of an untrained network do.
DRAWN = {"topk", "argmax", "argmin", "max", "min", "sort", "argsort", "randperm"}
FINDS_ONE = {"argmax", "argmin", "max", "min"}  # of these, the calls that find one element in each row
# Calls whose random numbers the host draws in place of a generator of the GPU.
GENERATED = {"rand", "rand_like", "randint", "bernoulli", "multinomial"}
RANDOM = torch.Generator().manual_seed(0)  # the program's own generators are not used
# The share of elements that a mask selects whose values are not known (--mask-share).
MASK_SHARE = float(os.environ.get("HEADROOM_GPU_MASK_SHARE", "0"))
DEVIATION_OF_BOXES = 0.01  # of what torchvision's detectors propose, as of the weights with which they begin
STATE = "_headroom_draws"  # attribute of a state of PyTorch's generator: the state of RANDOM at that time


def is_generated(result):
    most = MOST_GENERATED if result.is_floating_point() else MOST_ELEMENTS
    return type(result) is torch.Tensor and result.is_cuda and result.numel() <= most and not is_inside_transform()


def is_inside_transform():
    """Whether torch.func transforms the function that is running. Under vmap, nothing may be drawn at random unless the
    program allows it."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def generate(name, function, args, kwargs, result):
    """Records what the host draws in place of a generator of the GPU."""
    options = {"generator": RANDOM}
    try:
        if name == "rand_like":
            value = torch.rand(result.shape, dtype=result.dtype, device="cpu", **options)
        else:
            options |= {key: on_host(a, torch) for key, a in kwargs.items() if key != "generator"}
            if first_tensor(args, torch) is None and "input" not in kwargs:
                options["device"] = "cpu"
            value = function(*[on_host(a, torch) for a in args], **options)
        remember(result, value.detach())
    except Unknown:
        if name == "multinomial":
            choose(args, kwargs, result)
    except (RuntimeError, TypeError):
        pass


def choose(args, kwargs, result):
    """Records a choice for multinomial when the probabilities are unknown: all are taken to be equal. Text and
    actions are thus sampled as from an untrained network."""
    Used.drawn = True
    if args and args[0].numel() <= MOST_DRAWN:
        alike = torch.ones(args[0].shape, device="cpu")
        count = {key: kwargs[key] for key in ("num_samples", "replacement") if key in kwargs}
        places = torch.multinomial(alike, *args[1:], **count, generator=RANDOM)
    else:
        places = torch.randint((*args, kwargs.get("input"))[0].shape[-1], result.shape, generator=RANDOM,
                               device="cpu")
    remember(result, places)


def draw(name, function, args, kwargs, result):
    """Records randomly drawn positions as the result of topk, argmax, sort, randperm and the like."""
    positions = result[1] if isinstance(result, tuple) else result  # some return the elements, too
    if type(positions) is not torch.Tensor or not positions.is_cuda or not args or is_inside_transform():
        return
    if name == "randperm":  # as good as the one that the GPU would have drawn
        if positions.numel() <= MOST_ELEMENTS:
            remember(positions, torch.randperm(len(positions), generator=RANDOM, device="cpu"))
        return
    if name in ("max", "min") and positions is result:
        return
    if name in FINDS_ONE and positions.numel() > MOST_FOUND:
        return
    Used.drawn = True
    if name not in FINDS_ONE and args[0].numel() <= MOST_DRAWN:
        scores = torch.rand(args[0].shape, generator=RANDOM, device="cpu")
        found = function(scores, *args[1:], **kwargs)
        remember(positions, found[1] if isinstance(found, tuple) else found)
    elif name in ("topk", *FINDS_ONE) and positions.numel() <= MOST_ELEMENTS:
        dim = kwargs.get("dim", (*args, -1, -1)[2] if name == "topk" else (*args, None)[1])
        count = args[0].numel() if dim is None else args[0].shape[dim]
        places = torch.randint(count, positions.shape, generator=RANDOM, device="cpu")
        remember(positions, places)


def draw_mask(mask):
    """Records which elements a mask selects if that is not known and the user has named the share of them."""
    if not MASK_SHARE or type(mask) is not torch.Tensor or not mask.is_cuda or mask.dtype != torch.bool:
        return
    if 1 < mask.numel() <= MOST_ELEMENTS and not is_known(mask) and not is_inside_transform():
        Used.drawn = True
        selected = torch.empty(mask.shape, dtype=torch.bool, device="cpu")
        remember(mask, selected.bernoulli_(MASK_SHARE, generator=RANDOM))


def repeat_with_random_numbers(torch):
    """Draws the same again where a program sets its generator back to repeat something, as checkpointing does."""
    get_state, set_state = torch.get_rng_state, torch.set_rng_state

    @functools.wraps(get_state)
    def get_both():
        state = get_state()
        setattr(state, STATE, RANDOM.get_state())
        return state

    @functools.wraps(set_state)
    def set_both(state):
        set_state(state)
        if hasattr(state, STATE):
            RANDOM.set_state(getattr(state, STATE))

    for module in (torch, torch.random):
        module.get_rng_state, module.set_rng_state = get_both, set_both


def repeatable(function):
    """Returns a function that draws, whenever it is called, what `function` would draw now."""
    state = RANDOM.get_state()

    def repeat(*args, **kwargs):
        before = RANDOM.get_state()
        RANDOM.set_state(state)
        try:
            return function(*args, **kwargs)
        finally:
            RANDOM.set_state(before)

    return repeat


def repeat_in_checkpoints(checkpoints):
    """Draws the same again where checkpointing repeats a part of the forward pass, also if the program does not ask for
    the same random numbers."""
    name = "_checkpoint_without_reentrant_generator"
    name += "_impl" * hasattr(checkpoints, name + "_impl")
    generator, forward = getattr(checkpoints, name), checkpoints.CheckpointFunction.forward

    @functools.wraps(generator)
    def generate(function, *args, **kwargs):
        return generator(repeatable(function), *args, **kwargs)

    @functools.wraps(forward)
    def keep(context, function, *args):
        again = repeatable(function)
        result = forward(context, function, *args)
        context.run_function = again
        return result

    setattr(checkpoints, name, generate)
    checkpoints.CheckpointFunction.forward = staticmethod(keep)


def draw_proposals(rpn):
    """Called once torchvision.models.detection.rpn has been imported. Which boxes the first stage of a detector proposes
    decides how many the second one sees: it proposes as an untrained network does."""
    if not FOLLOW:
        return
    forward = rpn.RPNHead.forward
    random = torch.Generator().manual_seed(0)  # leaves the program's own random numbers as they are

    @functools.wraps(forward)
    def forward_and_draw(*arguments):
        results = forward(*arguments)
        with torch._C.DisableTorchFunction():  # calls of tensors here are not the program's own
            for result in (tensor for tensors in results for tensor in tensors):
                if result.is_cuda and result.numel() <= MOST_ELEMENTS:
                    drawn = torch.randn(result.shape, generator=random, device="cpu") * DEVIATION_OF_BOXES
                    Used.drawn = True
                    remember(result, drawn.to(result.dtype))
        return results

    rpn.RPNHead.forward = forward_and_draw
