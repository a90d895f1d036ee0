"""Records PyTorch's allocations of the machine's own memory where there is no GPU: PyTorch's profiler reports every
allocation and the Python calls around it."""

import functools
import os
import sys


@functools.lru_cache(maxsize=None)
def full_path(name):
    """Returns the whole path of a source file. The profiler leaves out its beginning."""
    if not name.startswith("<"):
        for folder in sys.path:
            path = os.path.abspath(os.path.join(folder, name))
            if os.path.exists(path):
                return path
    return name


def frames_of(event, kinds):
    """Returns the Python frames around an event, innermost first. A frame's line is the one with the call
    that was running. An operator such as `a * b` is not a call; the line is then the first of the function."""
    frames, line = [], 0
    while (event := event.parent) is not None:
        if event.tag == kinds.PyCall:
            code = event.extra_fields.callsite
            first = 1 if code.function_name == "<module>" else code.line_number
            frames.append(
                {"filename": full_path(code.file_name), "line": line or first, "name": code.function_name}
            )
        if event.tag in (kinds.PyCall, kinds.PyCCall):
            line = event.extra_fields.caller.line_number
    return frames


class History:
    """PyTorch's allocations of the machine's own memory from now on."""

    def __init__(self, torch):
        self.profile = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, with_stack=True
        )
        self.profile.start()

    def stop(self):
        """Returns the events in the form of torch.cuda.memory._snapshot()["device_traces"][0]."""
        from torch._C._profiler import _EventType as kinds

        self.profile.stop()
        found, waiting = [], self.profile.profiler.kineto_results.experimental_event_tree()
        while waiting:
            event = waiting.pop()
            waiting.extend(event.children)
            if event.tag == kinds.Allocation and event.extra_fields.device.type == "cpu":
                found.append(event)
        found.sort(key=lambda event: event.start_time_ns)
        return [
            {
                "action": "alloc" if event.extra_fields.alloc_size > 0 else "free_completed",
                "addr": event.extra_fields.ptr or 0,
                "size": abs(event.extra_fields.alloc_size),
                "stream": 0,
                "time_us": event.start_time_ns // 1000,
                "frames": frames_of(event, kinds),
            }
            for event in found
        ]
