"""Benchmark of nvCOMP on the filtered bytes of PNG files: png_peer.py [-n COPIES] IMAGE...

Encodes each image, inflates the file on the CPU, and compresses these bytes (COPIES of them) on the
GPU with nvCOMP's Deflate in chunks of 64 KiB, entropy only. Compare with bench-png-device, which
also chooses and applies the row filters, and writes complete files. Needs a GPU, PyTorch and the
package nvidia-nvcomp. Medians of 9; the time of nvCOMP includes the allocation of its output.
"""

import statistics
import struct
import sys
import time
import zlib

import numpy as np
import torch
from nvidia import nvcomp

import gpufilter

ROUNDS = 9


def filtered_bytes(file):
    """Return the inflated data of the IDAT chunks of a PNG."""
    at, data = 8, []
    while at < len(file):
        size, name = struct.unpack_from(">I4s", file, at)
        if name == b"IDAT":
            data.append(file[at + 8: at + 8 + size])
        at += 12 + size
    return zlib.decompress(b"".join(data))


def main():
    """Print a row per image."""
    arguments = sys.argv[1:]
    copies = int(arguments[1]) if arguments[0] == "-n" else 1
    for path in arguments[2:] if arguments[0] == "-n" else arguments:
        image = gpufilter.read(path)
        file = gpufilter.encode_png(torch.from_numpy(image).cuda())
        filtered = np.frombuffer(filtered_bytes(file), np.uint8)
        tensor = torch.from_numpy(filtered.copy()).cuda().repeat(copies)
        codec = nvcomp.Codec(algorithm="Deflate", algorithm_type=0, uncomp_chunk_size=1 << 16)
        source = nvcomp.as_array(tensor)
        seconds = []
        for _ in range(ROUNDS + 1):
            torch.cuda.synchronize()
            start = time.perf_counter()
            made = codec.encode(source)
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        size = made.buffer_size
        one = statistics.median(seconds[1:])
        print(f"nvCOMP {nvcomp.__version__} {path:24} {copies:5} {one * 1e3:10.3f} ms "
              f"{tensor.numel() / one * 1e-9:8.1f} GB/s {size / tensor.numel():8.3f} of the bytes; "
              f"gpufilter {len(file) / filtered.size:.3f}", flush=True)


main()
