"""What the hooks of all frameworks record of a process, and what only those of Keras, TensorFlow and JAX record."""

import contextlib
import gc
import json
import os
import re
import threading
import time
import traceback

import headroom_end
import headroom_lines
import headroom_memory
import headroom_xla

RECORDS = os.environ.get("HEADROOM_GPU_RECORDS", "")
CAPTURE = "HEADROOM_GPU_CAPTURE" in os.environ  # on a real GPU
UNTIL_STEP = int(os.environ.get("HEADROOM_GPU_UNTIL_STEP", "0"))
ELEMENT_BYTES = {"bool": 1, "int8": 1, "uint8": 1, "half": 2, "bfloat16": 2, "float": 4, "int32": 4,
                 "double": 8, "int64": 8, "complex64": 8, "complex128": 16}


class StepLimit(SystemExit):
    """Ends the program after the requested number of steps."""

    def __str__(self):
        return f"Headroom stops the program here, after {UNTIL_STEP} training steps (--until-step)"


def live_objects(*classes):
    """Yields the objects of the process that belong to one of these classes, also those that the program has hidden
    from Python's garbage collector, as unsloth does with all that it made before the training. What the import of the
    first framework made is left out.

    There are hundreds of thousands of objects. No function is called for most of them, since each call would be
    recorded where PyTorch's profiler records the memory of the CPU; and isinstance() would run code of the objects."""
    if gc.freeze.called:
        gc.unfreeze()
    sought = {type(None): False}
    for thing in gc.get_objects():
        kind = type(thing)
        try:
            if kind not in sought:
                sought[kind] = issubclass(kind, classes)
            if sought[kind]:
                yield thing
        except TypeError:  # a class that cannot be hashed
            pass


class Framework:
    """A framework that may hold memory of the virtual GPU. `peaks()` returns, for each device in use,
    {"device", "peak_allocated", None if the framework does not count it, and "peak_reserved" if the framework reports
    it} in bytes. `arrays(device)` returns {role: bytes} of the arrays that the framework knows. `finish()` waits for
    unfinished work and raises its error."""

    def __init__(self, name, peaks, differences, arrays, finish):
        self.name, self.peaks, self.differences = name, peaks, differences
        self.arrays, self.finish = arrays, finish
        self.phase_peaks = {}  # device -> {phase: bytes}
        self.started, self.peaks_at_start = 0, {}  # time of the call that may be the first step; device -> bytes

    def note_phase(self, phase):
        for use in self.peaks():
            peaks = self.phase_peaks.setdefault(use["device"], {})
            peaks.setdefault(phase, use["peak_allocated"])

    def note_start(self):
        self.started = time.time()
        self.peaks_at_start = {use["device"]: use["peak_allocated"] for use in self.peaks()}

    def describe(self):
        self.note_phase("whole program")
        return [
            {"phase": "", "roles": [], "lines": [], **use, **self.holders(use),
             "phase_peaks": self.phase_peaks[use["device"]]}
            for use in self.peaks() if use["peak_allocated"] or use.get("peak_reserved")
        ]

    def holders(self, use):
        """Returns what held the memory at the peak, from XLA's files or else from the known arrays."""
        was_before = notes.steps > 0 and use["peak_allocated"] == self.peaks_at_start.get(use["device"])
        is_jaxs = self.name.startswith("JAX ")
        try:
            known = self.arrays(use["device"])
            if found := headroom_xla.describe(use, is_jaxs, known, notes.ended_out_of_memory,
                                              self.started * was_before):
                return found
        except Exception as error:  # XLA may change the format of its files
            self.differences.append(f"XLA's files about its memory could not be read: {error!r}")
            return {}
        rest = use["peak_allocated"] - sum(known.values())
        if not known or rest < 0:
            return {}
        known["activations, gradients and temporaries"] = rest
        return {"phase": "the whole program", "roles": headroom_memory.in_order(known)}


