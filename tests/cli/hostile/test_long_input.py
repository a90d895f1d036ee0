"""Arguments and files of any length and depth are read or refused: none ends the program."""

from __future__ import annotations

import pytest
from conftest import COUNTING_SUITE, Headroom

LONG = 120_000  # the longest argument that Linux passes is 128 KiB
LONGEST_MESSAGE = 2_200


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", f"gpt(vocabulary={'1' * LONG})", "--device", "1GiB"],
        ["plan", "gpt(" + "1" * LONG, "--device", "1GiB"],
        ["plan", "g" * LONG, "--device", "1GiB"],
        ["plan", "gpt(size=tiny)", "--device", "1" * LONG],
        ["plan", "gpt(size=tiny)", "--device", "1GiB", "-a", "allocator=" + "log|" * (LONG // 4) + "bcf"],
        ["plan", "gpt(size=tiny)", "--device", "1GiB", "-a", "1" * LONG],
        ["run", "smoke", "--filter", "workload=" + "?" * LONG],
        ["run", "smoke", "--filter", "1" * LONG],
        ["run", "smoke", "--budget", "1" * LONG],
        ["run", "smoke", "--seed", "1" * LONG],
        ["1" * LONG],
    ],
    ids=lambda arguments: " ".join(argument[:24] for argument in arguments),
)
def test_an_argument_of_any_length_is_answered(headroom: Headroom, arguments: list[str]) -> None:
    outcome = headroom(*arguments)
    assert outcome.code in (2, 4), outcome.errors[-300:]
    assert len(outcome.errors) < LONGEST_MESSAGE, outcome.errors[-300:]


def test_a_message_says_how_much_of_a_long_argument_it_leaves_out(headroom: Headroom) -> None:
    outcome = headroom("1" * LONG)
    assert outcome.errors.startswith("headroom: unknown command '111")
    assert "bytes left out] 111" in outcome.errors and "Known: run, " in outcome.errors


def test_bytes_that_are_no_characters_are_left_out_too(headroom: Headroom) -> None:
    outcome = headroom("\udc80" * LONG)
    assert outcome.code == 2 and len(outcome.errors) < LONGEST_MESSAGE


DEPTH = 100_000


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * DEPTH) + " = 1\n",
        "[" + ".".join("a" * DEPTH) + "]\n",
        "x = { " + ".".join("a" * DEPTH) + " = 1 }\n",
        ".".join(['"a"'] * DEPTH) + " = 1\n",
        "x = " + "[" * DEPTH + "]" * DEPTH + "\n",
        "x = " + "{ a = " * DEPTH + "1" + " }" * DEPTH + "\n",
        f'name = "{"n" * 1_000_000}"\n',
        COUNTING_SUITE.replace("bfc(growth=off)", "1" * 1_000_000),
        COUNTING_SUITE.replace("growth=off", "growth=" + "1" * 1_000_000),
        COUNTING_SUITE.replace("width=8", "width=" + "1" * 1_000_000),
    ],
    ids=["key", "table", "inline", "quoted", "lists", "tables", "name", "spec", "flag", "number"],
)
def test_a_suite_of_any_depth_and_length_is_refused_by_file_and_line(headroom: Headroom, text: str) -> None:
    outcome = headroom("run", headroom.write("deep.toml", text), "--dry-run")
    assert outcome.code == 2, outcome.errors[-300:]
    assert outcome.errors.startswith("headroom: deep.toml:")
