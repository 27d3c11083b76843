#!/usr/bin/env python3
"""From file to file: gpufilter beside vips, ImageMagick, ffmpeg (those installed) and libpng alone, on pictures that
build/draw makes. Programs take turns; what counts is the median of the ratios of one turn.

Results are compared before anything is timed: ours with the golden backend's, bit for bit, the peers' files by what
they hold. Speed is only told, never demanded. The pictures stay in build/bench-e2e for the next time.
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

SAME_PICTURE = 45.0  # dB of PSNR to golden's: peers cut off where golden rounds (51 dB); unfiltered it is 42
BUDGET = 90.0  # seconds of turns for a case, where three pairs need no more


class Failure(Exception):
    """What ends the benchmark."""


def run_quietly(command, codes=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode not in codes:
        raise Failure(f"{' '.join(command[:6])}...: exit {done.returncode}: {done.stdout.strip()[-300:]}")
    return done


class Bench:
    def __init__(self, args):
        self.args = args
        self.build = args.build
        self.folder = f"{args.build}/bench-e2e"
        self.mask = f"{self.folder}/mask.mat"
        os.makedirs(self.folder, exist_ok=True)
        with open(self.mask, "w", encoding="ascii") as mask:
            mask.write(f"{len(work.TAPS)} 1 {sum(work.TAPS)}\n{' '.join(map(str, work.TAPS))}\n")
        self.programs = work.Programs(args.build)
        self.made = {name: f"{self.folder}/out-{name}" for name in self.programs.path}

    # ---- pictures --------------------------------------------------------------------------------------------

    def path(self, picture):
        return f"{self.folder}/{picture.name}.png"

    def draw(self, pictures):
        """Those that are not there yet, several at once, large ones first."""
        todo = sorted((p for p in pictures if not os.path.exists(self.path(p))), key=lambda p: -p.pixels)
        if todo:
            megapixels = sum(p.pixels for p in todo) / 1e6
            print(f"drawing {len(todo)} pictures, {megapixels:.0f} MP, into {self.folder}", flush=True)
        running = []
        while todo or running:
            while todo and len(running) < len(os.sched_getaffinity(0)):
                picture = todo.pop(0)
                half = f"{self.folder}/half-{picture.name}.png"  # a drawing that was interrupted is no picture
                running.append((picture, half, subprocess.Popen([f"{self.build}/draw", *picture.draw, half])))
            picture, half, process = running.pop(0)
            if process.wait() != 0:
                for _, _, other in running:
                    other.wait()
                raise Failure(f"{self.build}/draw could not draw {picture.name}")
            os.replace(half, self.path(picture))

    def batch_folder(self):
        """500 names for 20 pictures: hard links, which read as files of their own do once they are in memory."""
        self.draw(work.BATCH)
        folder = f"{self.folder}/batch"
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        names = [f"{i:03d}.png" for i in range(work.BATCH_FILES)]
        for i, name in enumerate(names):
            os.link(self.path(work.BATCH[i % len(work.BATCH)]), f"{folder}/{name}")
        with open(folder + ".txt", "w", encoding="ascii") as listing:
            listing.write("\n".join(names) + "\n")
        return folder

    # ---- one run ---------------------------------------------------------------------------------------------

    def clear(self, name):
        """Nobody has an old file to replace."""
        shutil.rmtree(self.made[name], ignore_errors=True)
        base = os.path.basename(self.made[name])
        for entry in os.listdir(self.folder):
            if entry.startswith((base + ".", base + "-")):
                os.unlink(f"{self.folder}/{entry}")

    def measure(self, name, what, command):
        self.clear(name)
        if what == "batch":
            os.mkdir(self.made[name])
        log = f"{self.folder}/log-{name}"
        taken = json.loads(run_quietly([f"{self.build}/timed", log, *command]).stdout)
        if taken["exit"] != 0:
            with open(log, encoding="utf-8", errors="replace") as said:
                raise Failure(f"{name}: exit {taken['exit']}: {said.read().strip()[-300:]}")
        taken["cpu_s"] = taken.pop("user_s") + taken.pop("sys_s")
        taken["bytes"] = self.size(name, what)
        return taken

    def outputs(self, name, what):
        if what == "smooth":
            return [self.made[name] + ".png"]
        if what == "batch":
            return [f"{self.made[name]}/{i:03d}.png" for i in range(work.BATCH_FILES)]
        return []

    def size(self, name, what):
        try:
            return sum(map(os.path.getsize, self.outputs(name, what))) or None
        except FileNotFoundError as error:
            raise Failure(f"{name}: {error.filename} was not written") from error

    # ---- is it right? ----------------------------------------------------------------------------------------

    def check(self, name, what, picture, given):
        """Looks at what the last run of a program left. Returns what is to be said of it."""
        for path in self.outputs(name, what):
            wanted = picture or work.BATCH[0]
            found = png_header(path)
            if found[:2] != (wanted.width, wanted.height):
                raise Failure(f"{name}: {path} is {found[0]}x{found[1]}, not {wanted.width}x{wanted.height}")
        if name == OURS:
            self.check_ours(what, given)
        if what != "smooth" or name in (OURS, FLOOR):
            return {}
        layout = png_header(self.made[name] + ".png")[2:]
        if layout != (picture.bits, {1: 0, 3: 2}[picture.channels]):
            return {"remark": f"wrote bit depth {layout[0]}, colour type {layout[1]}"}
        decibels = self.psnr(picture, name)
        other = decibels is not None and decibels < SAME_PICTURE
        return {"psnr": decibels, "remark": f"another picture: PSNR {decibels:.1f} dB to ours" if other else None}

    def check_ours(self, what, given):
        program = self.programs.path[OURS]
        golden = f"{self.folder}/golden.png"
        if what in ("hist", "axis-sum"):
            command = work.measure(what, OURS, program, given, None)
            command[command.index("cpu")] = "golden"
            with open(f"{self.folder}/log-{OURS}", encoding="utf-8") as ours:
                if run_quietly(command).stdout != ours.read():
                    raise Failure(f"{OURS} {what}: the cpu backend does not say what golden says")
        if what == "smooth":
            self.check_image(given, self.made[OURS] + ".png", golden)
        if what == "batch":
            for i in range(min(len(work.BATCH), work.BATCH_FILES)):
                self.check_image(f"{given}/{i:03d}.png", f"{self.made[OURS]}/{i:03d}.png", golden)

    def check_image(self, given, made, golden):
        program = self.programs.path[OURS]
        command = work.smooth(OURS, program, None, given, golden, self.mask)
        command[command.index("cpu")] = "golden"
        run_quietly(command)
        if run_quietly([program, "compare", "--quiet", made, golden], codes=(0, 1)).returncode != 0:
            raise Failure(f"{made}: not the pixels of the golden backend")
        os.unlink(golden)

    def psnr(self, picture, name):
        """Of a peer's picture to ours; None if it is the same or too small to say, its ends being treated otherwise."""
        if picture.width < 100:
            return None
        command = [self.programs.path[OURS], "dot", "--json", self.made[OURS] + ".png", self.made[name] + ".png"]
        found = json.loads(run_quietly(command).stdout)["result"]["products"]["psnr"][-1]
        return float(found) if isinstance(found, (int, float)) else None

    # ---- a case ----------------------------------------------------------------------------------------------

    def case(self, label, what, picture):
        if what == "batch":
            given = self.batch_folder()
        elif picture:
            self.draw([picture])
            given = self.path(picture)
        else:
            given = None
        commands = work.commands(self.programs, what, picture, given, self.made, self.mask)
        said, taken, first = {}, {}, 0.0
        for name in list(commands):  # the first round warms up, and is looked at
            try:
                first += self.measure(name, what, commands[name])["wall_s"]
                said[name] = self.check(name, what, picture, given)
            except Failure as failure:
                if name == OURS:
                    raise
                print(f"  left out of {label}: {failure}")
                del commands[name]
        for name in commands:  # kept until here, as peers are compared with ours
            self.clear(name)
        pairs = min(self.args.pairs, max(3, int(BUDGET / max(first, 1e-3))))
        for turn in range(pairs):
            order = list(commands) if turn % 2 == 0 else list(reversed(commands))
            for name in order:
                taken.setdefault(name, []).append(self.measure(name, what, commands[name]))
                self.clear(name)
        return [self.record(label, what, picture, name, commands[name], taken, said[name])
                for name in commands]

    def record(self, label, what, picture, name, command, taken, said):
        def ratio(key):
            pairs = [(a[key], b[key]) for a, b in zip(taken[OURS], taken[name])]
            return statistics.median(a / b for a, b in pairs) if all(a and b for a, b in pairs) else None

        shown = command if len(command) < 40 else [*command[:20], "..."]
        line = {"case": label, "work": what, "program": name, "version": self.programs.version[name]}
        if picture:
            line.update(picture=picture.name, width=picture.width, height=picture.height, channels=picture.channels,
                        bits=picture.bits, bytes_in=os.path.getsize(self.path(picture)))
        line.update(command=shown, pairs=len(taken[name]), remark=said.get("remark"), psnr=said.get("psnr"))
        for key in ("wall_s", "cpu_s", "rss_kib", "bytes"):
            values = [run[key] for run in taken[name]]
            line[key] = statistics.median(values) if None not in values else None
            if name != OURS and not (name == FLOOR and key == "bytes"):  # its file holds another picture
                line["ratio_" + key] = ratio(key)
        pixels = work.BATCH_FILES * work.BATCH[0].pixels if what == "batch" else picture.pixels if picture else 0
        line["mp_per_s"] = pixels / 1e6 / line["wall_s"] if pixels > 1 else None
        line["walls_s"] = [run["wall_s"] for run in taken[name]]
        return line


