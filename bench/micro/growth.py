#!/usr/bin/python3
"""How the cost of planning, replay, simulated steps, reports and allocators grows with size.

  growth.py measure PART… [--build DIR] [--instances DIR]    writes bench/micro/growth.json
  growth.py draw                                             from it, the figure and the table of the documentation
  growth.py check [--build DIR]                              exit code 1 if an allocator takes more of tcmalloc's
                                                             time than it may, 2 if that cannot be measured

PART: planning, instances, replay, meta, report, allocators; default: all. Each part is kept with the processor, the
date and the commit that it was measured with. `instances` reads MiniMalloc CSV files of DIR, such as those of
github.com/cappadokes/idealloc (benchmarks/): NAME.csv, or NAME.CAPACITY.csv where the capacity is given.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator, NoReturn

from growth_page import LIMITS, PEER, Row, ratios, write_page

SOURCE = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_suffix(".json")

LIVE = (500, 5_000, 50_000)
EVENTS = (15_500, 31_000, 62_000, 124_000)
CELLS = (300, 1_000, 3_000)  # smaller runs have more charts


def refuse(message: str) -> NoReturn:
    print(f"growth.py: {message}", file=sys.stderr)
    sys.exit(2)


def google(build: Path, pattern: str, repetitions: int = 1) -> list[dict[str, Any]]:
    """The medians of micro-benchmarks whose names match."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            [
                build / "bench/micro/micro_benchmarks", f"--benchmark_filter={pattern}", "--benchmark_min_time=0.1",
                f"--benchmark_repetitions={repetitions}", "--benchmark_enable_random_interleaving=true",
                f"--benchmark_out={file.name}", "--benchmark_out_format=json",
            ],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        found = json.loads(Path(file.name).read_text())["benchmarks"]
    if not found:
        refuse(f"no micro-benchmark matches {pattern}")
    return [one for one in found if repetitions == 1 or one.get("aggregate_name") == "median"]


