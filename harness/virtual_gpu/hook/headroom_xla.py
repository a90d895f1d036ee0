"""Computes which values hold the memory of a program that XLA compiled: its arguments, results and
temporaries in XLA's own layout. XLA writes this beside each program if --xla_dump_to is set."""

import os
import re
import shutil
from pathlib import Path

import headroom_lines
import headroom_memory

RECORDS = os.environ.get("HEADROOM_GPU_RECORDS", "")
OUTSIDE = "(outside of modules)"
MOST_PARTS = 8  # of an argument that are shown apart
# Parts of an instruction's name that JAX adds for its loops, branches and transformations
IN_NO_MODULE = re.compile(r"while|body|cond|branch_\d+_fun|closed_call|eval_jaxpr|checkpoint|remat2|rematted_computation|"
                          r"custom_[jv]vp_call|shard_map")
mapped_functions = []  # (name, names of all arguments) of each function that jax.pmap compiled
functions_of_libraries = []  # (name, {JAX's name: the program's name} of all arguments) of each compiled one of a library
states_of_keras = {}  # name of a function that Keras compiled -> roles of the parts of its argument `state`


def directory():
    return Path(RECORDS) / f"xla-{os.getpid()}"


def set_flags():
    """Sets the flags that a virtual GPU needs, and the one that asks for files, before XLA reads them. If the user
    named a directory, it is left alone and nothing is known. It is called again just before XLA starts, because
    programs set the variable themselves. Of contradicting flags, the last one counts."""
    flags = re.sub(r"--xla_dump_to=\S*/xla-\d+\b", "", os.environ.get("XLA_FLAGS", ""))
    needed = os.environ.get("HEADROOM_GPU_XLA_FLAGS", "")
    flags = f"{flags.replace(needed, '')} {needed}"
    if "--xla_dump_to" not in flags:
        flags += f" --xla_dump_to={directory()}"
    os.environ["XLA_FLAGS"] = flags