def png_header(path):
    """(width, height, bit depth, colour type) of a file that begins and ends as a PNG does."""
    with open(path, "rb") as file:
        start = file.read(33)
        file.seek(max(0, os.path.getsize(path) - 12))
        end = file.read()
    if len(start) < 33 or start[:8] != b"\x89PNG\r\n\x1a\n" or start[12:16] != b"IHDR" or end[4:8] != b"IEND":
        raise Failure(f"{path} is no whole PNG")
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
            "versions": bench.programs.version, "own_batch": bench.programs.own_batch}


def parse():
    parser = argparse.ArgumentParser(prog="make bench-e2e BENCH=", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="up to 24 MP, no batch, 3 pairs")
    parser.add_argument("--only", metavar="NAME", action="append",
                        help="the case of this name, or those whose names contain it; may be repeated")
    parser.add_argument("--pairs", type=int, help="most pairs of a case (default 9): long ones get fewer, but 3")
    parser.add_argument("--cores", type=int, help="let every program have only this many")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    args = parser.parse_args()
    args.pairs = args.pairs or (3 if args.quick else 9)
    if args.pairs < 1 or (args.cores is not None and args.cores < 1):
        parser.error("a number must be 1 or more")
    names = [case[0] for case in work.CASES]
    wanted = {n for only in args.only or [""] for n in names if (n == only if only in names else only in n)}
    chosen = [case for case in work.CASES if case[0] in wanted and (case[3] or not args.quick)]
    if not chosen:
        parser.error("no case is called so; --list prints their names")
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
        print(f"{name} is not installed and left out")
    if any(case[1] == "batch" for case in chosen):
        print("a batch's peak RSS is that of its largest process"
              + ("" if bench.programs.own_batch else "; gpufilter has no --out-dir: xargs runs it"))
    if any(case[2] and case[2].pixels > work.MOST_FOR_SLOW for case in chosen):
        print(f"ImageMagick and ffmpeg are left out above {work.MOST_FOR_SLOW / 1e6:.0f} MP")
    bench.draw([case[2] for case in chosen if case[2]])
    with open(f"{args.build}/bench-e2e.json", "w", encoding="utf-8") as log:
        log.write(json.dumps(about) + "\n")
        for label, what, picture, _ in chosen:
            lines = bench.case(label, what, picture)
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
