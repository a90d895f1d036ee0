#!/usr/bin/python3
"""Registers, stack and spills of every kernel of the CUDA module, as ptxas reports them.

scripts/kernel_resources.py [--build DIR] [--archs 80,90,100] [--page FILE] [FILE.cu...]

Compiles the .cu files of a configured build (all, or those named) once more for each GPU
architecture, without keeping the code, and prints Markdown tables: one of the files and one of the
kernels. --page puts those of all files into a page instead, below the line that says so there,
with a fingerprint of the sources: docs/reference/kernels.md is such a page. Exit code 1: a kernel
has a stack frame or spills registers, so that each of its threads reads and writes memory that no
allocator knows of.
"""

import argparse
import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- written by scripts/kernel_resources.py --page -->\n"
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
    """The build's own command for a .cu file, without a result: its portable code, for one architecture."""
    words = shlex.split(entry["command"])
    [portable] = re.findall(r"-gencode=arch=(\w+)", entry["command"])
    kept = [word for word in words if not word.startswith("-gencode=")]
    for option in ("-o", "-MF", "-MQ", "-MT"):
        while option in kept:
            at = kept.index(option)
            del kept[at : at + 2]
    kept = [word for word in kept if word not in ("-MD", "-c")]
    return [*kept, f"-gencode=arch={portable},code=sm_{arch}", "-Xptxas=-v", "-cubin",
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


def sources():
    """The files that decide what the kernels are."""
    module = ROOT / "harness" / "device" / "cuda" / "module"
    numbers = ROOT / "harness" / "device" / "host" / "kernels"
    return sorted([*module.glob("kernels/*.cu"), module / "kernels" / "cub_queue.h",
                   module / "kernels" / "meson.build", *module.glob("work/**/*.h"),
                   numbers / "element.h", numbers / "eight_bits.h"])  # fmt: skip


def fingerprint():
    """Returns a hash of the sources that the kernels are compiled from, without lines that hold
    only a comment."""
    digest = hashlib.sha256()
    for path in sources():
        code = re.sub(rb"(?m)^ *//.*\n", b"", path.read_bytes())
        digest.update(path.name.encode() + code)
    return digest.hexdigest()[:16]


def compiler():
    said = subprocess.check_output(["nvcc", "--version"], text=True)
    return "nvcc " + re.search(r"V([\d.]+)", said).group(1)


def demangled(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True)
    return done.stdout.splitlines()


def inside(text, opening):
    """What stands between the brackets that follow `opening`, or None."""
    begin = text.find(opening)
    if begin < 0:
        return None
    begin += len(opening)
    depth = 1
    for at in range(begin, len(text)):
        depth += {"<": 1, ">": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin:at]
    return None


def first_argument(arguments):
    """The first of template arguments that is not a number of threads."""
    arguments = re.sub(r"^\d+u, ", "", arguments)
    depth = 0
    for at, letter in enumerate(arguments):
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            return arguments[:at]
    return arguments


def short(name):
    """A demangled name without what CUB and the compiler add: the kind of kernel, and what it computes."""
    name = name.replace("->", "")
    ours = {"static_kernel": "loop", "loop_by_table": "loop by table", "reduce_each_row": "rows",
            "reduce_column_groups": "columns", "loop_by_column": "loop by column"}  # fmt: skip
    step = re.search(rf"\b({'|'.join(ours)}|Device\w+Kernel)\b", name)
    if step is None:
        return re.search(r"(\w+)(<.*>)?\([^()]*\)$", name).group(1)
    kind = ours.get(step.group(), step.group().removeprefix("Device").removesuffix("Kernel"))
    openings = ("Unless<", "transform_iterator<", "by_table<", "each_row<", "column_groups<",
                "by_column<")  # fmt: skip
    work = next(filter(None, (inside(name, opening) for opening in openings)), None)
    if work is None:
        return kind
    work = first_argument(work)
    work = re.sub(r"::operator\(\)(<[^<>]*>)?\([^{]*\) const", "", work)
    work = re.sub(r"(::\w+(<[^<>]*>)?\([^{]*\) const)?::\{lambda\([^{}]*\)#(\d+)\}", r" \3", work)
    work = re.sub(r"\b(headroom|cuda|host|\(anonymous namespace\))::", "", work)
    return f"{kind}: {work}".replace(" >", ">").strip()


def print_kernels(kernels):
    for kernel, name in zip(kernels, demangled([one["name"] for one in kernels])):
        print(f"sm_{kernel['arch']}  {kernel['registers']} registers, {kernel['stack']} B of stack, "
              f"{kernel['stores']} + {kernel['loads']} B spilled  {short(name)}")  # fmt: skip


def table_of_files(found):
    lines = ["| file | GPU | kernels | registers, at most | stack, at most | spilled, at most |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for (file, arch), kernels in found.items():
        most = {key: max(one[key] for one in kernels) for key in ("registers", "stack")}
        spilled = max(one["stores"] + one["loads"] for one in kernels)
        lines.append(f"| `{file}` | sm_{arch} | {len(kernels)} | {most['registers']} "
                     f"| {most['stack']} B | {spilled} B |")  # fmt: skip
    return lines


def table_of_kernels(found):
    """Registers a thread on each GPU. Kernels of one name are variants for other sizes."""
    archs = list(dict.fromkeys(arch for _, arch in found))
    rows = defaultdict(lambda: defaultdict(set))
    for (file, arch), kernels in found.items():
        for kernel, name in zip(kernels, demangled([one["name"] for one in kernels])):
            rows[file, short(name)][arch].add(kernel["registers"])
    lines = ["| file | kernel | " + " | ".join(f"sm_{arch}" for arch in archs) + " |",
             "|---|---|" + "---|" * len(archs)]  # fmt: skip
    for (file, name), registers in sorted(rows.items()):
        of_each = (", ".join(map(str, sorted(registers[arch]))) or "none" for arch in archs)
        lines.append(f"| `{file}` | `{name}` | " + " | ".join(of_each) + " |")
    return lines


def write_page(page, found):
    above = page.read_text().partition(BEGIN)[0]
    lines = [f"Compiled by {compiler()} from the sources with fingerprint `{fingerprint()}`.", "",
             *table_of_files(found), "", "Registers a thread:", "", *table_of_kernels(found)]  # fmt: skip
    page.write_text(above + BEGIN + "\n" + "\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="names such as update.cu")
    parser.add_argument("--build", default="build", type=Path)
    parser.add_argument("--archs", default="80,90,100")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.page and options.files:
        parser.error("a page has all files: leave out their names")
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
    if options.page:
        write_page(options.page, found)
    else:
        print("\n".join([*table_of_files(found), "", *table_of_kernels(found)]))
    every = [kernel for kernels in found.values() for kernel in kernels]
    bad = [kernel for kernel in every if wrong(kernel)]
    if bad:
        print("These kernels use memory for each thread:", file=sys.stderr)
        print_kernels(bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
