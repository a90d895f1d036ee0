#!/usr/bin/env python3
"""Checks the sources against the table of rooms in docs/design.md.

usage: check_rooms.py [ROOT]

Prints each include that the table does not allow, each folder of C++ without a row, and each folder of
more than 25 source files in C++ or in Python. Exit: 0 nothing found, 1 something found, 2 the table cannot be read.
"""

import re
import sys
from collections import Counter
from pathlib import Path

MAXIMUM_FILES = 25
SOURCES = (".h", ".cpp", ".cu", ".cuh")
FOLDERS = ("harness", "strategies", "workloads", "bench", "capture", "python", "tests/unit")
FOLDERS_OF_PYTHON = (*FOLDERS, "reports", "scripts", "tests/cli", "tests/report", "tests/scripts",
                     "tests/virtual_gpu")
ROW = re.compile(r"^\| `([a-z_/*]+)` \|[^|]*\|([^|]*)\|$")
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"')


def read_rooms(page: Path) -> dict[str, set[str]]:
    """Each room's name and the rooms that it may include, as the page's tables say."""
    rooms: dict[str, set[str]] = {}
    for line in page.read_text().splitlines():
        row = ROW.match(line)
        if not row:
            continue
        name, allowed = row[1], row[2].strip()
        if name in rooms:
            print(f"{page}: two rows name {name}", file=sys.stderr)
            sys.exit(2)
        if allowed == "rooms above":
            rooms[name] = set(rooms)
        elif allowed == "nothing":
            rooms[name] = set()
        else:
            rooms[name] = set(re.findall(r"`([^`]+)`", allowed))
    return rooms


def room_of(path: str, rooms: dict[str, set[str]]) -> str | None:
    """The row that names the innermost folder of `path`; None if no row does."""
    found = ""
    for room in rooms:
        if room.endswith("/*"):
            folder = "/".join(path.split("/")[: room.count("/") + 1])
            matches, name = path.startswith(room[:-1]) and folder != path, folder
        else:
            matches, name = path.startswith(room + "/"), room
        if matches and len(name) > len(found):
            found = name
    return found or None


def allowed_by(room: str, rooms: dict[str, set[str]]) -> set[str]:
    return rooms.get(room) or rooms.get(room.rsplit("/", 1)[0] + "/*", set())


def may_include(room: str, other: str, rooms: dict[str, set[str]]) -> bool:
    return room == other or any(
        other == allowed or (allowed == "harness" and other.startswith("harness/"))
        for allowed in allowed_by(room, rooms)
    )


def complaints(root: Path, rooms: dict[str, set[str]]) -> list[str]:
    found = []
    files: Counter[str] = Counter()
    homeless = set()
    sources = sorted(
        path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SOURCES
    )
    for source in sources:
        path = source.relative_to(root).as_posix()
        folder = source.parent.relative_to(root).as_posix()
        files[folder] += 1
        if path.startswith("tests/"):
            continue
        room = room_of(path, rooms)
        if room is None:
            homeless.add(folder)
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            if not include or "/" not in include[1]:
                continue
            other = room_of(include[1], rooms)
            if other is None or not may_include(room, other, rooms):
                found.append(f'{path}:{number}: {room} may not include "{include[1]}"')
    python = (path for folder in FOLDERS_OF_PYTHON for path in (root / folder).rglob("*.py"))
    files += Counter(path.parent.relative_to(root).as_posix() for path in python)
    found += [f"{folder}: no row of the table names this folder" for folder in sorted(homeless)]
    found += [
        f"{folder}: {count} source files; a room holds at most {MAXIMUM_FILES}"
        for folder, count in sorted(files.items())
        if count > MAXIMUM_FILES
    ]
    return found


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    page = root / "docs" / "design.md"
    rooms = read_rooms(page) if page.is_file() else {}
    if not rooms:
        print(f"{page}: no table of rooms", file=sys.stderr)
        return 2
    found = complaints(root, rooms)
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
