"""Benchmark of resize in GPU memory, beside other libraries: resize_peer.py [ROUNDS] (default: 9).

Needs a GPU and PyTorch; compares with torchvision v2 (without it, with what it calls:
antialiased torch.nn.functional.interpolate), cupyx.scipy.ndimage.zoom (cubic, without antialiasing), NPP (nppiResize,
cubic and super-sampling; cubic does not antialias) and CV-CUDA, if they can be loaded. All run on one stream, in turns,
on u8 RGB images with the channels last, except torchvision, which needs them first.

Each row shows the time of a call on the device, the share of the bandwidth of a device copy in the same round with which
the input is read (bytes of the input / time), and the time relative to gpufilter with the same kernel. Medians.
"""

import ctypes
import glob
import importlib
import statistics
import sys

import numpy as np
import torch

import gpufilter
from peers import module

CALLS = 20
IMAGES = 64


def photographs(count, height, width):
    """Return slow waves with noise, (N, H, W, 3)."""
    samples = count * height * width * 3
    wave = torch.arange(samples, device="cuda") // 97 % 200 + torch.randint(0, 16, (samples,), device="cuda")
    return wave.to(torch.uint8).reshape(count, height, width, 3)


def seconds_of(call):
    """Return the seconds of one call on the device."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(20_000_000)  # pylint: disable=protected-access
    begin.record()
    for _ in range(CALLS):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / CALLS


# ---- peers: each returns a call, or None ---------------------------------------------------------------------------


def ours(images, size, kernel):
    """gpufilter, into an array that exists."""
    out = torch.empty((len(images), *size, 3), dtype=torch.uint8, device="cuda")
    return lambda: gpufilter.resize(images, exact=[size[1], size[0]], kernel=kernel, out=out)


def torchvision(images, size, kernel):
    """torchvision v2, or what it calls."""
    planes = images.permute(0, 3, 1, 2).contiguous()
    if kernel != "bicubic":
        return None
    vision = module("torchvision.transforms.v2.functional")
    if vision:
        mode = importlib.import_module("torchvision.transforms").InterpolationMode.BICUBIC
        return lambda: vision.resize(planes, list(size), interpolation=mode, antialias=True)

    def resize():
        made = torch.nn.functional.interpolate(planes.float(), size, mode="bicubic", antialias=True)
        return made.clamp_(0, 255).round_().to(torch.uint8)

    return resize


def cupyx(images, size, kernel):
    """cupyx.scipy.ndimage.zoom, image by image."""
    zoom = module("cupyx.scipy.ndimage") if kernel == "bicubic" else None
    if not zoom:
        return None
    cupy = importlib.import_module("cupy")
    arrays = [cupy.asarray(image) for image in images]
    factors = (size[0] / images.shape[1], size[1] / images.shape[2], 1)
    stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

    def resize():
        with stream:
            for array in arrays:
                zoom.zoom(array, factors, order=3)

    return resize


class Context(ctypes.Structure):  # pylint: disable=too-few-public-methods
    """NppStreamContext."""

    _fields_ = [("stream", ctypes.c_void_p)] + [(name, ctypes.c_int) for name in (
        "device", "multiprocessors", "threads_per_multiprocessor", "threads_per_block")] + [
            ("shared", ctypes.c_size_t), ("major", ctypes.c_int), ("minor", ctypes.c_int),
            ("flags", ctypes.c_uint), ("reserved", ctypes.c_int)]


class Ints(ctypes.Structure):  # pylint: disable=too-few-public-methods
    """NppiSize uses the first two, NppiRect all."""

    _fields_ = [(name, ctypes.c_int) for name in "abcd"]


class Size(ctypes.Structure):  # pylint: disable=too-few-public-methods
    """NppiSize."""

    _fields_ = [("width", ctypes.c_int), ("height", ctypes.c_int)]


def nppig():
    """Load NPP, from CUDA or a wheel."""
    wheels = [path for folder in sys.path for path in glob.glob(folder + "/nvidia/**/libnppig.so*", recursive=True)]
    for name in ["libnppig.so.13", "libnppig.so.12", "/usr/local/cuda/lib64/libnppig.so"] + wheels:
        try:
            return ctypes.CDLL(name).nppiResize_8u_C3R_Ctx
        except (OSError, AttributeError):
            pass
    print("libnppig: not measured (it cannot be loaded)")
    return None


def npp(images, size, mode):
    """nppiResize_8u_C3R_Ctx, image by image. mode: NppiInterpolationMode."""
    call = nppig()
    if not call:
        return None
    of = torch.cuda.get_device_properties(0)
    height, width = images.shape[1:3]
    out = torch.empty((len(images), *size, 3), dtype=torch.uint8, device="cuda")
    context = Context(torch.cuda.current_stream().cuda_stream, 0, of.multi_processor_count, 2048, 1024, 49152,
                      of.major, of.minor, 0, 0)
    pairs = [(ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(b.data_ptr())) for a, b in zip(images, out)]

    def resize():
        for source, target in pairs:
            status = call(source, width * 3, Size(width, height), Ints(0, 0, width, height), target, size[1] * 3,
                          Size(size[1], size[0]), Ints(0, 0, size[1], size[0]), mode, context)
            assert status >= 0, f"nppiResize: {status}"

    return resize


def cvcuda(images, size, kernel):
    """CV-CUDA's resize with antialiasing."""
    library = module("cvcuda")
    if not library:
        return None
    tensor = library.as_tensor(images, "NHWC")
    mode = library.Interp.CUBIC if kernel == "bicubic" else library.Interp.LANCZOS
    stream = library.cuda.as_stream(torch.cuda.current_stream()) if hasattr(library, "cuda") else None
    more = {"stream": stream} if stream else {}
    if hasattr(library, "hq_resize"):
        return lambda: library.hq_resize(tensor, size, antialias=True, interpolation=mode, **more)
    return lambda: library.resize(tensor, (len(images), *size, 3), mode, **more)


