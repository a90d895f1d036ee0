"""What the hooks of Keras, TensorFlow and JAX note of a process, and the files they leave."""

import atexit
import json
import os
import re
import sys
import traceback

import headroom_memory
import headroom_xla

RECORDS = os.environ.get("HEADROOM_GPU_RECORDS", "")
CAPTURE = "HEADROOM_GPU_CAPTURE" in os.environ  # on a real GPU
UNTIL_STEP = int(os.environ.get("HEADROOM_GPU_UNTIL_STEP", "0"))
ELEMENT_BYTES = {"bool": 1, "int8": 1, "uint8": 1, "half": 2, "bfloat16": 2, "float": 4, "int32": 4,
                 "double": 8, "int64": 8, "complex64": 8, "complex128": 16}


class StepLimit(SystemExit):
    """Ends the program after as many steps as were asked for."""


class Framework:
    """A framework that may hold memory of the virtual GPU. `peaks` answers, for each device that is in
    use, {"device", "peak_allocated", and "peak_reserved" where the framework tells it} in bytes.
    `arrays` answers for a device number which bytes serve which role, where the framework tells it.
    `finish` waits for work that the program left undone and raises the error that it ended with."""

    def __init__(self, name, peaks, differences, arrays, finish):
        self.name, self.peaks, self.differences = name, peaks, differences
        self.arrays, self.finish = arrays, finish
        self.phase_peaks = {}  # device -> {phase: bytes}

    def note_phase(self, phase):
        for use in self.peaks():
            peaks = self.phase_peaks.setdefault(use["device"], {})
            peaks.setdefault(phase, use["peak_allocated"])

    def describe(self):
        self.note_phase("whole program")
        return [
            {"phase": "", "roles": [], "lines": [], **use, **self.holders(use),
             "phase_peaks": self.phase_peaks[use["device"]]}
            for use in self.peaks()
        ]

    def holders(self, use):
        """Who held the memory at the peak: from XLA's files or, without them, what is known of arrays."""
        try:
            known = self.arrays(use["device"])
            if found := headroom_xla.describe(use, known, notes.ended_out_of_memory):
                return found
        except Exception as error:  # the files' form is XLA's own and may change
            self.differences.append(f"what XLA wrote about its memory could not be read: {error!r}")
            return {}
        rest = use["peak_allocated"] - sum(known.values())
        if not known or rest < 0:
            return {}
        known["activations, gradients and temporaries"] = rest
        return {"phase": "the whole program", "roles": headroom_memory.in_order(known)}


class Notes:
    def __init__(self):
        self.frameworks = []
        self.steps = 0
        self.stopped_at_step = False
        self.error = ""
        self.ended_out_of_memory = False
        self.out_of_memory = []


notes = Notes()


def note_phase(phase):
    """Notes the bytes allocated at the peak so far under the name of a phase that ends now."""
    for framework in notes.frameworks:
        framework.note_phase(phase)


def count_steps(steps):
    """After `steps` more training steps."""
    if notes.steps == 0:
        note_phase("first step")
    notes.steps += steps
    if UNTIL_STEP and notes.steps >= UNTIL_STEP:
        notes.stopped_at_step = True
        raise StepLimit(0)


def requested_bytes(message):
    """Bytes of the request that a framework's message says had no room; 0 = it does not say."""
    if found := re.search(r"allocat\w+ (\d+) bytes", message):
        return int(found[1])
    if found := re.search(r"tensor with shape\[([\d,]*)\] and type (\w+)", message):
        size = ELEMENT_BYTES.get(found[2], 0)
        for length in filter(None, found[1].split(",")):
            size *= int(length)
        return size
    return 0


def note_error(kind, value, trace):
    lines = str(value).splitlines() or [""]
    is_about_memory = re.compile("OOM when|[Oo]ut of memory|allocate memory")
    telling = next((line for line in lines if is_about_memory.search(line)), lines[0])
    notes.error = f"{kind.__name__}: {telling.strip()}"
    notes.ended_out_of_memory = (
        kind.__name__ == "ResourceExhaustedError" or "RESOURCE_EXHAUSTED" in str(value)
    )
    if notes.ended_out_of_memory:
        frames = reversed(traceback.extract_tb(trace))
        users = (f for f in frames if headroom_memory.is_users(f.filename))
        line = next((f"{f.filename}:{f.lineno}" for f in users), "")
        event = {"device": 0, "requested": requested_bytes(str(value)), "line": line}
        notes.out_of_memory.append(event)


def write():
    """Leaves what was noted, for each framework that used a device."""
    for framework in notes.frameworks:
        try:
            framework.finish()
        except Exception as error:
            if not notes.error:
                note_error(type(error), error, error.__traceback__)
        devices = framework.describe()
        if not devices and not notes.ended_out_of_memory:
            continue
        figures = {
            "framework": framework.name,
            "pid": os.getpid(),
            "steps": notes.steps,
            "stopped_at_step": notes.stopped_at_step,
            "error": notes.error,
            "ended_out_of_memory": notes.ended_out_of_memory,
            "out_of_memory": notes.out_of_memory,
            "devices": devices,
            "snapshot": "",
            "differences": [] if CAPTURE else framework.differences,
        }
        kind = framework.name.partition(" ")[0].lower()
        path = os.path.join(RECORDS, f"{kind}-{os.getpid()}.json")
        with open(path + ".unfinished", "w") as out:
            json.dump(figures, out)
        os.replace(path + ".unfinished", path)
    headroom_xla.clear()


def forget():
    """A forked worker is not the program: its parent tells of both."""
    global notes
    notes = Notes()


def add(name, peaks, differences, arrays=lambda device: {}, finish=lambda: None):
    """Has a framework's peaks noted; called once it has been imported."""
    if not notes.frameworks:
        shown = sys.excepthook

        def excepthook(kind, value, trace):
            note_error(kind, value, trace)
            shown(kind, value, trace)

        sys.excepthook = excepthook
        os.register_at_fork(after_in_child=forget)
        atexit.register(write)
    notes.frameworks.append(Framework(name, peaks, differences, arrays, finish))
