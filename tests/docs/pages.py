"""Reads the Markdown pages of the repository: code blocks with their markers, headings and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
GUIDES = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").rglob("*.md"))]
PAGES = sorted({*GUIDES, *SOURCE.glob("*.md"), *(page for folder in ("bench", "harness", "reports", "strategies")
                                                for page in (SOURCE / folder).rglob("*.md"))})

FENCE = re.compile(r"^(?: {4})?```(\w*)\n(.*?)^(?: {4})?```$", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"^ *<!-- ([a-z ]+?)(?:: (.*?))? -->\n+\Z", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    line: int  # of its first line of code, from 1
    language: str
    code: str
    marker: str | None  # "not run", "output", "example" or none
    detail: str | None  # what follows the colon


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page. A marker is an HTML comment directly above the fence."""
    found = []
    for fence in FENCE.finditer(text):
        marker = MARKER.search(text[: fence.start()])
        line = text.count("\n", 0, fence.start(2)) + 1
        found.append(Block(line, fence[1], fence[2], *(marker.groups() if marker else (None, None))))
    return found


def script_of(text: str) -> str:
    """The commands of a page that can be run, on the lines where the page has them."""
    lines = [""] * text.count("\n")
    for block in blocks(text):
        if block.language == "bash" and block.marker != "not run":
            lines[block.line - 1 : block.line - 1 + block.code.count("\n")] = block.code.splitlines()
    return "\n".join(lines) + "\n"


def anchors(text: str) -> set[str]:
    """The headings that GitHub and Python-Markdown give the same name."""
    names = set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE):
        heading = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).replace("`", "")
        kept = re.sub(r"[^\w\s-]", "", heading).strip().lower()
        if re.sub(r"[-\s]+", "-", kept) == kept.replace(" ", "-"):
            names.add(kept.replace(" ", "-"))
    return names


def links(text: str) -> list[str]:
    """Targets of links and pictures within the repository."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if not re.match(r"[a-z]+:", target)]


def files(text: str) -> list[str]:
    """Files of the repository that the prose names by their whole path; NAME and the like stand for many."""
    prose = FENCE.sub("", text)
    return re.findall(r"`((?:bench|docs|harness|reports|scripts|strategies|tests|workloads)/[a-z0-9_./-]*\.[a-z]+)`", prose)
