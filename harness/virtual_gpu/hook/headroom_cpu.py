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
            try:
                file, name = code.file_name, code.function_name
            except UnicodeDecodeError:  # PyTorch 2.6 has lost the names of a function that was generated and freed
                continue
            first = 1 if name == "<module>" else code.line_number
            frames.append({"filename": full_path(file), "line": line or first, "name": name})
        if event.tag in (kinds.PyCall, kinds.PyCCall):
            line = event.extra_fields.caller.line_number
    return frames


class History:
    """PyTorch's allocations of the machine's own memory from now on."""

    def __init__(self, torch):
        # torch.profiler.profile would import PyTorch's compiler.
        self.profile = torch.autograd.profiler.profile(profile_memory=True, with_stack=True, use_kineto=True)
        self.profile.__enter__()

    def stop(self):
        """Returns the events in the form of torch.cuda.memory._snapshot()["device_traces"][0]."""
        from torch._C._profiler import _EventType as kinds

        self.profile.__exit__(None, None, None)
        found, waiting = [], self.profile.kineto_results.experimental_event_tree()
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
