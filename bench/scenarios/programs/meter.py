"""Measures the memory of programs of this folder, and reports for them.

The last line a program prints is one JSON object: figures by name (bench/scenarios/script.cpp lists
them), and where needed a note for readers or why the program did not do what it was asked to.
"""

import json
import sys


def options(**defaults):
    """The values of --key value pairs, each with the type of its default. An unknown key is an error."""
    values = {"seed": 0, **defaults}
    pairs = sys.argv[1:]
    for key, value in zip(pairs[::2], pairs[1::2]):
        name = key.removeprefix("--")
        if name not in values:
            sys.exit(f"{sys.argv[0]}: unknown parameter '{name}'; known: {', '.join(sorted(values))}")
        values[name] = type(values[name])(value)
    return values


def _status(field, process):
    with open(f"/proc/{process}/status") as status:
        for line in status:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0


def resident(process="self"):
    """Bytes of memory the process has resident (VmRSS)."""
    return _status("VmRSS:", process)


def peak():
    """The highest of resident() since restart_peak() (VmHWM)."""
    return _status("VmHWM:", "self")


def restart_peak():
    with open("/proc/self/clear_refs", "w") as references:
        references.write("5")


def _mapped(process, *fields):
    with open(f"/proc/{process}/smaps_rollup") as rollup:
        return sum(int(line.split()[1]) * 1024 for line in rollup if line.startswith(fields))


def proportional(process="self"):
    """Resident bytes with shared pages divided among their sharers (PSS)."""
    return _mapped(process, "Pss:")


def unshared(process="self"):
    """Resident bytes that no other process has mapped (USS)."""
    return _mapped(process, "Private_Clean:", "Private_Dirty:")


def slope(values):
    """The slope, per step, of the straight line that fits best."""
    middle = (len(values) - 1) / 2
    mean = sum(values) / len(values)
    above = sum((i - middle) * (value - mean) for i, value in enumerate(values))
    return above / sum((i - middle) ** 2 for i in range(len(values)))


def report(note="", why_not_engaged="", **figures):
    print(json.dumps({"figures": figures, "note": note, "why_not_engaged": why_not_engaged}))
