"""Tells programs of this folder about the virtual card that they run on, and reports for them."""

import argparse
import ctypes
import json
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "scenarios" / "programs"))

import meter  # noqa: E402

WARMUP = 6  # steps whose growth is no leak


def options(lacks=None, **defaults):
    """The values of --key value pairs, each with the type of its default. An unknown key is an error; for one
    that the framework `lacks`, the scenario is told why."""
    for name, why in (lacks or {}).items():
        if f"--{name}" in sys.argv:
            refuse(f"{name}: {why}")
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return vars(parser.parse_args())


def refuse(why):
    """Ends the program: what was asked for is not there, and is not imitated."""
    print(json.dumps({"not_supported": why}))
    sys.exit(0)


def one_of(setting, value, known):
    """`value`, where it is known."""
    if value not in known:
        refuse(f"{setting}: {value} is none of {', '.join(known)}")
    return value


def check_only_for(given, defaults, networks):
    """Refuses a setting other than its default, where networks[setting] does not have the network."""
    for setting, known in networks.items():
        if given[setting] != defaults[setting] and given["network"] not in known:
            refuse(f"{setting} is for {', '.join(known)}, not for {given['network']}")


def forget_settings(*prefixes, keep=()):
    """Takes the user's own settings of the framework out of the environment."""
    for name in list(os.environ):
        if name.startswith(prefixes) and name not in keep:
            del os.environ[name]


def held(devices=1):
    """Bytes that the card has given to this process, by the ledger of the stand-ins; of several cards,
    those of the one that gave most."""
    ask = ctypes.CDLL(None).headroom_gpu_used_bytes
    ask.restype = ctypes.c_uint64
    return max(ask(device) for device in range(devices))


def read(figures, moment, allocated, devices=1):
    """Adds what the framework's allocator says it has in use at a moment, and what the card gave."""
    figures[f"allocated_bytes.{moment}"] = allocated
    figures[f"reserved_bytes.{moment}"] = held(devices)


def trained(train, peaks, why_out_of_memory):
    """The figures of train(figures) and of peaks() after it, and a note. why_out_of_memory(error) returns ""
    for an error that was no lack of memory; that error ends the program."""
    figures = {}
    try:
        train(figures)
        return {"trained": 1.0, **figures, **peaks()}, ""
    except Exception as error:
        why = why_out_of_memory(error)
        if not why:
            raise
        return {**figures, "trained": 0.0}, f"It ran out of memory: {why}."


class Growth:
    """What a program that keeps something of every step takes more from step to step."""

    def __init__(self, in_use):
        self.in_use, self.readings = in_use, []

    def read(self):
        self.readings.append((self.in_use(), meter.resident()))

    def report(self, engine):
        """Whether resident memory shows at least half of what the card shows is the figure `holds`."""
        on_card, resident = zip(*self.readings[WARMUP:])
        # Over two steps, because TensorFlow frees what every second step took in the next one.
        growth = statistics.median((after - before) / 2 for before, after in zip(on_card, on_card[2:]))
        seen = meter.slope(resident)
        report(engine, {"growth_bytes_per_step": growth, "holds": float(seen >= max(growth, 1) / 2)},
               f"Resident memory grew by {seen:.0f} B a step.")


class Node:
    """An object that refers to itself: only the collector of garbage frees it."""

    def __init__(self, tensor):
        self.tensor, self.itself = tensor, self


def tensors(case, make):
    """A GiB in one tensor, in 1024 or in as many objects that refer to themselves; make(size) makes one."""
    if one_of("case", case, ("large", "small", "cycles", "referenced")) in ("large", "referenced"):
        return [make(1 << 30)]
    made = [make(1 << 20) for _ in range(1024)]
    return [Node(one) for one in made] if case == "cycles" else made


def returned(start, before, after):
    """Shares that went back to the framework's allocator and to the card, of what was taken from each since
    the `start`; each is the bytes in use and those held."""
    shares = [(then - now) / (then - first) for first, then, now in zip(start, before, after)]
    return {"returned_share": shares[0], "returned_to_card_share": shares[1]}


class ErrorOutput:
    """Keeps what libraries print to standard error in a file, to be read by the program itself. An error that
    ends the `with` block shows the end of it."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()
        self.shown = os.dup(2)
        os.dup2(self.file.fileno(), 2)

    def text(self):
        self.file.seek(0)
        return self.file.read().decode(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        if error is not None:
            os.dup2(self.shown, 2)
            os.write(2, self.text()[-4000:].encode())


def regions(log):
    """Bytes that each allocator of TensorFlow says it took from its device, by the allocator's name."""
    taken = {}
    name = ""
    for line in log.splitlines():
        if found := re.search(r"Extending allocation by .* for (\w+)", line):
            name = found[1]
        elif found := re.search(r"Allocated memory at (0x[0-9a-f]+) to (0x[0-9a-f]+)", line):
            taken[name] = taken.get(name, 0) + int(found[2], 16) - int(found[1], 16)
    return taken


def refusal(log):
    """What TensorFlow's log says about the last request that was refused; "" if none was."""
    found = re.findall(r"Allocator \(\w+\) ran out of memory trying to allocate [\w.]+", log)
    return found[-1] if found else ""


def report(engine, figures, note="", why_not_engaged="", **more):
    print(json.dumps({"engine": engine, "figures": figures, "note": note,
                      "why_not_engaged": why_not_engaged, **more}))
