"""Two-stage object detection of torchvision: which boxes its first stage proposes decides how many the second
one sees. Here it proposes as an untrained network does, since kernels of a virtual GPU compute nothing."""

import functools

from headroom_known import FOLLOW, MOST_ELEMENTS, Used, remember

STANDARD_DEVIATION = 0.01  # that of the weights with which torchvision begins


def draw_proposals(rpn):
    """Called once torchvision.models.detection.rpn has been imported."""
    import torch

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
                    drawn = torch.randn(result.shape, generator=random, device="cpu") * STANDARD_DEVIATION
                    Used.drawn = True
                    remember(result, drawn.to(result.dtype))
        return results

    rpn.RPNHead.forward = forward_and_draw