def seconds(one: dict[str, Any]) -> float:
    return one["cpu_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[one["time_unit"]]


def planning(options: argparse.Namespace) -> Iterator[Row]:
    for one in google(options.build, "^planning/"):
        row = {"what": one["run_name"].split("/")[1], "size": round(one["buffers"]), "seconds": seconds(one)}
        yield row | {key: one[key] for key in ("percent_above_bound", "solved_of_10") if key in one}


def instances(options: argparse.Namespace) -> Iterator[Row]:
    if options.instances is None:
        refuse("name the folder of the instances: --instances DIR")
    for file in sorted(options.instances.glob("*.csv")):
        name, _, capacity = file.stem.rpartition(".")
        if not capacity.isdecimal():  # part of the name, as in pangu_2.6B
            name, capacity = file.stem, ""
        answer = json.loads(
            subprocess.run(
                [
                    options.build / "headroom", "replay", file, "--allocator", "malloc", "--json", "--plan-time", "10s",
                    "--capacity", capacity or "1TiB",
                ],
                check=True, capture_output=True,
            ).stdout
        )  # fmt: skip
        plan = answer["planned_ahead"]
        yield {
            "what": name,
            "size": answer["requests"] // 2,
            "seconds": plan["seconds"],
            "percent_above_bound": 100 * (plan["bytes"] / plan["lower_bound_bytes"] - 1),
        } | ({"fits": plan["fits"]} if capacity else {})


def history_of(events: int, file: Path) -> None:
    """An RMM log: weights, then steps whose forward pass keeps most of what it allocates for the backward pass."""
    chance = random.Random(events)
    per_step = 6_200
    lines = ["Thread,Time,Action,Pointer,Size,Stream"]

    def event(action: str, block: int, size: int) -> None:
        lines.append(f"0,0:0:0:{len(lines)},{action},0x{(block + 1) << 26:x},{size},0")

    sizes = [2 ** chance.uniform(9, 25) for _ in range(200)]  # those of a network repeat
    block = 300
    for weight in range(block):
        event("allocate", weight, int(chance.choice(sizes)))
    order = random.Random(1)
    while len(lines) <= events:
        order.seed(1)  # every step does the same
        kept: list[tuple[int, int]] = []
        for _ in range(per_step // 4):
            size = int(order.choice(sizes))
            event("allocate", block, size)
            kept.append((block, size))
            block += 1
            if order.random() < 0.3:
                event("free", *kept.pop())
        while kept:
            size = int(order.choice(sizes))
            event("allocate", block, size)
            event("free", *kept.pop())
            event("free", block, size)
            block += 1
    file.write_text("\n".join(lines) + "\n")


def replay(options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        for events in EVENTS:
            file = Path(scratch) / "rmm_log.csv"
            history_of(events, file)
            began = time.monotonic()
            answer = subprocess.run(
                [options.build / "headroom", "replay", file, "--all", "--json", "--capacity", "80GiB"],
                check=True, capture_output=True,
            ).stdout  # fmt: skip
            took = time.monotonic() - began
            told = json.loads(answer)
            yield {"what": "all strategies, smallest capacities", "size": told["requests"], "seconds": took,
                   "strategies": len(told["strategies"])}  # fmt: skip


def meta(options: argparse.Namespace) -> Iterator[Row]:
    for one in google(options.build, "^training_trace/step", 3):
        yield {"what": "step of BERT", "size": round(one["events"]), "seconds": seconds(one),
               "layers": int(one["run_name"].split("/")[-1])}  # fmt: skip


def report(options: argparse.Namespace) -> Iterator[Row]:
    sys.path[:0] = [str(SOURCE), str(SOURCE / "tests" / "report")]
    from large_run import write_large_run

    for cells in CELLS:
        with tempfile.TemporaryDirectory() as scratch:
            run = Path(scratch) / "run"
            run.mkdir()
            write_large_run(run, cells)
            times = [processor_time([sys.executable, "-m", "reports", run]) for _ in range(5)]
            yield {"what": "report, processor time", "size": cells, "seconds": statistics.median(times),
                   "html_bytes": (run / "report.html").stat().st_size}  # fmt: skip


def processor_time(command: list[Any]) -> float:
    """Of the command and the processes that it starts: other programs on the machine change it less than the time
    until the command ends."""
    before = os.times()
    subprocess.run(command, check=True, cwd=SOURCE, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def allocators(options: argparse.Namespace) -> Iterator[Row]:
    names = "|".join(re.escape(name) for name in (PEER, *LIMITS))
    found = google(options.build, f"^allocators/(training_step|random_[0-9]+_live)/({names})$", 5)
    if not any(one["run_name"].endswith("/" + PEER) for one in found):
        refuse("tcmalloc is not installed: apt-get install libtcmalloc-minimal4")
    for one in found:
        load, name = one["run_name"].split("/", 2)[1:]
        live = re.search(r"\d+", load)
        yield {"what": name, "size": int(live[0]) if live else 0, "seconds": one["s_per_pair"]}


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "planning": planning, "instances": instances, "replay": replay, "meta": meta, "report": report,
    "allocators": allocators,
}  # fmt: skip


def processor() -> str:
    name = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return f"{name[1] if name else 'unknown'}, {len(os.sched_getaffinity(0))} cores"


def measure(options: argparse.Namespace) -> int:
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for part in options.parts or PARTS:
        rows = []
        for row in PARTS[part](options):
            print(f"{part}: {row}", flush=True)
            rows.append(row)
        record[part] = {
            "processor": processor(),
            "date": datetime.date.today().isoformat(),
            "commit": subprocess.run(
                ["git", "describe", "--always", "--dirty"], cwd=SOURCE, check=True, capture_output=True, text=True
            ).stdout.strip(),
            "load": round(os.getloadavg()[0], 1),
            "rows": rows,
        }
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def check(options: argparse.Namespace) -> int:
    found = ratios(list(allocators(options)))
    for name, ratio in found.items():
        print(f"{name}: {ratio:.2f} of {PEER}'s time, at most {LIMITS[name]}")
    return int(any(ratio > LIMITS[name] for name, ratio in found.items()))


def draw(options: argparse.Namespace) -> int:
    if not RECORD.exists():
        refuse("nothing was measured yet: growth.py measure")
    write_page(json.loads(RECORD.read_text()))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["measure", "draw", "check"])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--build", type=Path, default=SOURCE / "build")
    parser.add_argument("--instances", type=Path)
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"{unknown[0]}: is no part; the parts are {', '.join(PARTS)}")
    options.build = options.build.absolute()
    return {"measure": measure, "draw": draw, "check": check}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
