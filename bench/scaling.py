#!/usr/bin/env python3
"""Projection of large jobs to 1 to 1000 machines: a simulation based on rates measured on one machine.

    python3 bench/scaling.py           print the tables of docs/scaling.md
    python3 bench/scaling.py --check   check the model against analytic results

MEASURED holds measured rates. STORAGE holds assumed rates: change them for your machines. A batch is simulated share by
share, as rank 0 distributes files: each machine processes its share and waits while the data path or the metadata of
the file system, or rank 0, is busy. The time of one image in a file of rows is computed directly: all ranks read,
compute and write their rows concurrently.
"""
import heapq
import random
import sys

# One machine with 16 cores and an H200; method: docs/performance.md, "Several ranks".
MEASURED = {
    "file_seconds": 7.3 / 256,  # one 24 MP RGB PNG to PNG, all cores busy with such files
    "in_bytes": 29.3e6,  # size of such a file
    "out_bytes": 12.9e6,  # size of its output
    "handout_seconds": 30e-6,  # time of rank 0 to hand out a share
    "report_seconds": 30e-6,  # time of rank 0 per file for its report (measured with one line written to a file)
    "smooth_per_second": 27e9,  # bytes of a plain image read and filtered, axis xy
    "hist_per_second": 39e9,  # bytes read and counted
    "start_seconds": 0.8,  # start of a rank with a GPU
}
# The same machine with 1920x1080 PNGs by libpng: the additional time of 10,000 files over 2,000 (bench/batch.py), and with
# the GPU, which decodes and encodes them.
SMALL = dict(MEASURED, file_seconds=(19.946 - 3.997) / 8000, in_bytes=2.19e6, out_bytes=1.19e6)
SMALL_GPU = dict(SMALL, file_seconds=(3.692 - 1.352) / 8000)
# Assumed: bytes per second of all machines together and of one machine; metadata operations per second.
STORAGE = {
    "file server, 1.2 GB/s": {"all": 1.2e9, "one": 1.2e9, "name_ops": 5e3},
    "parallel, 50 GB/s, 10 to a machine": {"all": 50e9, "one": 10e9, "name_ops": 50e3},
    "parallel, 500 GB/s, 20 to a machine": {"all": 500e9, "one": 20e9, "name_ops": 200e3},
}
NAME_OPS_PER_FILE = 6  # stat, open, create, stat, rename, close
LAUNCH_SECONDS = 5.0  # assumed: starting ranks on many machines
MACHINES = (1, 3, 10, 30, 100, 300, 1000)
NOISE = 0.3  # relative variation of the time per file, plus or minus


def start_seconds(machines, m):
    return m["start_seconds"] + (LAUNCH_SECONDS if machines > 1 else 0)


def share_of(remaining, ranks):
    """Return the number of files that rank 0 hands out at a time."""
    return max(1, min(256, remaining // (8 * ranks)))  # src/mpi/batch_mpi.c


def batch_limits(machines, storage, m=MEASURED):
    """Return the files per second that each component could process alone."""
    per_file = m["in_bytes"] + m["out_bytes"]
    return {
        "computing": machines / m["file_seconds"],
        "the network": machines * storage["one"] / per_file,
        "the file system": storage["all"] / per_file,
        "its names": storage["name_ops"] / NAME_OPS_PER_FILE,
        "rank 0": 1 / m["report_seconds"],
    }


def slowest(limits):
    return min(limits, key=limits.get)


def simulate_batch(files, machines, storage, m=MEASURED, seed=1):
    """Return the seconds until the last file is done, and the bottleneck."""
    noise = random.Random(seed)
    limits = batch_limits(machines, storage, m)
    # While all machines are busy, each gets an equal share of the shared resources.
    pace = min(limits["computing"], limits["the network"], limits["the file system"], limits["its names"])
    file_seconds_shared = machines / pace
    first_free = 0.0  # of rank 0
    remaining = files
    end = 0.0
    queue = [(0.0, i, 0) for i in range(machines)]
    heapq.heapify(queue)
    while queue:
        now, machine, reports = heapq.heappop(queue)
        first_free = max(first_free, now) + m["handout_seconds"] + reports * m["report_seconds"]
        end = max(end, first_free)
        if not remaining:
            continue
        share = share_of(remaining, machines)
        remaining -= share
        duration = sum(file_seconds_shared * noise.uniform(1 - NOISE, 1 + NOISE) for _ in range(share))
        heapq.heappush(queue, (first_free + duration, machine, share))
    return start_seconds(machines, m) + end, slowest(limits)


def image_seconds(side, halo, machines, storage, writes, m=MEASURED):
    """Return the seconds for one grey image of side x side bytes, and the bottleneck."""
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
    """Without contention and variation, the simulated time is total work divided by machines."""
    free = {"all": 1e18, "one": 1e18, "name_ops": 1e18}
    quick = dict(MEASURED, handout_seconds=0.0, report_seconds=1e-12, start_seconds=0.0)
    for machines in (1, 7, 64):
        seconds_taken, slow = simulate_batch(70000, machines, free, quick)
        ideal = 70000 * quick["file_seconds"] / machines + (LAUNCH_SECONDS if machines > 1 else 0)
        assert slow == "computing" and abs(seconds_taken / ideal - 1) < 0.02, (machines, seconds_taken, ideal)
    # A rank 0 that duration 1 ms per file is the bottleneck above 50 machines with 20 files per second.
    slow_first = dict(quick, report_seconds=1e-3)
    seconds_taken, slow = simulate_batch(70000, 640, free, slow_first)
    assert slow == "rank 0" and seconds_taken >= 70.0, (seconds_taken, slow)
    # Shares add up for any number of ranks.
    for ranks in (1, 3, 1000):
        remaining, assigned = 12345, 0
        while remaining:
            share = share_of(remaining, ranks)
            assigned, remaining = assigned + share, remaining - share
        assert assigned == 12345
    seconds, slow = image_seconds(1e6, 0, 1, {"all": 1e9, "one": 1e9, "name_ops": 1}, True)
    assert slow in ("the network", "the file system") and abs(seconds - 2000 - MEASURED["start_seconds"]) < 1e-6
    print("the model agrees with the analytic results")


def main():
    if sys.argv[1:] == ["--check"]:
        check()
        return
    print_table("machines: a million 24 MP PNGs", lambda n, s: simulate_batch(1000000, n, s))
    print_table("machines: a million 2 MP PNGs, CPU", lambda n, s: simulate_batch(1000000, n, s, SMALL))
    print_table("machines: a million 2 MP PNGs, one GPU each", lambda n, s: simulate_batch(1000000, n, s, SMALL_GPU))
    print_table("machines: `smooth --axis xy`, 1,000,000 x 1,000,000", lambda n, s: image_seconds(1e6, 3, n, s, True))
    print_table("machines: `hist`, the same image", lambda n, s: image_seconds(1e6, 0, n, s, False))


main()
