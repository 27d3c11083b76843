#!/usr/bin/env python3
"""JPEG and TIFF, file to file, paired with vips: bench/formats.py [--build DIR] [--directory DIR] [--rounds N] [JOB]...

Both programs alternate; the reported ratio is the median of the ratios of each round. The files are made by build/draw
and vips in a directory in memory. JPEG is written with quality 95 and without subsampling by both programs. The jobs of
4.3 gigapixels run only if they are named, and without vips, which takes 27 s to smooth 100 MP of tiles on 16 cores.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

TAPS = (3, 6, 11, 11, 11, 8, 5)  # the default chain of smooth without gain and rounding
SIZES = {"24": (6000, 4000), "100": (12500, 8000), "4295": (65536, 65536)}
JPEG = "[Q=95,subsample_mode=off]"

# Inputs: name -> size and options of vips.
INPUTS = {
    "24.jpg": ("24", JPEG),
    "24p.jpg": ("24", "[Q=90,interlace]"),
    "100-tiles.tif": ("100", "[tile,tile_width=256,tile_height=256,compression=deflate,predictor=horizontal]"),
    "100-strips.tif": ("100", "[compression=none]"),
    "4295-tiles.tif": ("4295", "[tile,tile_width=256,tile_height=256,compression=deflate,predictor=horizontal,bigtiff]"),
}

# Jobs: name -> operation, input, extension of the output, options of vips for it, largest ratio that is expected.
JOBS = {
    "jpeg-png": ("smooth", "24.jpg", ".png", "[compression=1,filter=sub]", 0.8),
    "jpeg-jpeg": ("smooth", "24.jpg", ".jpg", JPEG, 0.8),
    "progressive-png": ("smooth", "24p.jpg", ".png", "[compression=1,filter=sub]", 0.8),
    "tiles-hist": ("hist", "100-tiles.tif", None, "", 0.35),
    "strips-hist": ("hist", "100-strips.tif", None, "", 0.35),
    "tiles-tiff": ("smooth", "100-tiles.tif", ".tif", "[compression=deflate,predictor=horizontal]", 0.35),
    "strips-tiff": ("smooth", "100-strips.tif", ".tif", "[compression=none]", 0.35),
    "strips-png": ("smooth", "100-strips.tif", ".png", "[compression=1,filter=sub]", 0.35),
    "huge-hist": ("hist", "4295-tiles.tif", None, "", None),
    "huge-tiff": ("smooth", "4295-tiles.tif", ".tif", "[compression=deflate]", None),
    "huge-big": ("smooth", "4295-tiles.tif", ".tif", "[compression=none]", None),
}


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stdout.strip()[-300:]}")
    return done.stdout


class Bench:
    def __init__(self, args):
        self.build, self.directory = args.build, args.directory
        self.vips = shutil.which("vips") or sys.exit("vips is not installed (package libvips-tools)")
        os.makedirs(self.directory, exist_ok=True)
        self.mask = f"{self.directory}/mask.mat"
        with open(self.mask, "w", encoding="ascii") as mask:
            mask.write(f"{len(TAPS)} 1 {sum(TAPS)}\n{' '.join(map(str, TAPS))}\n")

    def input(self, name):
        path = f"{self.directory}/{name}"
        if not os.path.exists(path):
            size, options = INPUTS[name]
            if size == "4295":
                run([self.vips, "grey", path + options, *map(str, SIZES[size]), "--uchar"])
                return path
            picture = f"{self.directory}/{size}.png"
            if not os.path.exists(picture):
                run([f"{self.build}/draw", "--photo", *map(str, SIZES[size]), "1", picture])
            run([self.vips, "copy", picture, path + options])
        return path

    def commands(self, job):
        operation, source, extension, options, _ = JOBS[job]
        source = self.input(source)
        ours, theirs = f"{self.directory}/ours{extension}", f"{self.directory}/vips{extension}"
        program = f"{self.build}/gpufilter"
        if operation == "hist":
            return ([program, "hist", "--backend", "cpu", "--channel", "all", "--csv", source],
                    [self.vips, "hist_find", source + "[access=sequential]", f"{self.directory}/hist.v"])
        compression = ["--tiff-compression", "none"] if options == "[compression=none]" else []
        return ([program, "smooth", "--backend", "cpu", "-k", "-f", "--sync", "never", "-q", *compression, source, ours],
                [self.vips, "conv", source + "[access=sequential]", theirs + options, self.mask, "--precision",
                 "integer"])

    def measure(self, command):
        usage = json.loads(run([f"{self.build}/timed", f"{self.directory}/log", *command]))
        if usage["exit"]:
            with open(f"{self.directory}/log", encoding="utf-8", errors="replace") as log:
                sys.exit(f"{' '.join(command)}: {log.read().strip()[-300:]}")
        return usage

    def run(self, job, rounds):
        pair = self.commands(job)
        if not JOBS[job][4]:
            usage = self.measure(pair[0])
            print(f"{job:16} {usage['wall_s'] * 1e3:8.1f} ms {usage['rss_kib'] / 1024:5.0f} MiB", flush=True)
            return
        for command in pair:
            self.measure(command)
        times = [[self.measure(command) for command in pair] for _ in range(rounds)]
        wall = [statistics.median(t[i]["wall_s"] for t in times) for i in range(2)]
        rss = [max(t[i]["rss_kib"] for t in times) / 1024 for i in range(2)]
        ratio = statistics.median(t[0]["wall_s"] / t[1]["wall_s"] for t in times)
        print(f"{job:16} {wall[0] * 1e3:8.1f} ms {rss[0]:5.0f} MiB {wall[1] * 1e3:8.1f} ms {rss[1]:5.0f} MiB  "
              f"{ratio:.2f} (goal {JOBS[job][4]:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--directory", default="/dev/shm/gpufilter-formats")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=" ".join(JOBS))
    args = parser.parse_args()
    for job in args.jobs:
        if job not in JOBS:
            parser.error(f"no job '{job}'; jobs: {' '.join(JOBS)}")
    bench = Bench(args)
    print(f"{os.cpu_count()} cores; {run([bench.vips, '--version']).strip()}")
    print(f"{'job':16} {'gpufilter':>22} {'vips':>22}  ratio of wall times", flush=True)
    for job in args.jobs or [name for name in JOBS if JOBS[name][4]]:
        bench.run(job, args.rounds)


if __name__ == "__main__":
    main()
