"""Each folder of the report imports only from the folders before it."""

from __future__ import annotations

import ast
from pathlib import Path

import reports

ROOMS = ("data", "charts", "views", "exports")


def test_no_room_of_the_report_imports_a_later_one() -> None:
    backwards = []
    for number, room in enumerate(ROOMS):
        for file in (Path(reports.__file__).parent / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                target = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
                if target[:1] == ["reports"] and (*target, "")[1] not in ROOMS[: number + 1]:
                    backwards.append(f"{room}/{file.name}: {'.'.join(target)}")
    assert backwards == []


def test_every_room_of_the_report_is_checked() -> None:
    packages = {file.parent.name for file in Path(reports.__file__).parent.glob("*/__init__.py")}
    assert packages == set(ROOMS)
