#!/usr/bin/python3
"""Registers, stack and spills of every kernel of the CUDA module, as ptxas reports them.

scripts/kernel_resources.py [--build DIR] [--archs 80,90,100] [--kernels] [FILE...]

Compiles the .cu files of a configured build (all, or those named) once more for each GPU
architecture, without keeping the code, and prints a Markdown table. Exit code 1: a kernel has a
stack frame or spills registers, so that each of its threads reads and writes memory that no
allocator knows of. --kernels lists the kernels one by one.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KERNEL = re.compile(
    r"Compiling entry function '(?P<name>\w+)' for 'sm_(?P<arch>\w+)'\n"
    r".*Function properties for .*\n"
    r"\s*(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads\n"
    r".*Used (?P<registers>\d+) registers"
)


def kernels_in(report):
    """What `ptxas -v` said: one dict for each kernel."""
    found = [match.groupdict() for match in KERNEL.finditer(report)]
    if len(found) != report.count("Compiling entry function"):
        raise ValueError("this ptxas words its report in another way than this script reads")
    return [{k: v if k in ("name", "arch") else int(v) for k, v in one.items()} for one in found]


def command_for(entry, arch):
    """The build's own command for a .cu file, for one architecture and without a result."""
    words = shlex.split(entry["command"])
    kept = [word for word in words if not word.startswith("-gencode")]
    for option in ("-o", "-MF", "-MQ", "-MT"):
        while option in kept:
            at = kept.index(option)
            del kept[at : at + 2]
    kept = [word for word in kept if word not in ("-MD", "-c")]
    return [*kept, f"-gencode=arch=compute_{arch},code=sm_{arch}", "-Xptxas=-v", "-cubin",
            "-o", "/dev/null"]  # fmt: skip


def resources(entry, arch):
    done = subprocess.run(
        command_for(entry, arch), cwd=entry["directory"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"scripts/kernel_resources.py: {entry['file']}, sm_{arch}:\n{done.stderr}")
    return kernels_in(done.stderr)


def wrong(kernel):
    return kernel["stack"] + kernel["stores"] + kernel["loads"] > 0


def demangled(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True)
    return done.stdout.splitlines()


def print_kernels(kernels):
    for kernel, name in zip(kernels, demangled([one["name"] for one in kernels])):
        print(f"sm_{kernel['arch']}  {kernel['registers']} registers, {kernel['stack']} B of stack, "
              f"{kernel['stores']} + {kernel['loads']} B spilled  {name}")  # fmt: skip


def print_table(found):
    print("| file | GPU | kernels | registers, at most | stack, at most | spilled, at most |")
    print("|---|---|---|---|---|---|")
    for (file, arch), kernels in found.items():
        most = {key: max(one[key] for one in kernels) for key in ("registers", "stack")}
        spilled = max(one["stores"] + one["loads"] for one in kernels)
        print(f"| `{file}` | sm_{arch} | {len(kernels)} | {most['registers']} | {most['stack']} B "
              f"| {spilled} B |")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="names such as update.cu")
    parser.add_argument("--build", default="build", type=Path)
    parser.add_argument("--archs", default="80,90,100")
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    commands = json.loads((options.build / "compile_commands.json").read_text())
    entries = {Path(one["file"]).name: one for one in commands if one["file"].endswith(".cu")}
    unknown = set(options.files) - set(entries)
    if unknown or not entries:
        raise SystemExit(f"scripts/kernel_resources.py: {options.build} compiles no "
                         f"{', '.join(sorted(unknown)) or '.cu file: it has no CUDA module'}")  # fmt: skip
    tasks = [(file, arch) for file in sorted(options.files or entries)
             for arch in options.archs.split(",")]  # fmt: skip
    found = defaultdict(list)
    with ThreadPoolExecutor(2) as pool:
        for task, kernels in zip(tasks, pool.map(lambda t: resources(entries[t[0]], t[1]), tasks)):
            found[task] = kernels
    print_table(found)
    every = [kernel for kernels in found.values() for kernel in kernels]
    if options.kernels:
        print_kernels(every)
    bad = [kernel for kernel in every if wrong(kernel)]
    if bad:
        print("These kernels use memory for each thread:", file=sys.stderr)
        print_kernels(bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
