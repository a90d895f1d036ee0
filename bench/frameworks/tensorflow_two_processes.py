"""Two processes train at once on the same cards. The second starts when the first has trained and holds its
memory.

visible: all (both see every card, as with CUDA_VISIBLE_DEVICES=0,1 in each) or own (each sees one card, with
CUDA_VISIBLE_DEVICES=0 and =1). The other settings are those of tensorflow_training.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import card

TRAINING = Path(__file__).with_name("tensorflow_training.py")


def start(arguments, own_card):
    environment = dict(os.environ)
    if own_card is not None:
        environment["CUDA_VISIBLE_DEVICES"] = str(own_card)
    return subprocess.Popen([sys.executable, "-s", str(TRAINING), *arguments, "--hold", "on"], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def main():
    arguments = sys.argv[1:]
    place = arguments.index("--visible")
    visible = arguments[place + 1]
    del arguments[place : place + 2]
    card.one_of("visible", visible, ("all", "own"))
    processes, results = [], []
    for number in range(2):
        processes.append(start(arguments, number if visible == "own" else None))
        for line in processes[-1].stdout:
            if line.startswith('{"engine"'):
                results.append(json.loads(line))
                break
    for process in processes:
        process.communicate()
    if len(results) < 2:
        sys.exit("a process ended without a result")
    notes = [f"Process {number}: {result['note']}" for number, result in enumerate(results, 1) if result["note"]]
    trained = min(result["figures"]["trained"] for result in results)
    card.report(results[0]["engine"], {"trained": trained}, " ".join(notes))


main()
