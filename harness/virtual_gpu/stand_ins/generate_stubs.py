"""generate_stubs.py symbols.txt OUT.cpp: C++ for the functions that need no code of their own."""

import re
import sys
from pathlib import Path

HEAD = """// Generated from symbols.txt.
#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;

"""


def stub(library: str, kind: str, name: str) -> str:
    """Returns the definition of one function. Raises ValueError for an unknown kind."""
    declaration = f"HEADROOM_EXPORT long {name}"
    if kind == "succeeds":
        return f"{declaration}() {{ return 0; }}\n"
    if kind == "creates":
        return f"{declaration}(void** out) {{ *out = new_object(); return 0; }}\n"
    if kind == "destroys":
        return f"{declaration}(void* object) {{ delete_object(object); return 0; }}\n"
    if kind == "stops":
        return f'{declaration}() {{ stop_at_unsupported("{library}", "{name}"); }}\n'
    if error := re.fullmatch(r"zero (\d+)", kind):
        arguments = ["long"] * int(error[1]) + ["int* error"]
        return f"{declaration}({', '.join(arguments)}) {{ *error = 0; return 0; }}\n"
    if result := re.fullmatch(r"writes (\d+)", kind):
        arguments = ["long"] * int(result[1]) + ["void* result"]
        return f"{declaration}({', '.join(arguments)}) {{ forget_result(result); return 0; }}\n"
    if error := re.fullmatch(r"answers (\d+)", kind):
        return f"{declaration}() {{ return {error[1]}; }}\n"
    if size := re.fullmatch(r"(sizes?|int) (\d+)", kind):
        number = "int" if size[1] == "int" else "std::size_t"
        outs = ["bytes", "on_host"] if size[1] == "sizes" else ["bytes"]
        arguments = ["long"] * int(size[2]) + [f"{number}* {out}" for out in outs]
        zeros = " ".join(f"*{out} = 0;" for out in outs)
        return (
            f"{declaration}({', '.join(arguments)}) "
            f'{{ note_size_not_known("{name}"); {zeros} return 0; }}\n'
        )
    raise ValueError(f"symbols.txt: {name}: unknown kind '{kind}'")


def stubs(table: str) -> str:
    """Returns C++ for the whole table: "[library]", then "kind: name name …" on one or several lines."""
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
