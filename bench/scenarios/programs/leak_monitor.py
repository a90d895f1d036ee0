"""A program with worker processes, one of which may leak; a monitor looks at memory after each step.

meter: main (resident memory of the main process, as psutil shows it), sum (of it and its children),
shares (the same with shared pages divided among their sharers). leak: main, worker, none (memory
that grows in warm-up and then stays). kib: leaked per step. An alarm is a slope above half of it,
over 12 steps after 4 of warm-up.
"""

import multiprocessing
import random

import meter

STEPS, WARMUP, ROUNDS = 16, 4, 3
given = meter.options(meter="main", leak="worker", kib=1024)
chance = random.Random(given["seed"])
leaked = given["kib"] << 10
kept_here = []  # kept over all rounds: the next round would reuse freed memory unnoticed


def touched(size):
    return bytearray(b"x") * size


def work(connection, leaks):
    kept = []
    while connection.recv() is not None:
        touched(chance.randrange(1, 1 << 18))  # and given back at once
        if leaks:
            kept.append(touched(leaked))
        connection.send(len(kept))


def reading(processes):
    if given["meter"] == "main":
        return meter.resident()
    one = meter.proportional if given["meter"] == "shares" else meter.resident
    return one() + sum(one(process.pid) for process in processes)


def alarm():
    context = multiprocessing.get_context("fork")
    pipes, processes, readings = [], [], []
    for worker in range(2):
        ours, theirs = context.Pipe()
        leaks = given["leak"] == "worker" and worker == 0
        process = context.Process(target=work, args=(theirs, leaks), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    for step in range(STEPS):
        for pipe in pipes:
            pipe.send(step)
        for pipe in pipes:
            pipe.recv()
        if given["leak"] == "main" or (given["leak"] == "none" and step < WARMUP):
            kept_here.append(touched(leaked))
        readings.append(reading(processes))
    for pipe, process in zip(pipes, processes):
        pipe.send(None)
        process.join()
    return meter.slope(readings[WARMUP:]) > leaked / 2


alarms = sum(alarm() for _ in range(ROUNDS)) / ROUNDS
name = "false_alarm_rate" if given["leak"] == "none" else "detection_rate"
meter.report(**{name: alarms})