class Program:
    """A compiled program, read from the text in which XLA lists the place of each value."""

    def __init__(self, path):
        self.path = path
        module = path.name.partition(".")[2]
        self.name = re.split(r"\.\d+\.|\.sm_", module)[0].strip("_")
        self.text = path.read_text(errors="replace")
        self.bytes_of = {"parameter": {}, "result": 0, "temporary": 0}
        self.places = {}  # value -> [(offset, bytes)] in the temporaries
        self.phis = set()  # values that are one of several others, such as what a loop carries on
        kind = ""
        for line in self.text.splitlines():
            if found := re.match(r"allocation \d+: size (\d+), (?:page \d+, )?(.*):$", line):
                size, kind = int(found[1]), self._kind_of(found[2])
                if kind == "parameter":
                    number = int(re.match(r"parameter (\d+)", found[2])[1])
                    arguments = self.bytes_of["parameter"]
                    arguments[number] = arguments.get(number, 0) + size
                elif kind:
                    self.bytes_of[kind] += size
            elif kind == "temporary" and (
                found := re.match(r" value: <\d+ (\S+)( \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\)", line)
            ):
                value = found[1].removesuffix("{}")
                self.places.setdefault(value, []).append((int(found[4]), int(found[3])))
                if found[2]:
                    self.phis.add(value)
            elif line.startswith("Used values") or line.startswith("HloLiveRange"):
                break

    @staticmethod
    def _kind_of(description):
        if description.startswith("parameter"):
            return "parameter"
        if "thread-local" in description or "constant" in description:
            return ""
        return "result" if "maybe-live-out" in description else "temporary"

    def bytes(self):
        parameters = sum(self.bytes_of["parameter"].values())
        return parameters + self.bytes_of["result"] + self.bytes_of["temporary"]

    def _beside(self, ending):
        stem = self.path.name.removesuffix("-buffer-assignment.txt")
        path = self.path.with_name(stem + ending)
        return path.read_text(errors="replace") if path.exists() else ""

    def read_instructions(self):
        """Reads the names that the user's code gave to instructions, and the lines that made them. An instruction without
        them that stands for a computation of several, such as one that ends in a conversion to bfloat16, has those of
        the last one inside."""
        text = self._beside(".txt")
        frames = Frames(text)
        self.names, self.lines, self.parameters = {}, {}, {}
        computation, last_in = "", {}
        for line in text.splitlines():
            if found := re.match(r"(?:ENTRY )?%(\S+) .*\{$", line):
                computation = found[1]
            if not (found := re.match(r" +(?:ROOT )?%(\S+) = ", line)):
                continue
            metadata = re.search(r"metadata=\{(.*?)\}", line)
            called = re.search(r"calls=%([^\s,]+)", line)
            metadata = metadata[1] if metadata else last_in.get(called[1], "") if called else ""
            if metadata:
                last_in[computation] = metadata
                name = re.search(r'op_name="([^"]*)"', metadata)
                self.names[found[1]] = name[1].replace("\\'", "'") if name else ""
                self.lines[found[1]] = frames.line_of(metadata)
        entry = text[text.rfind("\nENTRY "):]
        for found in re.finditer(r"^ +%(\S+) = .*? parameter\((\d+)\)", entry, re.MULTILINE):
            self.parameters[int(found[2])] = self.names.get(found[1], "")
        self._name_mapped()
        self._name_by_variables()

    def _name_mapped(self):
        """Names the function and the arguments of a program of jax.pmap. JAX calls them _fun and flat_args[0],
        flat_args[1] and so on, and leaves out what is not used, so the function is the one with the fewest that
        suffice."""
        found = {n: re.fullmatch(r"flat_args\[(\d+)\]", name) for n, name in self.parameters.items()}
        if not found or not all(found.values()):
            return
        places = {n: int(match[1]) for n, match in found.items()}
        fitting = [f for f in mapped_functions if len(f[1]) > max(places.values())]
        if fitting:
            function, names = min(fitting, key=lambda f: len(f[1]))
            self.name = f"pmap({function})"
            self.parameters = {n: names[place] for n, place in places.items()}

    def _name_by_variables(self):
        """Names the arguments of a function that a library compiled as the program does, which calls the library."""
        for function, names in reversed(functions_of_libraries):
            name = "jit_" + re.sub(r"\W", "_", function).strip("_")
            if self.name == name and names.keys() >= {*self.parameters.values()}:
                self.parameters = {n: names[name] for n, name in self.parameters.items()}
                return

    def temporaries_at_peak(self):
        """Returns (value, bytes) of the values in the temporaries when most bytes are in use. Values that share a place
        count once, as they do not where XLA itself lists a peak: of a loop, it lists what the loop begins with."""
        text = self._beside("-live-range.txt") or self.text
        uses = sorted(
            (int(begin), int(end), place, value)
            for value, begin, end in re.findall(r"^ +(\S+?)(?:\{\})?:(\d+)-(\d+)$", text, re.MULTILINE)
            for place in self.places.get(value, [])
        )
        peak = time_of_most(uses)
        until_peak = [use for use in uses if use[0] <= peak]
        writer = {place: value for _, _, place, value in until_peak if value not in self.phis}
        living = {place: writer.get(place, value) for _, end, place, value in until_peak if peak <= end}
        taken, result = [], []
        for offset, size in sorted(living, key=lambda place: -place[1]):
            if not any(offset < end and begin < offset + size for begin, end in taken):
                taken.append((offset, offset + size))
                result.append((living[offset, size], size))
        return result

    def arguments(self):
        """Returns bytes by the name of the argument with its first named part: `state['params']` for
        `state['params']['a']`, `state.params` for `state.params['a']`, `weights` for `weights[0]`. An argument of many
        such parts, as the layers of Haiku are, is one. The argument in which Keras keeps all variables is divided by
        their roles."""
        result, parts, roles = {}, {}, states_of_keras.get(self.name)
        for number, size in self.bytes_of["parameter"].items():
            path = self.parameters.get(number, "")
            found = re.match(r"(\w+)(?:\.\w+|\['[^']*'\])?", path)
            if roles and (part := re.match(r"state\[(\d)\]", path)):
                add(result, roles[int(part[1])], size)
            elif found and path != "XLA_Args":
                add(parts.setdefault(found[1], {}), f"argument {found[0]}", size)
            else:
                add(result, "arguments", size)
        for argument, sizes in parts.items():
            result.update(sizes if len(sizes) <= MOST_PARTS else {f"argument {argument}": sum(sizes.values())})
        return result


