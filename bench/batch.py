#!/usr/bin/env python3
"""Batch benchmark: many PNG files to PNG files on every backend, start-up included, files in memory (/dev/shm).

Two kinds of input: "own", written by gpufilter, and "foreign", written by libpng (through cv2 or Pillow). Each of 20
photographs has many names (hard links). Backends alternate; the reported time is the median. The outputs of all backends
are compared, byte for byte. The backend "vips" runs smooth, or with --filter resize its thumbnail to 256 pixels, under GNU
parallel; its files differ. For thumbnails: --filter resize --options=--width=256.
"""
import argparse
import filecmp
import os
import shutil
import statistics
import subprocess
import sys
import time

import e2e_work

PHOTOS = 20


def write_foreign(source, target):
    """Write a PNG with libpng: level 6, all filter types tried per row, as most programs write them."""
    try:
        import cv2  # pylint: disable=import-outside-toplevel

        cv2.imwrite(target, cv2.imread(source, cv2.IMREAD_UNCHANGED), [cv2.IMWRITE_PNG_COMPRESSION, 6,
                                                                        cv2.IMWRITE_PNG_STRATEGY, 0])
    except ImportError:
        from PIL import Image  # pylint: disable=import-outside-toplevel

        Image.open(source).save(target, compress_level=6)


def draw(args, width, height):
    """Draw the photographs and write them as each kind. Return the files of each kind."""
    files = {"own": [], "foreign": []}
    os.makedirs(args.directory, exist_ok=True)
    drawing = []
    for seed in range(PHOTOS):
        stem = f"{args.directory}/{width}x{height}-{seed}"
        if not os.path.exists(stem + ".ppm"):
            drawing.append(subprocess.Popen([f"{args.build}/draw", "--photo", str(width), str(height), str(seed),
                                             stem + ".ppm"]))
    if any(process.wait() for process in drawing):
        sys.exit("draw failed")
    for seed in range(PHOTOS):
        stem = f"{args.directory}/{width}x{height}-{seed}"
        for kind in args.kinds.split(","):
            name = f"{stem}-{kind}.png"
            files[kind].append(name)
            if os.path.exists(name):
                continue
            if kind == "foreign":
                write_foreign(stem + ".ppm", name)
            else:
                subprocess.run([f"{args.build}/gpufilter", "smooth", "-q", "--backend", "cpu", "--stages", "enhance",
                                "--gain", "1", stem + ".ppm", name], check=True)
    return files


def link(args, files, kind, count):
    """Make `count` names for the files, in a directory."""
    directory = f"{args.directory}/in-{kind}"
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    for i in range(count):
        os.link(files[i % len(files)], f"{directory}/{i:06d}.png")
    return directory


def peer(directory, out, resizes):
    """Return the command that filters the files named on its standard input by vips."""
    parallel = ["parallel", "-j", str(os.cpu_count())]
    os.makedirs(out)
    if resizes:
        return parallel + [f"VIPS_CONCURRENCY=1 vips thumbnail {{}} {out}/{{/}} 256"]
    mask = f"{directory}/mask.mat"
    with open(mask, "w", encoding="ascii") as file:
        file.write(f"{len(e2e_work.TAPS)} 1 {sum(e2e_work.TAPS)}\n{' '.join(map(str, e2e_work.TAPS))}\n")
    return parallel + [
            "VIPS_CONCURRENCY=1 " + " ".join(e2e_work.smooth("vips", "vips", None, "{}", f"{out}/{{/}}", mask))]


def run(args, backend, source, out):
    """Run the batch. Return its time."""
    shutil.rmtree(out, ignore_errors=True)
    if backend == "vips":
        command = peer(args.directory, out, args.filter == "resize")
    else:
        command = [f"{args.build}/gpufilter", args.filter, "--backend", backend, "--quiet"] + args.options + [
            "--files-from", "-", "--out-dir", out]
    names = "\n".join(f"{source}/{name}" for name in sorted(os.listdir(source))) + "\n"
    start = time.perf_counter()
    done = subprocess.run(command, input=names, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{backend}: exit {done.returncode}: {done.stdout[-500:]}")
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--directory", default="/dev/shm/gpufilter-batch")
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", default="foreign,own")
    parser.add_argument("--backends", default="cpu,cuda,auto")
    parser.add_argument("--filter", default="smooth")
    parser.add_argument("--options", nargs="*", default=[], help="options of gpufilter")
    args = parser.parse_args()
    width, height = (int(n) for n in args.size.split("x"))
    files = draw(args, width, height)
    backends = args.backends.split(",")
    for kind in args.kinds.split(","):
        source = link(args, files[kind], kind, args.count)
        size = sum(os.path.getsize(name) for name in files[kind]) / PHOTOS / 1e6
        times = {backend: [] for backend in backends}
        for _ in range(args.rounds):
            for backend in backends:
                times[backend].append(run(args, backend, source, f"{args.directory}/out-{backend}"))
        print(f"{args.count} {kind} files of {width}x{height} RGB, {size:.2f} MB each:")
        for backend in backends:
            median = statistics.median(times[backend])
            print(f"  {backend:5} {median:7.3f} s  {args.count * width * height / median / 1e9:6.2f} GP/s   "
                  + " ".join(f"{t:.2f}" for t in times[backend]), flush=True)
        for i in range(min(args.count, PHOTOS)):
            names = [f"{args.directory}/out-{backend}/{i:06d}.png" for backend in backends if backend != "vips"]
            for other in names[1:]:
                if not filecmp.cmp(names[0], other, shallow=False):
                    sys.exit(f"{names[0]} and {other} differ")
        for backend in backends:
            shutil.rmtree(f"{args.directory}/out-{backend}")
        shutil.rmtree(source)


if __name__ == "__main__":
    main()
