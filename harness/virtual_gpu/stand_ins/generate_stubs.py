"""generate_stubs.py symbols.txt OUT.cpp: C++ for the functions that need no code of their own."""

import re
import sys
from pathlib import Path

HEAD = """// Generated from symbols.txt.
#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;

"""


def stub(library: str, kind: str, name: str) -> str:
    """The definition of one function. Raises ValueError for an unknown kind."""
    declaration = f"HEADROOM_EXPORT long {name}"
    if kind == "succeeds":
        return f"{declaration}() {{ return 0; }}\n"
    if kind == "creates":
        return f"{declaration}(void** out) {{ *out = new_object(); return 0; }}\n"
    if kind == "stops":
        return f'{declaration}() {{ stop_at_unsupported("{library}", "{name}"); }}\n'
    if size := re.fullmatch(r"size (\d+)", kind):
        before = "long, " * int(size[1])
        return (
            f"{declaration}({before}std::size_t* bytes) "
            f'{{ note_size_not_known("{name}"); *bytes = 0; return 0; }}\n'
        )
    raise ValueError(f"symbols.txt: {name}: unknown kind '{kind}'")


def stubs(table: str) -> str:
    """C++ of the whole table: "[library]", then "kind: name name …" over one line or several."""
    library, kind, out = "", "", [HEAD]
    for line in table.splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            library = line.strip("[]")
            continue
        if ":" in line:
            kind, _, line = line.partition(":")
        out += [stub(library, kind, name) for name in line.split()]
    return "".join(out)


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(stubs(Path(sys.argv[1]).read_text()))
