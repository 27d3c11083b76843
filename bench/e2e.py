#!/usr/bin/env python3
"""End-to-end benchmark, file to file: gpufilter, vips, ImageMagick, ffmpeg (if installed) and libpng alone, on images
that build/draw generates. Programs alternate; the reported ratio is the median of the ratios of each round.

Results are checked before timing: ours against the golden backend, bit for bit, and peers' files by their content.
Speed is reported, not tested. The images stay in build/bench-e2e for the next run.
"""
import argparse
import datetime
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys

import e2e_work as work
from e2e_print import print_case
from e2e_work import FLOOR, OURS

MIN_PSNR = 45.0  # dB to golden's image: peers truncate where golden rounds (51 dB); an unfiltered image has 42 dB
BUDGET = 90.0  # seconds per case, but at least three pairs


class Failure(Exception):
    """An error that ends the benchmark."""


def run_quietly(command, codes=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode not in codes:
        raise Failure(f"{' '.join(command[:6])}...: exit {done.returncode}: {done.stdout.strip()[-300:]}")
    return done


class Bench:
    def __init__(self, args):
        self.args = args
        self.build = args.build
        self.directory = f"{args.build}/bench-e2e"
        self.mask = f"{self.directory}/mask.mat"
        os.makedirs(self.directory, exist_ok=True)
        with open(self.mask, "w", encoding="ascii") as mask:
            mask.write(f"{len(work.TAPS)} 1 {sum(work.TAPS)}\n{' '.join(map(str, work.TAPS))}\n")
        self.programs = work.Programs(args.build)
        self.output = {name: f"{self.directory}/out-{name}" for name in self.programs.path}

    # ---- images ----------------------------------------------------------------------------------------------

    def path(self, picture):
        return f"{self.directory}/{picture.name}.png"

    def draw(self, pictures):
        """Draw missing images, one process per core, large images first."""
        missing = {p.name: p for p in pictures if not os.path.exists(self.path(p))}  # several cases share an image
        todo = sorted(missing.values(), key=lambda p: -p.pixels)
        if todo:
            megapixels = sum(p.pixels for p in todo) / 1e6
            print(f"drawing {len(todo)} images, {megapixels:.0f} MP, into {self.directory}", flush=True)
        running = []
        while todo or running:
            while todo and len(running) < len(os.sched_getaffinity(0)):
                picture = todo.pop(0)
                half = f"{self.directory}/half-{picture.name}.png"  # renamed when complete
                running.append((picture, half, subprocess.Popen([f"{self.build}/draw", *picture.draw, half])))
            picture, half, process = running.pop(0)
            if process.wait() != 0:
                for _, _, other in running:
                    other.wait()
                raise Failure(f"{self.build}/draw could not draw {picture.name}")
            os.replace(half, self.path(picture))

    def batch_directory(self):
        """Create 500 hard links to 20 images. With a warm page cache, they read like separate files."""
        self.draw(work.BATCH)
        directory = f"{self.directory}/batch"
        shutil.rmtree(directory, ignore_errors=True)
        os.mkdir(directory)
        names = [f"{i:03d}.png" for i in range(work.BATCH_FILES)]
        for i, name in enumerate(names):
            os.link(self.path(work.BATCH[i % len(work.BATCH)]), f"{directory}/{name}")
        with open(directory + ".txt", "w", encoding="ascii") as listing:
            listing.write("\n".join(names) + "\n")
        return directory

    # ---- one run ---------------------------------------------------------------------------------------------

    def clear(self, name):
        """Remove old outputs: no program has to replace a file."""
        shutil.rmtree(self.output[name], ignore_errors=True)
        base = os.path.basename(self.output[name])
        for entry in os.listdir(self.directory):
            if entry.startswith((base + ".", base + "-")):
                os.unlink(f"{self.directory}/{entry}")

    def measure(self, name, operation, command):
        self.clear(name)
        if operation == "batch":
            os.mkdir(self.output[name])
        log = f"{self.directory}/log-{name}"
        usage = json.loads(run_quietly([f"{self.build}/timed", log, *command]).stdout)
        if usage["exit"] != 0:
            with open(log, encoding="utf-8", errors="replace") as output:
                raise Failure(f"{name}: exit {usage['exit']}: {output.read().strip()[-300:]}")
        usage["cpu_s"] = usage.pop("user_s") + usage.pop("sys_s")
        usage["bytes"] = self.size(name, operation)
        return usage

    def outputs(self, name, operation):
        if operation == "smooth":
            return [self.output[name] + ".png"]
        if operation == "batch":
            return [f"{self.output[name]}/{i:03d}.png" for i in range(work.BATCH_FILES)]
        return []

    def size(self, name, operation):
        try:
            return sum(map(os.path.getsize, self.outputs(name, operation))) or None
        except FileNotFoundError as error:
            raise Failure(f"{name}: {error.filename} was not written") from error

    # ---- checks ----------------------------------------------------------------------------------------------

    def check(self, name, operation, picture, source):
        """Check the outputs of a program's last run. Returns remarks."""
        for path in self.outputs(name, operation):
            expected = picture or work.BATCH[0]
            found = png_header(path)
            if found[:2] != (expected.width, expected.height):
                raise Failure(f"{name}: {path} is {found[0]}x{found[1]}, not {expected.width}x{expected.height}")
        if name == OURS:
            self.check_ours(operation, source)
        if operation != "smooth" or name in (OURS, FLOOR):
            return {}
        layout = png_header(self.output[name] + ".png")[2:]
        if layout != (picture.bits, {1: 0, 3: 2}[picture.channels]):
            return {"remark": f"wrote bit depth {layout[0]}, colour type {layout[1]}"}
        decibels = self.psnr(picture, name)
        other = decibels is not None and decibels < MIN_PSNR
        return {"psnr": decibels, "remark": f"different image: PSNR {decibels:.1f} dB to ours" if other else None}

    def check_ours(self, operation, source):
        program = self.programs.path[OURS]
        golden = f"{self.directory}/golden.png"
        if operation in ("hist", "axis-sum"):
            command = work.measure(operation, OURS, program, source, None)
            command[command.index("cpu")] = "golden"
            with open(f"{self.directory}/log-{OURS}", encoding="utf-8") as ours:
                if run_quietly(command).stdout != ours.read():
                    raise Failure(f"{OURS} {operation}: the cpu backend and golden print different results")
        if operation == "smooth":
            self.check_image(source, self.output[OURS] + ".png", golden)
        if operation == "batch":
            for i in range(min(len(work.BATCH), work.BATCH_FILES)):
                self.check_image(f"{source}/{i:03d}.png", f"{self.output[OURS]}/{i:03d}.png", golden)

    def check_image(self, source, produced, golden):
        program = self.programs.path[OURS]
        command = work.smooth(OURS, program, None, source, golden, self.mask)
        command[command.index("cpu")] = "golden"
        run_quietly(command)
        if run_quietly([program, "compare", "--quiet", produced, golden], codes=(0, 1)).returncode != 0:
            raise Failure(f"{produced}: pixels differ from the golden backend")
        os.unlink(golden)

    def psnr(self, picture, name):
        """Return the PSNR of a peer's image to ours; None for equal images, and for small ones, as edges differ."""
        if picture.width < 100:
            return None
        command = [self.programs.path[OURS], "dot", "--json", self.output[OURS] + ".png", self.output[name] + ".png"]
        found = json.loads(run_quietly(command).stdout)["result"]["products"]["psnr"][-1]
        return float(found) if isinstance(found, (int, float)) else None

    # ---- a case ----------------------------------------------------------------------------------------------

    def case(self, label, operation, picture):
        if operation == "batch":
            source = self.batch_directory()
        elif picture:
            self.draw([picture])
            source = self.path(picture)
        else:
            source = None
        commands = work.commands(self.programs, operation, picture, source, self.output, self.mask)
        remarks, taken, first = {}, {}, 0.0
        for name in list(commands):  # the first round is a warm-up and is checked
            try:
                first += self.measure(name, operation, commands[name])["wall_s"]
                remarks[name] = self.check(name, operation, picture, source)
            except Failure as failure:
                if name == OURS:
                    raise
                print(f"  omitted from {label}: {failure}")
                del commands[name]
        for name in commands:  # checks of peers needed our output
            self.clear(name)
        pairs = min(self.args.pairs, max(3, int(BUDGET / max(first, 1e-3))))
        for number in range(pairs):
            order = list(commands) if number % 2 == 0 else list(reversed(commands))
            for name in order:
                taken.setdefault(name, []).append(self.measure(name, operation, commands[name]))
                self.clear(name)
        return [self.record(label, operation, picture, name, commands[name], taken, remarks[name])
                for name in commands]

    def record(self, label, operation, picture, name, command, taken, remarks):
        def ratio(key):
            pairs = [(a[key], b[key]) for a, b in zip(taken[OURS], taken[name])]
            return statistics.median(a / b for a, b in pairs) if all(a and b for a, b in pairs) else None

        shown = command if len(command) < 40 else [*command[:20], "..."]
        line = {"case": label, "work": operation, "program": name, "version": self.programs.version[name]}
        if picture:
            line.update(picture=picture.name, width=picture.width, height=picture.height, channels=picture.channels,
                        bits=picture.bits, bytes_in=os.path.getsize(self.path(picture)))
        line.update(command=shown, pairs=len(taken[name]), remark=remarks.get("remark"), psnr=remarks.get("psnr"))
        for key in ("wall_s", "cpu_s", "rss_kib", "bytes"):
            values = [run[key] for run in taken[name]]
            line[key] = statistics.median(values) if None not in values else None
            if name != OURS and not (name == FLOOR and key == "bytes"):  # its file contains an unfiltered image
                line["ratio_" + key] = ratio(key)
        pixels = work.BATCH_FILES * work.BATCH[0].pixels if operation == "batch" else picture.pixels if picture else 0
        line["mp_per_s"] = pixels / 1e6 / line["wall_s"] if pixels > 1 else None
        line["walls_s"] = [run["wall_s"] for run in taken[name]]
        return line


def png_header(path):
    """Return (width, height, bit depth, colour type) of a file that starts and ends like a PNG."""
    with open(path, "rb") as file:
        start = file.read(33)
        file.seek(max(0, os.path.getsize(path) - 12))
        end = file.read()
    if len(start) < 33 or start[:8] != b"\x89PNG\r\n\x1a\n" or start[12:16] != b"IHDR" or end[4:8] != b"IEND":
        raise Failure(f"{path} is not a complete PNG")
    return struct.unpack(">IIBB", start[16:26])


def machine(bench):
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude", "*"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
    return {"machine": model, "cores": len(os.sched_getaffinity(0)), "commit": commit or "unknown",
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"), "load": os.getloadavg(),
            "versions": bench.programs.version, "has_batch": bench.programs.has_batch}


def parse():
    parser = argparse.ArgumentParser(prog="make bench-e2e BENCH=", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="images up to 24 MP, no batch, 3 pairs")
    parser.add_argument("--only", metavar="NAME", action="append",
                        help="case of this name, or cases whose names contain it; repeatable")
    parser.add_argument("--pairs", type=int, help="max pairs per case (default 9); long cases get at least 3")
    parser.add_argument("--cores", type=int, help="number of cores for every program")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    args = parser.parse_args()
    args.pairs = args.pairs or (3 if args.quick else 9)
    if args.pairs < 1 or (args.cores is not None and args.cores < 1):
        parser.error("--pairs and --cores must be at least 1")
    names = [case[0] for case in work.CASES]
    selected = {n for only in args.only or [""] for n in names if (n == only if only in names else only in n)}
    chosen = [case for case in work.CASES if case[0] in selected and (case[3] or not args.quick)]
    if not chosen:
        parser.error("no case of this name; --list prints all names")
    return args, chosen


def main():
    args, chosen = parse()
    if args.list:
        print("\n".join(case[0] for case in chosen))
        return 0
    if args.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.cores])
    bench = Bench(args)
    about = machine(bench)
    print(f"{about['machine']}, {about['cores']} cores, load {about['load'][0]:.1f}, commit {about['commit']}")
    for name in bench.programs.missing:
        print(f"{name} is not installed, omitted")
    if any(case[1] == "batch" for case in chosen):
        print("the peak RSS of a batch is that of its largest process"
              + ("" if bench.programs.has_batch else "; this gpufilter has no --out-dir and runs under xargs"))
    if any(case[2] and case[2].pixels > work.MAX_PIXELS_SLOW for case in chosen):
        print(f"ImageMagick and ffmpeg are omitted above {work.MAX_PIXELS_SLOW / 1e6:.0f} MP")
    bench.draw([case[2] for case in chosen if case[2]])
    with open(f"{args.build}/bench-e2e.json", "w", encoding="utf-8") as log:
        log.write(json.dumps(about) + "\n")
        for label, operation, picture, _ in chosen:
            lines = bench.case(label, operation, picture)
            print_case(label, picture, lines)
            for line in lines:
                log.write(json.dumps(line) + "\n")
            log.flush()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as error:
        print(f"bench-e2e: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
