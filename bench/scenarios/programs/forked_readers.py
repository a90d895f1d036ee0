"""A parent holds 64 MiB, starts workers, and each of them reads all of it in eight rounds.

data: objects (a list of small objects, each with a reference count that reading writes), array (the
same bytes in one block, as NumPy or Arrow keep them). read=off: the workers are there and read
nothing. start: fork (pages are shared until somebody writes), spawn (each worker is given its own
copy). After every round all processes are measured, while no worker runs.
"""

import gc
import multiprocessing

import meter

HELD = 64 << 20
ROUNDS = 8
PAYLOAD = 100
OBJECT = 136  # a bytes object of PAYLOAD with its header, rounded up, and the list's pointer
given = meter.options(data="objects", read="on", start="fork", workers=2)


def hold(data):
    if data == "array":
        return bytearray(b"x") * HELD
    return [b"%0*d" % (PAYLOAD, i) for i in range(HELD // OBJECT)]


def look_at(data, part):
    """Reads one of ROUNDS parts, record by record; returns what keeps it from being skipped."""
    if isinstance(data, bytearray):
        view = memoryview(data)
        length = len(view) // ROUNDS
        return sum(view[at] for at in range(part * length, (part + 1) * length, PAYLOAD))
    length = len(data) // ROUNDS
    return sum(record[0] for record in data[part * length : (part + 1) * length])


def work(data, read, line):
    line.send(0)
    for part in range(ROUNDS):
        line.recv()
        line.send(look_at(data, part) if read == "on" else 0)
    line.recv()


def main():
    gc.disable()  # garbage collection would write to objects, too
    start = meter.resident()
    data = hold(given["data"])
    held = meter.resident() - start
    alone = meter.proportional()
    context = multiprocessing.get_context(given["start"])
    lines, workers = [], []
    for _ in range(given["workers"]):
        line, end = context.Pipe()
        worker = context.Process(target=work, args=(data, given["read"], end))
        worker.start()
        lines.append(line)
        workers.append(worker)
    processes = ["self", *(worker.pid for worker in workers)]

    def together():
        for line in lines:
            line.recv()  # every worker has done its round and waits
        return sum(map(meter.proportional, processes))

    over_time = [together()]
    unshared = sum(map(meter.unshared, processes[1:]))
    for part in range(ROUNDS):
        for line in lines:
            line.send(part)
        over_time.append(together())
    meter.report(
        why_not_engaged="" if held > HELD // 2 else f"only {held} bytes were held",
        tree_growth_bytes=over_time[-1] - alone,
        growth_bytes_per_step=meter.slope(over_time),
        copied_share=(sum(map(meter.unshared, processes[1:])) - unshared) / held / len(workers),
        resident_growth_bytes=sum(map(meter.resident, processes)) - held - start,
    )
    for line, worker in zip(lines, workers):
        line.send(None)
        worker.join()


if __name__ == "__main__":
    main()