def time_of_most(uses):
    """Returns the time at which most bytes are in use, given (begin, end, (offset, bytes), …) of each use of a place."""
    changes = [change for begin, end, place, *_ in uses for change in ((begin, 1, place), (end + 1, -1, place))]
    users, most, now, result = {}, 0, 0, 0
    for at, change, place in sorted(changes):  # what ends comes before what begins
        before = users.get(place, 0)
        users[place] = before + change
        if 0 in (before, users[place]):
            now += change * place[1]
        if now > most:
            most, result = now, at
    return result


class Frames:
    """The tables at the head of a module that map each instruction to a line of a file."""

    def __init__(self, text):
        def table(title):
            found = re.search(rf"^{title}\n((?:\d+ .*\n)*)", text, re.MULTILINE)
            rows = (row.split(" ", 1) for row in (found[1] if found else "").splitlines())
            return {int(number): value for number, value in rows}

        def numbers(value):
            return {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", value)}

        self.files = {number: value.strip('"') for number, value in table("FileNames").items()}
        self.locations = {n: numbers(value) for n, value in table("FileLocations").items()}
        self.frames = {n: numbers(value) for n, value in table("StackFrames").items()}
        # Newer versions of XLA write the parent's number plus one. The first frame, which has no parent, then
        # appears to be its own.
        self.added = int(self.frames.get(1, {}).get("parent_frame_id") == 1)

    def line_of(self, metadata):
        """Returns the innermost line of the user's program, "" if unknown."""
        if found := re.search(r'source_file="([^"]*)" source_line=(\d+)', metadata):
            return headroom_lines.place_of(found[1], found[2]) if headroom_lines.is_users(found[1]) else ""
        found = re.search(r"stack_frame_id=(\d+)", metadata)
        at = int(found[1]) if found else 0
        while at in self.frames:
            location = self.locations.get(self.frames[at].get("file_location_id"), {})
            file = self.files.get(location.get("file_name_id"), "??")
            if headroom_lines.is_users(file):
                return headroom_lines.place_of(file, location.get("line", 0))
            parent = self.frames[at].get("parent_frame_id", 0) - self.added
            at = parent if parent < at else 0  # A damaged file could otherwise form a cycle.
        return ""


def is_argument(name):
    """Whether an instruction of JAX has the name of an argument, since it copies one. The names of others begin with a
    function, such as jit(step)/."""
    return re.fullmatch(r"\w+([.\[].*)?", name) is not None


def module_of(name):
    """Returns the path of modules in an instruction's name, without JAX's transformations and without the
    operation itself. A copy of an argument has the argument's name, such as p['net/~/conv']['w']."""
    if is_argument(name):
        keys = re.findall(r"\['([^']*)'\]", name)[:-1]
        return "/".join(part for key in keys for part in key.split("/") if part != "~") or OUTSIDE
    parts = []
    # XLA names several operations that it combined as "f/a; g/b", or as "f/(a:b)" for "f/a" and "f/b". The first counts.
    first = re.sub(r"/\(([^:]*):.*", r"/\1", name.partition(";")[0])
    for part in first.split("/")[:-1]:
        if "jit(" in part:  # a function that JAX compiled apart
            continue
        part = re.sub(r"^(?:\w+\()+|\)+$", "", part)
        # An einsum's subscripts ("ij,jk->ik") and JAX's internal functions ("_take") are not modules.
        if part and not IN_NO_MODULE.fullmatch(part) and "->" not in part and not part.startswith("_"):
            parts.append(part)
    return "/".join(parts) or OUTSIDE


def largest_program(most, is_jaxs, until=0):
    """Returns the program for a GPU that needs most memory, but at most `most` bytes, or None. It is one of JAX's or
    one of TensorFlow's, since a process may use both, and compiled before the time `until` if that is given."""
    texts = [text for text in directory().glob("*-buffer-assignment.txt")
             if is_jaxs == bool(re.match(r"module_\d+\.(jit|pmap)_", text.name)) and ".cpu_" not in text.name
             and not (until and text.stat().st_mtime >= until)]
    programs = [program for program in map(Program, texts) if 0 < program.bytes() <= most]
    return max(programs, key=Program.bytes, default=None)


def split_arguments(roles, known):
    """Separates known arrays, given as {role: bytes}, from the rest. Those that the program does not use are no
    arguments of it, but other arrays."""
    arguments, others = roles.get("arguments", 0), roles.get("other arrays", 0)
    unused = max(0, sum(known.values()) - arguments)
    if known and unused <= others:
        roles.update({**known, "arguments": arguments - sum(known.values()) + unused, "other arrays": others - unused})


def add(totals, name, size):
    totals[name] = totals.get(name, 0) + size


def shares(totals):
    return [share for share in headroom_memory.in_order(totals) if share["bytes"]]


def describe(use, is_jaxs, known=None, out_of_memory=False, until=0):
    """Returns what a device held at the peak, by role, module and line; {} if unknown. `use` holds the
    device's counters, `known` the bytes by role of arrays that the framework reports. If the device ran out
    of memory, the largest program is described although it did not get what it needs. `until` is given if the peak was
    before the first step, which began then."""
    program = largest_program(float("inf") if out_of_memory else use["peak_allocated"], is_jaxs,
                              0 if out_of_memory else until)
    if program is None or known and not out_of_memory and program.bytes() < use["peak_allocated"] / 2:
        return {}  # a small part, such as the update of a weight that Keras 2 lets XLA compile, tells less than `known`
    program.read_instructions()
    others = max(0, use["peak_allocated"] - program.bytes())
    roles = {**program.arguments(), "results": program.bytes_of["result"],
             "temporaries": program.bytes_of["temporary"], "other arrays": others}
    split_arguments(roles, {} if is_jaxs else known or {})  # in JAX, arguments have names
    phase = program.name + (", before the first step" if until else "")
    if program.bytes() > use["peak_allocated"]:
        phase += f", which needs {program.bytes() / (1 << 30):.2f} GiB"
    lines, modules = {}, {}
    for value, size in program.temporaries_at_peak():
        instruction = value.partition("{")[0]
        name = program.names.get(instruction, "")
        made_by = "copies of arguments" if is_jaxs and is_argument(name) else name or "copies of XLA"
        add(lines, program.lines.get(instruction) or f"({made_by})", size)
        add(modules, module_of(name), size)
    beside = {"(arguments)": sum(program.bytes_of["parameter"].values()),
              "(results)": roles["results"],
              "(other arrays)": others,
              "(temporaries, not in use at the peak)": roles["temporaries"] - sum(lines.values())}
    if list(modules) == [OUTSIDE]:
        modules = {}
    return {
        "phase": phase,
        "roles": shares(roles),
        "lines": shares({**lines, **beside}),
        "modules": headroom_memory.modules_in_order(
            {name: {"temporaries": size} for name, size in modules.items() if size}),
    }


def clear():
    shutil.rmtree(directory(), ignore_errors=True)
