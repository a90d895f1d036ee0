"""scripts/check_rooms.py on made-up trees, and on this one."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = """
| Room | What comes in, what goes out | May include |
| --- | --- | --- |
| `harness/base` | Text in; values out. | nothing |
| `harness/trace` | Events in; ledgers out. | rooms above |
| `harness/cli` | Commands in; text out. | rooms above |
| `strategies/*` | Passes. | `harness` |
| `harness/stand_in` | Calls in; answers out. | `harness/base` |
"""


@pytest.fixture
def check(tmp_path):
    """Writes a tree with these files and returns what the script prints about it."""

    def run(files, table=TABLE):
        for name, text in {"docs/design.md": table, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        script = ROOT / "scripts" / "check_rooms.py"
        return subprocess.run([script, tmp_path], capture_output=True, text=True)

    return run


def test_this_tree_keeps_to_its_rooms():
    result = subprocess.run([ROOT / "scripts" / "check_rooms.py"], capture_output=True, text=True)
    assert (result.stdout + result.stderr, result.returncode) == ("", 0)


def test_includes_of_rooms_above_are_allowed(check):
    result = check(
        {
            "harness/trace/trace.h": '#include <map>\n#include "harness/base/units.h"\n',
            "harness/trace/file/reader.h": '#include "harness/trace/trace.h"\n',
            "strategies/allocator/pool.cpp": '#include "harness/trace/trace.h"\n',
        }
    )
    assert (result.stdout, result.returncode) == ("", 0)


@pytest.mark.parametrize(
    "file, include, room",
    [
        ("harness/trace/ledger.cpp", "harness/cli/options.h", "harness/trace"),
        ("harness/trace/file/reader.cpp", "harness/cli/options.h", "harness/trace"),
        ("harness/cli/run.cpp", "strategies/allocator/pool.h", "harness/cli"),
        ("harness/stand_in/memory.cpp", "harness/trace/trace.h", "harness/stand_in"),
        ("strategies/optimizer/adam.cpp", "strategies/allocator/pool.h", "strategies/optimizer"),
    ],
)
def test_any_other_include_is_named_with_its_file_and_line(check, file, include, room):
    result = check({file: f'// Purpose.\n#include "{include}"\n'})
    assert result.stdout == f'{file}:2: {room} may not include "{include}"\n'
    assert result.returncode == 1


def test_a_folder_without_a_row_is_named(check):
    result = check({"harness/attic/old.cpp": ""})
    assert result.stdout == "harness/attic: no row of the table names this folder\n"
    assert result.returncode == 1


@pytest.mark.parametrize(
    "folder, ending",
    [
        ("harness/base", "cpp"),
        ("harness/trace/file", "cpp"),
        ("tests/unit/base", "cpp"),
        ("reports/views", "py"),
        ("tests/cli", "py"),
    ],
)
def test_a_folder_of_more_than_25_sources_is_named(check, folder, ending):
    result = check({f"{folder}/part{number}.{ending}": "" for number in range(26)})
    assert result.stdout == f"{folder}: 26 source files; a room holds at most 25\n"
    assert result.returncode == 1


def test_a_page_without_a_table_is_an_error(check):
    result = check({"harness/base/units.h": ""}, table="No table.\n")
    assert "no table of rooms" in result.stderr
    assert result.returncode == 2


def test_a_table_that_names_a_room_twice_is_an_error(check):
    result = check({"harness/base/units.h": ""}, table=TABLE + "| `harness/base` | Text in. | nothing |\n")
    assert "two rows name harness/base" in result.stderr
    assert result.returncode == 2
