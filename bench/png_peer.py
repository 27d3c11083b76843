"""Benchmark of nvCOMP's Deflate on the data of PNG files. Needs a GPU, PyTorch, nvidia-nvcomp and nvidia-libnvcomp.

Without -d: encodes each image, inflates the file on the CPU, and compresses these bytes on the GPU in chunks of 64 KiB,
entropy only. Compare with bench-png-device, which also chooses and applies the row filters, and writes complete files.
The time of nvCOMP includes the allocation of its output.

With -d: inflates the stream of each PNG file on the GPU. Compare with bench-png-device -d, which also uploads,
checks CRC-32 and Adler-32, and reconstructs the rows.
"""

import argparse
import ctypes
import statistics
import struct
import time
import zlib

import numpy as np
import torch

import gpufilter


def stream_of(file):
    """Return the zlib stream of a PNG."""
    at, data = 8, []
    while at < len(file):
        size, name = struct.unpack_from(">I4s", file, at)
        if name == b"IDAT":
            data.append(file[at + 8: at + 8 + size])
        at += 12 + size
    return b"".join(data)


def measure(call, rounds):
    """Return the median time of a call, in seconds."""
    seconds = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def compress(path, copies, rounds):
    """Print the time and size of the compression of an image."""
    from nvidia import nvcomp  # pylint: disable=import-outside-toplevel

    file = gpufilter.encode_png(torch.from_numpy(gpufilter.read(path)).cuda())
    filtered = np.frombuffer(zlib.decompress(stream_of(file)), np.uint8)
    tensor = torch.from_numpy(filtered.copy()).cuda().repeat(copies)
    codec = nvcomp.Codec(algorithm="Deflate", algorithm_type=0, uncomp_chunk_size=1 << 16)
    source = nvcomp.as_array(tensor)
    size = codec.encode(source).buffer_size
    one = measure(lambda: codec.encode(source), rounds)
    print(f"nvCOMP {path} x {copies}: {one * 1e3:.3f} ms {tensor.numel() / one * 1e-9:.1f} GB/s "
          f"{size / tensor.numel():.3f} of the bytes; gpufilter {len(file) / filtered.size:.3f}", flush=True)


class Options(ctypes.Structure):  # pylint: disable=too-few-public-methods
    """nvcompBatchedDeflateDecompressOpts_t. All zero: the defaults."""

    _fields_ = [("backend", ctypes.c_int), ("sort", ctypes.c_int), ("reserved", ctypes.c_char * 56)]


def inflate(path, copies, strip, rounds):
    """Print the time of the decompression of a file: one stream, or one per `strip` filtered bytes."""
    import nvidia.libnvcomp  # pylint: disable=import-outside-toplevel

    lib = ctypes.CDLL(nvidia.libnvcomp.__path__[0] + "/lib64/libnvcomp.so.6")
    with open(path, "rb") as opened:
        data = stream_of(opened.read())
    filtered = zlib.decompress(data)
    pieces, streams = [filtered], [data[2:-4]]
    if strip:
        pieces = [filtered[at: at + strip] for at in range(0, len(filtered), strip)]
        deflaters = [zlib.compressobj(6, zlib.DEFLATED, -15) for _ in pieces]
        streams = [deflater.compress(piece) + deflater.flush() for deflater, piece in zip(deflaters, pieces)]
    in_step, out_step = (max(map(len, of)) + 255 & ~255 for of in (streams, pieces))
    count = len(streams) * copies
    packed = torch.frombuffer(bytearray(b"".join(s.ljust(in_step, b"\0") for s in streams)), dtype=torch.uint8)
    packed = packed.cuda().repeat(copies)
    out = torch.empty(count * out_step, dtype=torch.uint8, device="cuda")

    def numbers(values):
        return torch.tensor(values, dtype=torch.int64, device="cuda")

    sources = numbers([packed.data_ptr() + i * in_step for i in range(count)])
    targets = numbers([out.data_ptr() + i * out_step for i in range(count)])
    in_sizes, out_sizes = numbers([len(s) for s in streams] * copies), numbers([len(p) for p in pieces] * copies)
    sizes, statuses = numbers([0] * count), torch.zeros(count, dtype=torch.int32, device="cuda")
    temp_bytes, stream = ctypes.c_size_t(), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    status = lib.nvcompBatchedDeflateDecompressGetTempSize(
        ctypes.c_size_t(count), ctypes.c_size_t(out_step), Options(), ctypes.byref(temp_bytes),
        ctypes.c_size_t(count * out_step), stream)
    temp = torch.empty(max(1, temp_bytes.value), dtype=torch.uint8, device="cuda")

    def run():
        def pointer(tensor):
            return ctypes.c_void_p(tensor.data_ptr())

        return lib.nvcompBatchedDeflateDecompressAsync(
            pointer(sources), pointer(in_sizes), pointer(out_sizes), pointer(sizes), ctypes.c_size_t(count),
            pointer(temp), temp_bytes, pointer(targets), Options(), pointer(statuses), stream)

    status = status or run()
    torch.cuda.synchronize()
    assert status == 0 and not statuses.any() and torch.equal(sizes, out_sizes), f"nvCOMP failed with status {status}"
    assert out[: len(pieces[0])].cpu().numpy().tobytes() == pieces[0]
    one = measure(run, rounds)
    print(f"nvCOMP inflate {path}, {count} streams: {one * 1e3:.3f} ms "
          f"{len(filtered) * copies / one * 1e-9:.1f} GB/s", flush=True)


def main():
    """Print a row per file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("-n", dest="copies", type=int, default=1, help="copies of each file")
    parser.add_argument("-r", dest="rounds", type=int, default=9)
    parser.add_argument("-d", dest="inflate", action="store_true", help="decompress PNG files")
    parser.add_argument("-s", dest="strip", type=int, default=0, help="with -d: filtered bytes per stream; 0: all")
    args = parser.parse_args()
    for path in args.files:
        if args.inflate:
            inflate(path, args.copies, args.strip, args.rounds)
        else:
            compress(path, args.copies, args.rounds)


if __name__ == "__main__":
    main()