PEERS = {
    "bicubic": [("torchvision", torchvision), ("cupyx zoom, no antialias", cupyx),
                ("npp cubic, no antialias", lambda i, s, k: npp(i, s, 4)),
                ("npp super-sampling", lambda i, s, k: npp(i, s, 8)), ("cv-cuda", cvcuda)],
    "lanczos3": [("npp lanczos", lambda i, s, k: npp(i, s, 16)), ("cv-cuda", cvcuda)],
}


def measure(images, size, kernel, rounds):
    """Print a row for each library that can do it."""
    target = torch.empty_like(images)
    calls = [("copy", lambda: target.copy_(images)), ("gpufilter", ours(images, size, kernel))]
    times = {}
    for name, make in PEERS[kernel]:
        try:
            call = make(images, size, kernel)
            if call:
                call()
                calls.append((name, call))
        except Exception as error:  # pylint: disable=broad-except
            print(f"{name}: not measured ({type(error).__name__}: {error})")
    for i in range(rounds + 1):
        for name, call in calls:
            one = seconds_of(call)
            if i:
                times.setdefault(name, []).append(one)
    count, height, width = images.shape[:3]
    print(f"{count} x {width}x{height} to {size[1]}x{size[0]}, {kernel}: "
          f"copy {statistics.median(times['copy']) * 1e6:.1f} us")
    for name, _ in calls[1:]:
        one = statistics.median(times[name])
        share = statistics.median(copy / 2 / own for copy, own in zip(times["copy"], times[name]))
        ratio = statistics.median(own / first for own, first in zip(times[name], times["gpufilter"]))
        print(f"  {name:26} {one * 1e6:10.1f} us  share {share:6.3f}  x {ratio:7.2f}", flush=True)


def main():
    """Print all rows."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(torch.cuda.get_device_name(), "gpufilter", gpufilter.__version__, "torch", torch.__version__,
          "numpy", np.__version__)
    large, small = photographs(1, 4000, 6000), photographs(IMAGES, 1080, 1920)
    for kernel in PEERS:
        for size in ((2000, 3000), (1000, 1500), (171, 256)):
            measure(large, size, kernel, rounds)
        measure(small, (224, 224), kernel, rounds)


if __name__ == "__main__":
    main()
