"""Prints for each program what PyTorch's MemTracker finds under fake tensors, as a line `bytes N` or `none REASON`.

Each argument is a JSON list: a script of ../programs and its arguments."""

import importlib
import json
import sys
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.optim.optimizer import register_optimizer_step_post_hook

sys.path.append(str(Path(__file__).resolve().parents[1] / "programs"))


def peak_of(script, *arguments):
    program = importlib.import_module(Path(script).stem)
    make_model, tracker = program.make_model, MemTracker()

    def make_on_device(options):  # fake tensors cannot be moved there in place
        with torch.device("cuda"):
            return make_model(options)

    program.make_model = make_on_device
    # MemTracker follows one call of a model only, unless it is told to forget the calls before.
    forgetting = register_optimizer_step_post_hook(lambda *_: tracker.reset_mod_stats())
    try:
        options = program.parse(arguments)
        options.no_mask = True  # a fake mask has no values, so the program could not ask whether it masks anything
        with FakeTensorMode(), tracker:
            program.train(options)
    finally:
        program.make_model = make_model
        forgetting.remove()
    peaks = tracker.get_tracker_snapshot("peak")
    return next(peak["Total"] for device, peak in peaks.items() if device.type == "cuda")


def main():
    torch.nn.Module.cuda = torch.nn.Module.to = lambda model, *_, **__: model
    for row in sys.argv[1:]:
        try:
            print("bytes", peak_of(*json.loads(row)), flush=True)
        except Exception as error:
            print("none", repr(error).replace("\n", " ")[:200], flush=True)


if __name__ == "__main__":
    main()
