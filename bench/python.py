"""Benchmark of the Python package on images in GPU memory: python.py [ROUNDS] (default: 9).

Needs a GPU and PyTorch; compares with kornia, torchvision, a depthwise conv2d of PyTorch,
cupyx.scipy.ndimage and cv2 (on the CPU) if they are installed. The peers run their nearest
equivalent: 7 weights along rows, as the default stages of smooth have; and for median and erode the
same filter.

Then it encodes PNG files from GPU memory, and compares with Pillow, cv2 and torchvision on the CPU,
which download the image first. Last, it decodes 256 files to GPU memory, and compares with Pillow in
16 processes and torchvision in 16 threads.

Each row shows the time of a call on the device as a share of that of a copy of the same bytes
(copy time / call time; both queued together, in turns), and the host time of one call. Medians
over the rounds.
"""

import concurrent.futures
import importlib
import io
import multiprocessing
import statistics
import sys
import time

import numpy as np
import torch

import gpufilter
from peers import module

CALLS = 100
FILES, WORKERS = 256, 16
WEIGHTS = (0.055, 0.109, 0.2, 0.2, 0.2, 0.145, 0.091)


def image(shape, dtype, seed=1):
    """Return a slow wave with noise; f32 from 0 to 1."""
    count = int(np.prod(shape))
    wave = np.arange(count) // 97 % 200 + np.random.default_rng(seed).integers(0, 16, count)
    scale = {"uint8": 1, "uint16": 257, "float32": 1 / 255}[dtype]
    return torch.from_numpy((wave * scale).astype(dtype).reshape(shape)).cuda()


