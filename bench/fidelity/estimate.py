#!/usr/bin/env python3
"""Asks other tools what the rows of measure.py take, and writes what they say into estimates.csv.

Asks what estimates.csv does not have yet. Needs a build and the environments pytorch-2.6 and libraries of
`scripts/setup --with`. `measure.py --table` then shows the figures beside those of the virtual GPU."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import measure
import rows

HERE = Path(__file__).resolve().parent
COLUMNS = ("row", "estimator", "bytes", "version", "note")


@dataclass
class Tool:
    name: str
    environment: str  # in which the tool is installed
    package: str  # whose version is recorded
    script: tuple[str, ...]  # in estimators/, and its first arguments
    only_adam: bool = False
    only_transformers: bool = False

    @property
    def python(self):
        return measure.python_of(self.environment)

    def applies_to(self, row):
        if self.only_transformers and row.kind == rows.CONVOLUTIONAL:
            return False
        return row.has_model and (row.optimizer in ("Adam", "AdamW") or not self.only_adam)

    def ask(self, headroom, asked):
        """Returns for each row the bytes that the tool estimates ("" = none), and why it estimates none."""
        script, *arguments = self.script
        command = [self.python, HERE / "estimators" / script, *arguments]
        command += [json.dumps(row.program) for row in asked]
        with tempfile.TemporaryDirectory() as directory:
            # Fake tensors on a GPU need a GPU, here the virtual one. Their values are not followed.
            start = [headroom, "gpu", "h100", "--until-step", "all", "--out", f"{directory}/run", "--"]
            process = subprocess.run(
                [*start, *command], capture_output=True, text=True,
                env={**os.environ, "HEADROOM_GPU_VALUES": "off", "HEADROOM_GPU_MODULES": "off"},
            )
        said = re.findall(r"^(bytes|none) (.*)$", process.stdout, re.MULTILINE)
        answers = [(text, "") if kind == "bytes" else ("", text) for kind, text in said]
        return answers + [("", measure.last_line(process.stderr))] * (len(asked) - len(answers))


TOOLS = (
    Tool("memtracker", "pytorch-2.6", "torch", ("mem_tracker.py",)),
    Tool("accelerate", "libraries", "accelerate", ("model_states.py", "accelerate"), only_adam=True),
    Tool("deepspeed", "libraries", "deepspeed", ("model_states.py", "deepspeed"), only_adam=True),
    Tool("megatron", "libraries", "transformers", ("model_states.py", "megatron"), only_adam=True, only_transformers=True),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only the rows whose names contain all of them")
    parser.add_argument("--headroom", default=measure.ROOT / "build" / "headroom", type=Path)
    parser.add_argument("--estimates", default=HERE / "estimates.csv", type=Path)
    options = parser.parse_args()
    for tool in TOOLS:
        if not tool.python.exists():
            sys.exit(f"{tool.environment} is missing: run scripts/setup --with {tool.environment}")
        version = f"{tool.package} {measure.version_in(tool.python, tool.package)}"
        done = measure.read_results(options.estimates)
        known = {(e["row"], e["estimator"]) for e in done if e["bytes"]}
        asked = [
            row
            for row in rows.read()
            if tool.applies_to(row)
            and (row.name, tool.name) not in known
            and all(word in row.name for word in options.words)
        ]
        answers = tool.ask(options.headroom, asked) if asked else []
        for row, (said, note) in zip(asked, answers):
            done.append(dict(zip(COLUMNS, (row.name, tool.name, said, version, note))))
            print(f"{row.name}  {tool.name}  {said or note}", flush=True)
        latest = {(e["row"], e["estimator"]): e for e in done}
        measure.write_results(options.estimates, latest.values(), COLUMNS, ("row", "estimator"))


if __name__ == "__main__":
    main()
