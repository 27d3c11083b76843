"""The rules of docs/numerics.md that all filters share: sample ranges, stores, luma, and the order of sums."""

import numpy as np

F32, F64 = np.float32, np.float64
NAMES = {1: ["grey"], 2: ["grey", "a"], 3: ["r", "g", "b"], 4: ["r", "g", "b", "a"]}


def declare(last):
    """Set what the last of 2 or 4 channels is: "a" or "data"."""
    NAMES[2][-1] = NAMES[4][-1] = last


def top(image):
    """Return the largest sample value: 255, 65535, or 1 for f32."""
    return np.iinfo(image.dtype).max if image.dtype != F32 else 1


def colours(image):
    """Return the number of channels before alpha."""
    return image.shape[2] - (NAMES[image.shape[2]][-1] == "a")


def store(image, colour):
    """Return the image with its colour channels replaced by binary32 results, stored in the image's type."""
    out = image.copy()
    if image.dtype != F32:
        colour = np.rint(np.minimum(np.maximum(colour, F32(0)), F32(top(image))))
    else:
        colour = np.where(np.isnan(colour), F32(np.nan), colour)
    out[:, :, : colours(image)] = colour
    return out


def row_sums(values):
    """Return one sum per row of an H x W array: exact for integers, a tree of 256 binary64 partial sums for f32."""
    if values.dtype.kind == "u":
        return [int(s) for s in values.sum(1, dtype=np.uint64)]
    lanes = np.zeros((values.shape[0], 256))
    for x in range(0, values.shape[1], 256):
        part = values[:, x : x + 256]
        lanes[:, : part.shape[1]] += part
    stride = 128
    while stride:
        lanes[:, :stride] += lanes[:, stride : 2 * stride]
        stride //= 2
    return list(lanes[:, 0])


def ascending(rows):
    """Add the rows one after the other."""
    total = rows[0] * 0 if isinstance(rows[0], int) else F64(0)
    for row in rows:
        total = total + row
    return total


def luma(image):
    r, g, b = (image[:, :, c] for c in range(3))
    if image.dtype == F32:
        return F32(0.2126) * r + F32(0.7152) * g + F32(0.0722) * b
    r, g, b = (v.astype(np.uint32) for v in (r, g, b))
    return ((13933 * r + 46871 * g + 4732 * b + 32768) >> 16).astype(image.dtype)
