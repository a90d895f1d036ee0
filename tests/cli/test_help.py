"""--help teaches every command by examples, and no example has options that would be refused."""

from __future__ import annotations

import json
import re

import pytest
from conftest import SOURCE, Headroom

Words = tuple[str, ...]


@pytest.fixture
def helps(headroom: Headroom) -> dict[Words, str]:
    """The help of every command that help lists; the key () is the program itself."""
    told: dict[Words, str] = {}

    def ask(path: Words) -> None:
        outcome = headroom(*path, "--help")
        assert outcome.code == 0, path
        told[path] = outcome.output
        listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", outcome.output, re.MULTILINE)
        for name in re.findall(r"^  ([a-z-]+) ", listed[1], re.MULTILINE) if listed else []:
            ask((*path, name))

    ask(())
    return told


def examples(text: str) -> list[str]:
    """The commands of the examples, without quoted texts, explanations, pipes and the commands of other programs."""
    plain = re.sub(r"'[^']*'", "''", text.partition("\nExamples\n")[2])
    return [re.split(r" \| | -- |   ", line)[0] for line in re.findall(r"^  headroom (.*)", plain, re.MULTILINE)]


def test_what_only_the_program_itself_starts_is_not_listed(helps: dict[Words, str]) -> None:
    assert {("run",), ("doctor",), ("history", "check")} <= helps.keys()
    assert not {("sample",), ("touch",)} & helps.keys()


def test_every_command_is_taught_by_an_example(helps: dict[Words, str]) -> None:
    for path, told in helps.items():
        assert any(example.split()[: len(path)] == list(path) for example in examples(told)), path


def test_every_option_of_an_example_is_one_of_its_command(helps: dict[Words, str]) -> None:
    tried = 0
    for told in helps.values():
        for example in examples(told):
            words = example.split()
            command = tuple(words[:2]) if words[0] == "history" else (words[0],)
            for option in re.findall(r"(?<= )--?[a-z][a-z-]*", example):
                assert re.search(rf"(?<![\w-]){option}(?![\w-])", helps[command]), example
                tried += 1
    assert tried > 30


def test_help_and_the_documentation_name_the_same_exit_codes(helps: dict[Words, str]) -> None:
    told = re.findall(r"^ +(\d+)  ", helps[()].partition("\nExit status\n")[2], re.MULTILINE)
    assert told[:2] == ["0", "2"]
    table = (SOURCE / "docs" / "reference" / "exit-codes.md").read_text()
    assert told == re.findall(r"^\| (\d+) \|", table, re.MULTILINE)


def test_what_json_is_said_to_be_stands_in_the_schema(helps: dict[Words, str]) -> None:
    schema = json.loads((SOURCE / "reports" / "schema.json").read_text())
    named = {kind for told in helps.values() for kind in re.findall(r"(\w+) of reports/schema\.json", " ".join(told.split()))}
    assert len(named) >= 10
    for kind in named:
        assert {"$ref": f"#/definitions/{kind}"} in schema["oneOf"]
        assert schema["definitions"][kind]["properties"]["kind"] == {"enum": [kind]}
