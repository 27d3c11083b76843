"""Read and write image files without the program."""

import numpy as np

from arithmetic import F32, top


def write_image(stem, image):
    """Write PFM, PGM, PPM or PAM; return the file name."""
    height, width, channels = image.shape
    if image.dtype == F32:
        kind, head = ".pfm", "%s\n%d %d\n-1\n" % ("PF" if channels == 3 else "Pf", width, height)
        data = image[::-1].astype("<f4")
    else:
        data = image.astype(">u2" if image.dtype == np.uint16 else "u1")
        if channels in (1, 3):
            kind, magic = (".pgm", "P5") if channels == 1 else (".ppm", "P6")
            head = "%s\n%d %d\n%d\n" % (magic, width, height, top(image))
        else:
            kind, tuples = ".pam", "GRAYSCALE_ALPHA" if channels == 2 else "RGB_ALPHA"
            head = "P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n" % (
                width, height, channels, top(image), tuples)
    with open(stem + kind, "wb") as file:
        file.write(head.encode() + data.tobytes())
    return stem + kind


def read_image(path):
    """Read PFM or PAM."""
    with open(path, "rb") as file:
        magic = file.readline().strip()
        if magic == b"P7":
            head, pixels = file.read().split(b"\nENDHDR\n", 1)
            head = dict(line.split(None, 1) for line in head.splitlines())
            shape = [int(head[key]) for key in (b"HEIGHT", b"WIDTH", b"DEPTH")]
            kind = "u1" if int(head[b"MAXVAL"]) < 256 else ">u2"
            return np.frombuffer(pixels, kind).reshape(shape).astype(kind.strip(">"))
        width, height = file.readline().split()
        kind = "<f4" if float(file.readline()) < 0 else ">f4"
        shape = int(height), int(width), {b"PF": 3, b"Pf": 1}[magic]
        return np.frombuffer(file.read(), kind).reshape(shape)[::-1].astype(F32)
