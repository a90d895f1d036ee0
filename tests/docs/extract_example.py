#!/usr/bin/python3
"""Prints the fenced code block that follows `<!-- example: NAME -->` in a Markdown file."""

import re
import sys
from pathlib import Path


def example(text, name):
    """The lines inside the fence after the marker; raises LookupError when there is none."""
    marker = rf"^<!-- example: {re.escape(name)} -->\n+```\w*\n(.*?)^```$"
    found = re.search(marker, text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"no example {name!r}")
    return found.group(1)


if __name__ == "__main__":
    sys.stdout.write(example(Path(sys.argv[1]).read_text(), sys.argv[2]))
