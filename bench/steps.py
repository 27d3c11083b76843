#!/usr/bin/env python3
"""Benchmark of several filters in one run: PNG to PNG, median 3x3 ! gaussian ! sharpen ! hist, beside each step alone and
beside the same steps in libvips (if the package pyvips is installed), in one warm process of libvips.

--thumbnails instead: PNG and JPEG to 512 columns, against thumbnail and resize of libvips.

Programs alternate; ratios are medians of the ratios of each round. Memory is the peak of the process. The chain must
write the bytes that the steps write one after the other; this is checked first.
"""
import argparse
import filecmp
import json
import os
import resource
import statistics
import subprocess
import time

STEPS = [["median", "radius=1"], ["gaussian", "sigma=1"], ["sharpen"]]


def run(command):
    """Return the wall time in seconds and the peak memory in MiB."""
    program = command[0]
    done = subprocess.run([f"{os.path.dirname(program)}/timed", os.devnull, *command], stdout=subprocess.PIPE,
                          check=False)
    usage = json.loads(done.stdout or "{}")
    if done.returncode or usage["exit"]:
        raise SystemExit(f"{' '.join(command)}: failed")
    return usage["wall_s"], usage["rss_kib"] / 1024


def chain(program, image, output, threads, count=len(STEPS), hist=True):
    words = [word for step in STEPS[:count] for word in ["!", *step]]
    return [program, "run", "-q", "-f", "-j", threads, image, *words, "!", "write", output, *(["!", "hist"] if hist else [])]


def single(program, image, output, threads, step):
    return [program, step[0], *[f"--{word}" for word in step[1:]], "-q", "-f", "-j", threads, image, output]


def check(program, image, output, threads):
    """Compare the chain with its steps, one after the other."""
    source = image
    for i, step in enumerate(STEPS):
        target = f"{output}-{i}.png"
        run(single(program, source, target, threads, step))
        source = target
    run(chain(program, image, f"{output}.png", threads))
    if not filecmp.cmp(source, f"{output}.png", shallow=False):
        raise SystemExit("the chain differs from its steps")


def vips_chain(threads):
    try:
        os.environ["VIPS_CONCURRENCY"] = threads
        import pyvips  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("pyvips not found, not timed; pip install pyvips pyvips-binary")
        return None

    def compute(image, output):
        pixels = pyvips.Image.new_from_file(image, access="sequential")
        done = pixels.median(3).gaussblur(1).sharpen().cast("uchar").copy_memory()  # hist_find reads it again
        done.pngsave(output, compression=1)
        done.hist_find()

    def timed(image, output):
        began = time.perf_counter()
        compute(image, output)
        return time.perf_counter() - began

    print(f"libvips {'.'.join(str(pyvips.version(i)) for i in range(3))}")
    return timed


def thumbnails(args, program, image, output):
    """Time resize of a PNG and a JPEG: wall time, and CPU time of libvips and of the process."""
    os.environ["VIPS_CONCURRENCY"] = args.threads
    import pyvips  # pylint: disable=import-outside-toplevel
    jpeg = image.replace(".png", ".jpg")
    pyvips.cache_set_max(0)
    pyvips.Image.new_from_file(image).jpegsave(jpeg, Q=90)
    print(f"libvips {'.'.join(str(pyvips.version(i)) for i in range(3))}, {args.size}, {args.threads} threads")

    def cpu(who):
        usage = resource.getrusage(who)
        return usage.ru_utime + usage.ru_stime

    def thumbnail(path):
        return pyvips.Image.thumbnail(path, 512)

    def resize(path):
        whole = pyvips.Image.new_from_file(path, access="sequential")
        return whole.resize(512 / whole.width)

    jobs = [("PNG / thumbnail", image, [], thumbnail), ("JPEG --fast / thumbnail", jpeg, ["--fast"], thumbnail),
            ("JPEG / resize", jpeg, [], resize)]
    for name, path, options, peer in jobs:
        rounds = []
        for _ in range(args.rounds):
            target = output + os.path.splitext(path)[1]
            before, began = cpu(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([program, "resize", "-qf", "-b", "cpu", "-j", args.threads, "--sync", "never", "--width", "512",
                            *options, path, target], check=True)
            ended, used = time.perf_counter(), cpu(resource.RUSAGE_CHILDREN) - before
            before = cpu(resource.RUSAGE_SELF)
            peer(path).write_to_file(target, **({"compression": 1} if path == image else {"Q": 95}))
            rounds.append((ended - began, time.perf_counter() - ended, used, cpu(resource.RUSAGE_SELF) - before))
        ours, theirs, used, peer_used = (statistics.median(column) for column in zip(*rounds))
        ratio = statistics.median(one[0] / one[1] for one in rounds)
        print(f"{name:24} {ours * 1000:5.0f} ms, {theirs * 1000:5.0f} ms: {ratio:.2f}; "
              f"CPU {used * 1000:.0f} ms, {peer_used * 1000:.0f} ms: {used / peer_used:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("-j", "--threads", default=str(os.cpu_count()))
    parser.add_argument("--size", default="6000x4000", help="of the RGB image")
    parser.add_argument("--thumbnails", action="store_true", help="time resize instead")
    args = parser.parse_args()
    program, directory = f"{args.build}/gpufilter", f"{args.build}/bench-chain-files"
    os.makedirs(directory, exist_ok=True)
    width, height = args.size.split("x")
    image, output = f"{directory}/{args.size}.png", f"{directory}/out"
    if not os.path.exists(image):
        subprocess.run([f"{args.build}/draw", "--photo", width, height, "1", image], check=True)
    if args.thumbnails:
        thumbnails(args, program, image, output)
        return
    check(program, image, output, args.threads)
    jobs = {step[0]: single(program, image, f"{output}-s.png", args.threads, step) for step in STEPS}
    jobs["hist"] = [program, "hist", "-q", "-j", args.threads, image]
    jobs["chain"] = chain(program, image, f"{output}.png", args.threads)
    seconds, memory = {name: [] for name in jobs}, {}
    vips = vips_chain(args.threads)
    peer = []
    for _ in range(args.rounds):
        for name, command in jobs.items():
            taken, memory[name] = run(command)
            seconds[name].append(taken)
        if vips:
            peer.append(vips(image, f"{output}-vips.png"))
    alone = [name for name in jobs if name != "chain"]
    slowest = max(alone, key=lambda name: statistics.median(seconds[name]))
    print(f"{args.size} RGB PNG, {args.threads} threads, medians of {args.rounds} rounds")
    for name in jobs:
        print(f"{name:10} {statistics.median(seconds[name]) * 1000:8.1f} ms {memory[name]:8.1f} MiB")
    print(f"chain / {slowest} alone: {statistics.median(a / b for a, b in zip(seconds['chain'], seconds[slowest])):.2f}")
    if peer:
        print(f"libvips    {statistics.median(peer) * 1000:8.1f} ms")
        print(f"chain / libvips: {statistics.median(a / b for a, b in zip(seconds['chain'], peer)):.2f}")
    steps = [run(chain(program, image, f"{output}.png", args.threads, n, False))[1] for n in range(1, len(STEPS) + 1)]
    print(f"peak memory with 1 to {len(steps)} steps: {', '.join(f'{mib:.1f}' for mib in steps)} MiB")


if __name__ == "__main__":
    main()
