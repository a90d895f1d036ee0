#!/usr/bin/python3
"""Writes strategies/README.md: for each choice of each axis what it saves, costs and breaks.

Only the sentences here are written by hand: the choices, their descriptions and
exclusions come from `headroom list --json`, bytes and counts from `headroom plan --json` on a
simulated card.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "strategies" / "README.md"
CARD = "v100-16gb"
WORKLOADS = {
    "BERT-base, 32 × 128": "bert(size=base,batch=32,sequence=128)",
    "ResNet-50, 64 × 224²": "resnet(preset=paper,depth=50,batch=64)",
}
OPTIMIZER = "adam"
# Axis, its section in `headroom list`, and the choice that the others are compared with.
AXES = [
    ("checkpointing", "checkpointings", "none"),
    ("accumulation", "accumulations", "none"),
    ("optimizer", "optimizers", OPTIMIZER),
    ("precision", "precisions", "fp32"),
    ("pruning", "prunings", "none"),
    ("execution", "executions", "last_use"),
]

HEAD = f"""# What each strategy saves, costs and breaks

`scripts/tradeoffs.py` writes this page, and a test (`scripts/tradeoffs.py --check`) fails when it is out
of date. Nothing here is measured. Everything is counted on the Programs of one training step in fp32
with `{OPTIMIZER}`, for a simulated {CARD}, as `headroom plan` does. It holds under the rules `dense`
(plain sizes, without the workspaces of a library).

| column | meaning |
|---|---|
| live | The peak of live bytes, below which no allocator can go, including weights and optimizer states. The change against the first row is in brackets |
| again | Ops of the forward pass that are recomputed |
| ops | Ops that compute in a step, and how many more than in the first row. Where each op is a kernel of its own, these are kernel launches |
| FLOP | Floating-point operations of convolutions and matrix products, against the first row |
| moved | Bytes that all ops read and write, each operand once and whole, against the first row. A device moves fewer bytes where caches help or a table is only looked up, and more where a kernel reads its operands twice. Copies to the host and back count on both sides |
| host | The peak of host memory that holds what was taken from the device |

The **time** that these choices cost is not counted here; `headroom run` measures it. Each choice is combined
with the defaults of all other axes. "Excludes" names what a choice cannot be combined with.
"""


def headroom(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = os.environ.get("HEADROOM", str(ROOT / "build" / "headroom"))
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def listed(section: str) -> list[dict[str, Any]]:
    done = headroom("list", section, "--json")
    if done.returncode != 0:
        sys.exit(f"scripts/tradeoffs.py: headroom list {section}: {done.stderr.strip()}")
    return json.loads(done.stdout)[section]


def planned(workload: str, axis: str, choice: str) -> dict[str, Any] | str:
    """The plan of a configuration, or why there is none."""
    axes = {"optimizer": OPTIMIZER, axis: choice, "allocator": "malloc", "rules": "dense"}
    settings = [word for name, value in axes.items() for word in ("-a", f"{name}={value}")]
    done = headroom("plan", workload, "--device", f"meta:{CARD}", "--steps", "1", *settings, "--json")
    if done.returncode == 2:
        return done.stderr.strip().removeprefix("headroom: ")
    if done.returncode not in (0, 3):  # 3: does not fit, but is counted
        sys.exit(f"scripts/tradeoffs.py: {workload} {axis}={choice}: {done.stderr.strip()}")
    (plan,) = json.loads(done.stdout)["plans"]
    return plan


def figures(plan: dict[str, Any] | str, base: dict[str, Any], columns: list[str]) -> str:
    if isinstance(plan, str) or plan["not_engaged"]:
        words = f"not possible: {plan}" if isinstance(plan, str) else "does nothing here"
        return words + " |" * len(columns)

    def change(field: str) -> str:
        if plan is base:
            return ""
        # Adding zero turns a rounded -0.0 into 0.0.
        return f"{round(100 * (plan[field] / base[field] - 1), 1) + 0:+.1f} %"

    live = f"{plan['peak_live_bytes'] / 2**30:.2f} GiB"
    more = plan["ops_per_step"] - base["ops_per_step"]
    texts = {
        "live": f"{live} ({change('peak_live_bytes')})" if plan is not base else live,
        "again": str(plan["recomputed_ops_per_step"]),
        "ops": f"{plan['ops_per_step']} ({more:+d})" if plan is not base else str(plan["ops_per_step"]),
        "FLOP": change("flops_per_step") or f"{plan['flops_per_step'] / 1e12:.2f}·10¹²",
        "moved": change("touched_bytes_per_step") or f"{plan['touched_bytes_per_step'] / 2**30:.1f} GiB",
        "host": f"{plan['host_bytes_peak'] / 2**30:.2f} GiB" if plan["host_bytes_peak"] else "0",
    }
    return " | ".join(texts[column] for column in columns) + " |"


def columns_of(plans: list[dict[str, Any] | str]) -> list[str]:
    """The columns of a table; "host" is one only if some choice takes host memory."""
    offloads = any(not isinstance(plan, str) and plan["host_bytes_peak"] for plan in plans)
    return ["live", "again", "ops", "FLOP", "moved"] + (["host"] if offloads else [])


def choices(entries: list[dict[str, Any]], neutral: str) -> list[str]:
    """The neutral choice first. If it is a plug-in like the others (there is always an optimizer),
    their bare names are choices too."""
    names = [entry["name"] for entry in entries]
    examples = [example for entry in entries for example in entry["examples"]]
    return list(dict.fromkeys([neutral] + (names if neutral in names else []) + examples))


def words(axis: str, entry: dict[str, Any]) -> list[str]:
    # Tests compare these axes with the losses of the plain step; elsewhere an empty text promises nothing.
    unsaid = ("nothing; on host, losses are the same bit for bit" if axis in ("checkpointing", "execution")
              else "not stated")
    lines = [f"- `{entry['name']}`: {entry['summary']}. Breaks: {entry['breaks'] or unsaid}."]
    excluded: dict[tuple[str, str, str], list[str]] = {}
    for one in entry["excludes"]:
        excluded.setdefault((one["axis"], one["name"], one["why"]), []).append(f"`{one['example']}`")
    for (other, name, why), examples in excluded.items():
        lines.append(f"  {', '.join(examples)} excludes `{other}={name}`: {why}.")
    return lines


def page() -> str:
    sections = {axis: listed(section) for axis, section, _ in AXES}
    wanted = [(workload, axis, choice) for axis, _, neutral in AXES
              for choice in choices(sections[axis], neutral) for workload in WORKLOADS.values()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plans = dict(zip(wanted, pool.map(lambda one: planned(*one), wanted)))
    lines = [HEAD]
    for axis, _, neutral in AXES:
        lines += [f"## {axis}", ""]
        for entry in sections[axis]:
            lines += words(axis, entry)
        for title, workload in WORKLOADS.items():
            base = plans[workload, axis, neutral]
            if isinstance(base, str):
                sys.exit(f"scripts/tradeoffs.py: {workload} {axis}={neutral}: {base}")
            columns = columns_of([plans[workload, axis, choice] for choice in choices(sections[axis], neutral)])
            lines += ["", f"| {title} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
            for choice in choices(sections[axis], neutral):
                lines.append(f"| `{choice}` | {figures(plans[workload, axis, choice], base, columns)}")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/tradeoffs.py", description=__doc__.splitlines()[0],
                                     epilog="HEADROOM names the program; otherwise build/headroom.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page is out of date")
    check = parser.parse_args().check
    text = page()
    if not check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE.relative_to(ROOT)} is out of date: run scripts/tradeoffs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
