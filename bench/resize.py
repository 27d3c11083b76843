#!/usr/bin/env python3
"""Benchmark of resize on RGB images in memory, one thread, in turns with Pillow, libvips and OpenCV: resize.py [ROUNDS]
(default: 9). Peers that are not installed (pillow, pyvips with pyvips-binary, opencv-python-headless) are not timed.

Only Pillow computes the same pixels (u8); they are compared first. libvips shrinks by an integer factor with means before
its kernel; OpenCV runs INTER_AREA, and INTER_CUBIC to enlarge. Each column after ours is our time relative to the peer's:
wall, and CPU of the process. Medians over the rounds, of the ratios of each round.
"""
import importlib
import os
import statistics
import sys
import time

import numpy as np

os.environ["VIPS_CONCURRENCY"] = "1"
import gpufilter  # pylint: disable=wrong-import-position
from peers import module  # pylint: disable=wrong-import-position

CASES = [  # name, kernel, width and height of the input and of the output
    ("bicubic to 1/4", "bicubic", (6000, 4000), (1500, 1000)),
    ("lanczos3 to 1/4", "lanczos3", (6000, 4000), (1500, 1000)),
    ("box to 1/4", "box", (6000, 4000), (1500, 1000)),
    ("bicubic to 256 x 171", "bicubic", (6000, 4000), (256, 171)),
    ("bicubic to 2x", "bicubic", (3000, 2000), (6000, 4000)),
]
VIPS = {"bicubic": "cubic", "lanczos3": "lanczos3"}


pil, pyvips, cv2 = module("PIL.Image"), module("pyvips"), module("cv2")
if cv2:
    cv2.setNumThreads(1)


def picture(size, dtype):
    """Return a slow wave with noise; f32 from 0 to 1."""
    shape = (size[1], size[0], 3)
    wave = np.arange(int(np.prod(shape))) // 97 % 200
    wave += np.random.default_rng(1).integers(0, 16, wave.size)
    return (wave * {"uint8": 1, "uint16": 257, "float32": 1 / 255}[dtype]).astype(dtype).reshape(shape)


def calls_of(kernel, source, out):
    """Return the calls of all programs that have this kernel for this type."""
    calls = {"gpufilter": lambda: gpufilter.resize(source, exact=out, kernel=kernel, backend="cpu", threads=1)}
    if pil and source.dtype == np.uint8:
        image, filters = pil.fromarray(source), pil.Resampling
        chosen = {"bicubic": filters.BICUBIC, "lanczos3": filters.LANCZOS, "box": filters.BOX}[kernel]
        calls["Pillow"] = lambda: image.resize(out, chosen)
    if pyvips:
        band = pyvips.Image.new_from_array(source)
        x, y = out[0] / source.shape[1], out[1] / source.shape[0]
        if kernel == "box":
            calls["libvips"] = lambda: band.shrink(1 / x, 1 / y).write_to_memory()
        else:
            calls["libvips"] = lambda: band.resize(x, vscale=y, kernel=VIPS[kernel]).write_to_memory()
    if cv2 and kernel != "lanczos3":
        how = cv2.INTER_AREA if out[0] < source.shape[1] else cv2.INTER_CUBIC
        calls["OpenCV"] = lambda: cv2.resize(source, out, interpolation=how)
    return calls


def timed(call):
    """Return the wall time and the CPU time of a call in seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def main():
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    version = ".".join(str(pyvips.version(i)) for i in range(3)) if pyvips else "-"
    print(f"Pillow {importlib.import_module('PIL').__version__ if pil else '-'}, libvips {version}, "
          f"OpenCV {cv2.__version__ if cv2 else '-'}; one thread, medians of {rounds} rounds")
    print(f"{'case':22} {'type':8} {'ms':>7}   {'Pillow':>13} {'libvips':>13} {'OpenCV':>13}   (ratio of wall, CPU)")
    for dtype in ("uint8", "uint16", "float32"):
        for name, kernel, size, out in CASES:
            calls = calls_of(kernel, picture(size, dtype), out)
            if "Pillow" in calls and not np.array_equal(calls["gpufilter"](), np.asarray(calls["Pillow"]())):
                raise SystemExit(f"{name}: the pixels are not those of Pillow")
            times = {program: [] for program in calls}
            for i in range(rounds + 1):
                for program, call in calls.items():
                    taken = timed(call)
                    if i:  # the first round allocates
                        times[program].append(taken)
            cells = []
            for program in ("Pillow", "libvips", "OpenCV"):
                pairs = list(zip(times["gpufilter"], times.get(program, [])))
                cells.append(", ".join(f"{statistics.median(a[i] / b[i] for a, b in pairs):.2f}" for i in range(2))
                             if pairs else "-")
            ours = statistics.median(wall for wall, _ in times["gpufilter"]) * 1e3
            print(f"{name:22} {dtype:8} {ours:7.1f}   {cells[0]:>13} {cells[1]:>13} {cells[2]:>13}", flush=True)


if __name__ == "__main__":
    main()
