#!/usr/bin/env python3
"""Attacks the built program for the given time and prints what it survived, one row per attack.

usage: campaign.py HEADROOM [--seconds N] [--seed N] [ATTACK ...]

ATTACKs (default: all): calls (every system call of a run fails once), kills (kill -9 at random points of
runs, merges, history and importers), crowd (several at once on one folder), odd (locales, terminals, umasks,
zones, users), full (a disk that is too small, which needs root; a limit for the length of files), clock (the
clock of the day jumps), long (arguments of 100,000 characters). If the program does not survive an attempt,
the row says how to repeat it, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
from pathlib import Path

from attacked import Program, Tries
from interruptions import crowd, fail_calls, kill_exports, kill_runs, kill_stores
from surroundings import fill_disk, jump_clock, limit_files, long_arguments, odd

ATTACKS = {
    "calls": [("a system call of a run fails", fail_calls)],
    "kills": [("kill -9 of a run, up to three times", kill_runs), ("kill -9 of export", kill_exports),
              ("kill -9 of merge and history add", kill_stores)],
    "crowd": [("three resumes and two runs at once", crowd)],
    "odd": [("locale, terminal, umask, zone, home, user", odd)],
    "full": [("a disk too small", fill_disk), ("a limit for the length of files", limit_files)],
    "clock": [("the clock of the day jumps", jump_clock)],
    "long": [("an argument of 100,000 characters", long_arguments)],
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headroom", type=lambda text: Path(text).resolve())
    parser.add_argument("--seconds", type=float, default=60, help="for each row")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("attacks", nargs="*", metavar="ATTACK")
    options = parser.parse_intermixed_args()
    if unknown := set(options.attacks) - ATTACKS.keys():
        parser.error(f"no attack is called {', '.join(sorted(unknown))}: {', '.join(ATTACKS)}")
    print(f"seed {options.seed}", flush=True)
    survived_all = True
    for title, attack in [row for name in options.attacks or ATTACKS for row in ATTACKS[name]]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory(prefix="headroom-campaign-") as place:
            Path(place).chmod(0o755)
            tries = Tries(options.seconds, options.seed)
            attack(Program(options.headroom, Path(place) / "place"), tries)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cost = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        survived_all &= not tries.failures
        print(f"{title}: {tries.count} tried, {tries.count - len(tries.failures)} survived, {cost:.0f} s of processor time",
              *sorted(set(tries.failures)), sep="\n  ", flush=True)  # fmt: skip
    return 0 if survived_all else 1


if __name__ == "__main__":
    sys.exit(main())
