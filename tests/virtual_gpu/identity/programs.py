"""Random programs of requests to an allocator, and the answers of different servers. serve_requests.cpp
documents the lines."""

import os
import subprocess

MIB = 2**20
SERVE_REQUESTS = os.environ["SERVE_REQUESTS"]


class Program:
    """Requests to be sent to several servers. Each server gets a first line of its own."""

    def __init__(self, requests):
        self.requests = requests

    def lines(self, first):
        return [f"program {first}", *self.requests]


def random_size(chance, least, most):
    """Draws a log-uniform size, round or not, or sometimes one of a few repeated sizes, so that there are
    many equal blocks to choose from."""
    if chance.random() < 0.4:
        return max(least, min(most, chance.choice([1, 3, 4, 9, 16, 33]) * 2 ** chance.randrange(9, 24)))
    size = int(least * (most / least) ** chance.random())
    return size if chance.random() < 0.5 else max(least, size // 512 * 512)


def random_program(chance, length, least, most, budget, streams=1, trims=True):
    """Draws requests that hold up to about `budget` bytes, so that many programs run out of memory on a
    device of that size."""
    live, held, lines = {}, 0, []
    for key in range(length):
        filling = held < budget * chance.uniform(0.6, 1.6)
        if live and (not filling or chance.random() < 0.35):
            freed = chance.choice(list(live))
            held -= live.pop(freed)
            lines.append(f"free {freed}")
        elif trims and chance.random() < 0.01:
            lines.append("trim")
        elif streams > 1 and live and chance.random() < 0.1:
            lines.append(f"record {chance.choice(list(live))} {chance.randrange(streams)}")
        else:
            live[key] = random_size(chance, least, most)
            held += live[key]
            lines.append(f"allocate {key} {live[key]} {chance.randrange(streams)}")
    return Program(lines)


def answers_of_headroom(programs, firsts):
    """Returns the lines of all programs."""
    text = "\n".join(line for program, first in zip(programs, firsts) for line in program.lines(first))
    served = subprocess.run([SERVE_REQUESTS], input=text + "\n", capture_output=True, text=True)
    assert served.returncode == 0, served.stderr
    return split(served.stdout.splitlines(), programs)


def split(lines, programs):
    """Returns the lines that answer each program."""
    assert len(lines) == sum(len(program.requests) for program in programs)
    remaining = iter(lines)
    return [[next(remaining) for _ in program.requests] for program in programs]


def divergence(program, theirs, ours):
    """Describes the first request that two servers answer differently; "" if there is none."""
    for position, (request, their, our) in enumerate(zip(program.requests, theirs, ours)):
        if their != our:
            return f"request {position}, '{request}': {their} there, {our} here"
    return ""