def timed(call, calls):
    """Return the seconds of one call on the device and on the host."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    host = time.perf_counter() - start
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / calls, host / calls


def show(name, size, source, call, rounds, calls=CALLS):
    """Measure a call against a copy of its image, and print a row."""
    target = torch.empty_like(source)
    shares, seconds, hosts = [], [], []
    for i in range(rounds + 1):
        copy, _ = timed(lambda: target.copy_(source), calls)
        one, host = timed(call, calls)
        if i:  # the first round allocates and compiles
            shares.append(copy / one)
            seconds.append(one)
            hosts.append(host)
    share, one, host = (statistics.median(x) for x in (shares, seconds, hosts))
    print(f"{name:34} {size:22} {share:7.3f} {one * 1e6:10.1f} {host * 1e6:9.1f}", flush=True)


def measure_ours(rounds):
    """Measure gpufilter on all types and sizes."""
    big, small = (4000, 6000), (1080, 1920)
    for shape, dtype in [
        ((*big, 3), "uint8"),
        (big, "uint8"),
        ((*big, 3), "uint16"),
        ((*big, 3), "float32"),
        ((*small, 3), "uint8"),
        ((64, *small, 3), "uint8"),
        ((64, *small, 3), "float32"),
    ]:
        source = image(shape, dtype)
        out = torch.empty_like(source)
        size = f"{'x'.join(map(str, shape))} {dtype}"
        calls = CALLS if len(shape) < 4 else CALLS // 5
        show("smooth, out=", size, source, lambda: gpufilter.smooth(source, out=out), rounds, calls)
        show("smooth", size, source, lambda: gpufilter.smooth(source), rounds, calls)
        if len(shape) < 4:
            for name, call in [
                ('smooth, axis="xy", out=', lambda: gpufilter.smooth(source, axis="xy", out=out)),
                ("gaussian, out=", lambda: gpufilter.gaussian(source, out=out)),
            ]:
                show(name, size, source, call, rounds)


def measure_peers(rounds):
    """Measure the nearest equivalent of each peer at 24 MP and 2 MP RGB."""
    kornia, torchvision = module("kornia"), module("torchvision.transforms.functional")
    cupy, cv2 = module("cupy"), module("cv2")
    ndimage = cupy and module("cupyx.scipy.ndimage")
    weights = torch.tensor(WEIGHTS, device="cuda")
    for height, width in [(4000, 6000), (1080, 1920)]:
        for dtype in ("uint8", "float32"):
            size = f"{height}x{width}x3 {dtype}"
            packed = image((height, width, 3), dtype)
            planes = packed.permute(2, 0, 1).contiguous()[None]
            if dtype == "float32":
                kernel = weights.reshape(1, 1, 1, 7).repeat(3, 1, 1, 1)
                show(
                    "torch conv2d, depthwise",
                    size,
                    planes,
                    lambda: torch.nn.functional.conv2d(planes, kernel, padding=(0, 3), groups=3),
                    rounds,
                    10,
                )
                if kornia:
                    show(
                        "kornia filter2d_separable",
                        size,
                        planes,
                        lambda: kornia.filters.filter2d_separable(
                            planes, weights[None], torch.ones(1, 1, device="cuda"), "replicate"
                        ),
                        rounds,
                        10,
                    )
            if torchvision:
                for taps, sigma in [([7, 1], [1.8, 1.0]), ([9, 9], [1.0, 1.0])]:
                    show(
                        f"torchvision gaussian_blur {taps[0]}x{taps[1]}",
                        size,
                        planes,
                        lambda: torchvision.gaussian_blur(planes, taps, sigma),
                        rounds,
                        10,
                    )
            if ndimage:
                array = cupy.from_dlpack(packed)
                taps = cupy.asarray(WEIGHTS, dtype="float32")
                stream = cupy.cuda.Stream.from_external(torch.cuda.current_stream())
                with stream:
                    show(
                        "cupyx correlate1d",
                        size,
                        packed,
                        lambda: ndimage.correlate1d(array, taps, axis=1, mode="nearest"),
                        rounds,
                        10,
                    )
            if cv2:
                host = packed.cpu().numpy()
                taps_row, one = np.array(WEIGHTS, "float32"), np.ones(1, "float32")
                seconds = []
                for _ in range(rounds):
                    start = time.perf_counter()
                    cv2.sepFilter2D(host, -1, taps_row, one, borderType=cv2.BORDER_REPLICATE)
                    seconds.append(time.perf_counter() - start)
                text = f"cv2 sepFilter2D, {cv2.getNumThreads()} threads"
                print(f"{text:34} {size:22} {'-':>7} {statistics.median(seconds) * 1e6:10.1f} "
                      f"{'-':>9}")


def measure_order(rounds):
    """Measure medians, minima and their peers at 24 MP RGB; the largest window of cupyx at 2 MP."""
    cupy = module("cupy")
    ndimage = cupy and module("cupyx.scipy.ndimage")
    for dtype in ("uint8", "float32"):
        for radius, height, width in [(1, 4000, 6000), (2, 4000, 6000), (7, 1080, 1920)]:
            side, size = 2 * radius + 1, f"{height}x{width}x3 {dtype}"
            source = image((height, width, 3), dtype)
            out = torch.empty_like(source)
            calls = [
                (f"median {side}x{side}, out=", lambda: gpufilter.median(source, radius=radius, out=out), 10),
                (f"erode {side}x{side}, out=", lambda: gpufilter.erode(source, radius=radius, out=out), 10),
            ]
            if ndimage:
                array = cupy.from_dlpack(source)
                with cupy.cuda.Stream.from_external(torch.cuda.current_stream()):
                    result = cupy.empty_like(array)
                    for kind in ("median", "minimum"):
                        run = getattr(ndimage, f"{kind}_filter")
                        show(f"cupyx {kind}_filter {side}x{side}", size, source,
                             lambda: run(array, (side, side, 1), output=result, mode="nearest"), min(rounds, 3), 1)
            for name, call, count in calls:
                show(name, size, source, call, rounds, count)


def median_ms(call, source, rounds):
    """Return the median time of a call in ms, the copy to the GPU included, and the length of its result."""
    seconds = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        size = len(call(source))
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:]) * 1e3, size


def measure_png(rounds):
    """Measure the encoding of an image in GPU memory to the bytes of a PNG file."""
    pil, cv2, torchvision = module("PIL.Image"), module("cv2"), module("torchvision.io")

    def pillow(tensor):
        file = io.BytesIO()
        pil.fromarray(tensor.cpu().numpy()).save(file, "png", compress_level=1)
        return file.getvalue()

    def opencv(tensor):
        return cv2.imencode(".png", tensor.cpu().numpy()[..., ::-1])[1].tobytes()

    def vision(tensor):
        planes = tensor.permute(2, 0, 1).contiguous().cpu()
        return torchvision.encode_png(planes, 1).numpy().tobytes()

    print(f"\n{'PNG from GPU memory':34} {'image':22} {'ms':>8} {'bytes':>12}")
    for height, width in [(1080, 1920), (4000, 6000)]:
        source = image((height, width, 3), "uint8")
        for name, package, call in [
            ("gpufilter.encode_png", True, gpufilter.encode_png),
            ("Pillow, level 1", pil, pillow),
            ("cv2.imencode", cv2, opencv),
            ("torchvision encode_png, level 1", torchvision, vision),
        ]:
            if package:
                middle, size = median_ms(call, source, rounds)
                print(f"{name:34} {f'{height}x{width}x3 uint8':22} {middle:8.2f} {size:12}", flush=True)


def pillow_decode(file):
    """Decode a file; runs in a process of its own."""
    return np.asarray(importlib.import_module("PIL.Image").open(io.BytesIO(file)))


def measure_decoding(rounds):
    """Measure the decoding of many files to GPU memory."""
    pil, torchvision = module("PIL.Image"), module("torchvision.io")
    images = [image((1080, 1920, 3), "uint8", seed) for seed in range(4)]
    kinds = {"gpufilter": [gpufilter.encode_png(one) for one in images]}
    if pil:
        kinds["libpng, level 6"] = []
        for one in images:
            file = io.BytesIO()
            pil.fromarray(one.cpu().numpy()).save(file, "png", compress_level=6)
            kinds["libpng, level 6"].append(file.getvalue())
    print(f"\n{f'{FILES} files to GPU memory':34} {'by':22} {'ms':>8}")

    def measure(name, call):
        for kind, some in kinds.items():
            files = [some[i % len(some)] for i in range(FILES)]
            print(f"{name:34} {kind:22} {median_ms(call, files, rounds)[0]:8.1f}", flush=True)

    measure("gpufilter.decode_png", gpufilter.decode_png)  # before the processes, whose start takes all cores
    if pil:
        with multiprocessing.get_context("spawn").Pool(WORKERS) as processes:
            measure(f"Pillow, {WORKERS} processes", lambda files: [
                torch.from_numpy(one.copy()).cuda() for one in processes.map(pillow_decode, files)])
    if torchvision:
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as threads:
            measure(f"torchvision, {WORKERS} threads", lambda files: [
                one.cuda() for one in threads.map(
                    lambda file: torchvision.decode_png(torch.frombuffer(bytearray(file), dtype=torch.uint8)), files)])


def main():
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'call':34} {'image':22} {'share':>7} {'us':>10} {'host us':>9}")
    measure_ours(rounds)
    measure_peers(rounds)
    measure_order(rounds)
    measure_png(rounds)
    measure_decoding(rounds)


if __name__ == "__main__":
    main()
