"""Read and write image files without the program."""

import io

import numpy as np

from arithmetic import F32, top


def extension(image, npy):
    """Return the extension of a file that can store the image; npy: prefer a NumPy file."""
    if npy or (image.dtype == F32 and image.shape[2] in (2, 4)):
        return ".npy"
    return ".pfm" if image.dtype == F32 else ".pam"


def write_image(stem, image, npy=None):
    """Write NPY in the byte order npy ("<" or ">"), PFM, PGM, PPM or PAM; return the file name."""
    height, width, channels = image.shape
    if extension(image, npy) == ".npy":
        stored = image[:, :, 0] if channels == 1 else image
        np.save(stem + ".npy", stored.astype(image.dtype.newbyteorder(npy or "<")))
        return stem + ".npy"
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
    """Read NPY, PFM or PAM. The bytes of an NPY file are those of numpy.save."""
    if path.endswith(".npy"):
        image, saved = np.load(path), io.BytesIO()
        np.save(saved, image)
        with open(path, "rb") as file:
            if file.read() != saved.getvalue():
                raise ValueError("the file differs from the one of numpy.save")
        return image.reshape(image.shape[:2] + (-1,))
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
