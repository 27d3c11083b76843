#!/usr/bin/env python3
"""How long large jobs take on 1 to 1000 machines: a simulation, from rates measured on one.

    python3 bench/scaling.py           the tables of docs/scaling.md
    python3 bench/scaling.py --check   the model against what can be worked out by hand

What was measured is in MEASURED; what nobody here has is in STORAGE, and is assumed: change it for the
machines you have. A batch is simulated share by share, as rank 0 hands files out: each machine works on its share,
and waits where the file system's data, its metadata or rank 0 are busy. One image in a file of rows is
arithmetic: all ranks read, compute and write their rows at once.
"""
import heapq
import random
import sys

# Of one machine with 16 cores and an H200: docs/performance.md, "Several ranks", says how.
MEASURED = {
    "file_seconds": 7.3 / 256,  # a 24 MP RGB PNG to PNG, all cores busy with others like it
    "in_bytes": 29.3e6,  # of one such file,
    "out_bytes": 12.9e6,  # and of what is written
    "ask_seconds": 30e-6,  # rank 0's time to hand out a share,
    "tell_seconds": 30e-6,  # and for each file: its report (measured with a line of a record beside it)
    "smooth_per_second": 27e9,  # bytes of a plain image read and filtered, xy,
    "hist_per_second": 39e9,  # and counted
    "start_seconds": 0.8,  # of a rank with a GPU
}
# Assumed: bytes a second of all machines together, and of one; operations on names a second.
STORAGE = {
    "file server, 1.2 GB/s": {"all": 1.2e9, "one": 1.2e9, "names": 5e3},
    "parallel, 50 GB/s, 10 to a machine": {"all": 50e9, "one": 10e9, "names": 50e3},
    "parallel, 500 GB/s, 20 to a machine": {"all": 500e9, "one": 20e9, "names": 200e3},
}
NAMES_A_FILE = 6  # looked at, opened, created, looked at, renamed, closed
LAUNCH_SECONDS = 5.0  # assumed: starting ranks on many machines
MACHINES = (1, 3, 10, 30, 100, 300, 1000)
NOISE = 0.3  # files differ by so much in what they take, up and down


def start_seconds(machines, m):
    return m["start_seconds"] + (LAUNCH_SECONDS if machines > 1 else 0)


def share_of(remaining, ranks):
    """What rank 0 hands out at a time."""
    return max(1, min(256, remaining // (8 * ranks)))  # src/mpi/batch_mpi.c


def batch_limits(machines, storage, m=MEASURED):
    """Files a second that each part could do, if it were alone."""
    per_file = m["in_bytes"] + m["out_bytes"]
    return {
        "computing": machines / m["file_seconds"],
        "the network": machines * storage["one"] / per_file,
        "the file system": storage["all"] / per_file,
        "its names": storage["names"] / NAMES_A_FILE,
        "rank 0": 1 / m["tell_seconds"],
    }


def slowest(limits):
    return min(limits, key=limits.get)


def simulate_batch(files, machines, storage, m=MEASURED, seed=1):
    """Seconds until the last file is done, and what most of them waited for."""
    noise = random.Random(seed)
    limits = batch_limits(machines, storage, m)
    # While all are busy, each has its share of what is shared.
    pace = min(limits["computing"], limits["the network"], limits["the file system"], limits["its names"])
    a_file = machines / pace
    first_free = 0.0  # rank 0
    remaining = files
    end = 0.0
    asking = [(0.0, i, 0) for i in range(machines)]
    heapq.heapify(asking)
    while asking:
        now, machine, told = heapq.heappop(asking)
        first_free = max(first_free, now) + m["ask_seconds"] + told * m["tell_seconds"]
        end = max(end, first_free)
        if not remaining:
            continue
        share = share_of(remaining, machines)
        remaining -= share
        takes = sum(a_file * noise.uniform(1 - NOISE, 1 + NOISE) for _ in range(share))
        heapq.heappush(asking, (first_free + takes, machine, share))
    return start_seconds(machines, m) + end, slowest(limits)


def image_seconds(side, halo, machines, storage, writes, m=MEASURED):
    """One grey image of side x side bytes, and what it waits for."""
    rows = side / machines
    held = min(side, rows + 2 * halo)
    moved = (held + (rows if writes else 0)) * side
    parts = {
        "computing": held * side / m["smooth_per_second" if writes else "hist_per_second"],
        "the network": moved / storage["one"],
        "the file system": moved * machines / storage["all"],
    }
    slow = max(parts, key=parts.get)
    return start_seconds(machines, m) + parts[slow], slow


def text(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def print_table(title, cell):
    print(f"| {title} | " + " | ".join(STORAGE) + " |")
    print("|---|" + "---|" * len(STORAGE))
    for machines in MACHINES:
        cells = []
        for storage in STORAGE.values():
            seconds, slow = cell(machines, storage)
            cells.append(f"{text(seconds)}, {slow}")
        print(f"| {machines} | " + " | ".join(cells) + " |")
    print()


def check():
    """Where nothing is shared and nothing varies, the simulation is a division."""
    free = {"all": 1e18, "one": 1e18, "names": 1e18}
    quick = dict(MEASURED, ask_seconds=0.0, tell_seconds=1e-12, start_seconds=0.0)
    for machines in (1, 7, 64):
        took, slow = simulate_batch(70000, machines, free, quick)
        ideal = 70000 * quick["file_seconds"] / machines + (LAUNCH_SECONDS if machines > 1 else 0)
        assert slow == "computing" and abs(took / ideal - 1) < 0.02, (machines, took, ideal)
    # A rank 0 that takes a millisecond a file is the limit from 50 machines of 20 files a second on.
    slow_first = dict(quick, tell_seconds=1e-3)
    took, slow = simulate_batch(70000, 640, free, slow_first)
    assert slow == "rank 0" and took >= 70.0, (took, slow)
    # Shares add up, however many ranks there are.
    for ranks in (1, 3, 1000):
        remaining, handed = 12345, 0
        while remaining:
            share = share_of(remaining, ranks)
            handed, remaining = handed + share, remaining - share
        assert handed == 12345
    seconds, slow = image_seconds(1e6, 0, 1, {"all": 1e9, "one": 1e9, "names": 1}, True)
    assert slow in ("the network", "the file system") and abs(seconds - 2000 - MEASURED["start_seconds"]) < 1e-6
    print("the model agrees with what can be worked out by hand")


def main():
    if sys.argv[1:] == ["--check"]:
        check()
        return
    print_table("machines: a million 24 MP PNGs", lambda n, s: simulate_batch(1000000, n, s))
    print_table("machines: `smooth --axis xy`, 1,000,000 x 1,000,000", lambda n, s: image_seconds(1e6, 3, n, s, True))
    print_table("machines: `hist`, the same image", lambda n, s: image_seconds(1e6, 0, n, s, False))


main()