class Record:
    """What every hook records of a process."""

    def __init__(self):
        self.steps = 0
        self.stopped_at_step = False
        self.error = ""
        self.ended_out_of_memory = False
        self.error_was_lost = False  # nothing of the program got the error, so its exit status says nothing of it
        self.out_of_memory = []
        self.written = False  # a process may end in several ways at once

    def note_error(self, text, is_out_of_memory, is_lost):
        """Notes an error that ends the program, or, with `is_lost`, one that ended a part of it unseen. Of those, only
        one about memory counts, and nothing that follows from it replaces it. Returns whether the error was noted."""
        if self.error_was_lost or is_lost and not is_out_of_memory:
            return False
        self.error, self.ended_out_of_memory, self.error_was_lost = text, is_out_of_memory, is_lost
        return True

    def take_back_error(self):
        """Called when the program gets an error that seemed lost."""
        self.error, self.ended_out_of_memory, self.error_was_lost = "", False, False

    def count_steps(self, steps):
        self.steps += steps
        if UNTIL_STEP and self.steps >= UNTIL_STEP:
            self.stopped_at_step = True
            with contextlib.suppress(RuntimeError):  # Python is ending already
                threading._register_atexit(headroom_end.wait_for_threads)
            if threading.current_thread() is not threading.main_thread():
                for write in headroom_end.writers:  # at once: what started the thread may kill the process, as Ray does
                    write()
            raise StepLimit(0)

    def write(self, framework, devices, snapshot, differences, more=None):
        """Writes the file of one framework, "NAME VERSION"."""
        figures = {
            "framework": framework,
            "pid": os.getpid(),
            "steps": self.steps,
            "stopped_at_step": self.stopped_at_step,
            "error": self.error,
            "ended_out_of_memory": self.ended_out_of_memory,
            "error_was_lost": self.error_was_lost,
            "out_of_memory": self.out_of_memory,
            "devices": devices,
            "snapshot": snapshot,
            "differences": differences,
            **(more or {}),
        }
        kind = framework.partition(" ")[0].lower()
        path = os.path.join(RECORDS, f"{kind}-{os.getpid()}.json")
        with open(path + ".unfinished", "w") as out:
            json.dump(figures, out)
        os.replace(path + ".unfinished", path)


class Notes(Record):
    def __init__(self):
        super().__init__()
        self.frameworks = []


notes = Notes()


def note_phase(phase):
    """Records the allocated peak so far under the name of a phase that ends now."""
    for framework in notes.frameworks:
        framework.note_phase(phase)


def note_start():
    """Called before a call that may be the first step."""
    for framework in notes.frameworks:
        framework.note_start()


def count_steps(steps):
    """Called after `steps` more training steps."""
    if notes.steps == 0:
        note_phase("first step")
    notes.count_steps(steps)


def requested_bytes(message):
    """Returns the bytes of the failed request that a framework's message names, 0 if it names none."""
    if found := re.search(r"allocat\w+ (\d+) bytes", message):
        return int(found[1])
    if found := re.search(r"tensor with shape\[([\d,]*)\] and type (\w+)", message):
        size = ELEMENT_BYTES.get(found[2], 0)
        for length in filter(None, found[1].split(",")):
            size *= int(length)
        return size
    return 0


def users_line(trace):
    """Returns the innermost line of the user's program, or else of a library, "" if there is none."""
    return line_among(traceback.extract_tb(trace))


def line_among(frames):
    """Returns the line that is told of `frames`, the outermost first."""
    innermost_first = frames[::-1]
    at = headroom_lines.most_telling([frame.filename for frame in innermost_first])
    return "" if at is None else headroom_lines.place_of(innermost_first[at].filename, innermost_first[at].lineno)


def note_error(error, is_lost=False):
    kind, message = type(error).__name__, str(error)
    lines = message.splitlines() or [""]
    is_about_memory = re.compile("OOM when|[Oo]ut of memory|allocate memory")
    telling = next(filter(is_about_memory.search, lines), "\n".join(lines[:3]))
    is_out_of_memory = kind == "ResourceExhaustedError" or "RESOURCE_EXHAUSTED" in message
    noted = notes.note_error(f"{kind}: {telling.strip()}", is_out_of_memory, is_lost)
    if noted and is_out_of_memory:
        event = {"device": 0, "requested": requested_bytes(message), "line": users_line(error.__traceback__)}
        notes.out_of_memory.append(event)
    return noted


def take_back_error():
    notes.take_back_error()


def write():
    """Writes the records of each framework that used a device."""
    if notes.written:
        return
    notes.written = True
    for framework in notes.frameworks:
        try:
            framework.finish()
        except Exception as error:
            if not notes.error:
                note_error(error, is_lost=True) or note_error(error)
        devices = framework.describe()
        counts = all(use["peak_allocated"] is not None for use in framework.peaks())
        if counts and not devices and not notes.ended_out_of_memory:
            continue
        notes.write(framework.name, devices, "", [] if CAPTURE else framework.differences)
    headroom_xla.clear()


def forget():
    global notes
    notes = Notes()


def add(name, peaks, differences, arrays=lambda device: {}, finish=lambda: None):
    """Records a framework's peaks; called after it has been imported."""
    if not notes.frameworks:
        headroom_end.watch_process(note_error, take_back_error, forget, write)
    notes.frameworks.append(Framework(name, peaks, differences, arrays, finish))
