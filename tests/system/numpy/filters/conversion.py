"""Conversion of the input and the output of a filter: --crop and --depth."""

import numpy as np

from arithmetic import F32, F64, top
from case import Case
from filters.normalize import normalize
from filters.smooth import smooth
from images import random_image

CASES = 60

TYPES = {"8": np.dtype(np.uint8), "16": np.dtype(np.uint16), "f32": np.dtype(F32)}
ORDER = list(TYPES.values())


def converted(image, dtype):
    """Convert all samples, alpha included."""
    if image.dtype == dtype:
        return image
    if dtype == F32:
        return image.astype(F32) / F32(top(image))
    if image.dtype == F32:
        unit = np.where(image > 0, np.minimum(image, F32(1)), F32(0))
        return np.rint(unit.astype(F64) * np.iinfo(dtype).max).astype(dtype)
    if dtype == np.uint16:
        return image.astype(dtype) * dtype.type(257)
    return np.rint(image.astype(F64) / 257).astype(dtype)  # no quotient is near a half


def part_of(rng, size):
    first = int(rng.integers(0, size))
    return first, int(rng.integers(1, size - first + 1))


def random_case(rng):
    image = random_image(rng)
    fits = [name for name in TYPES if name != "f32" or image.shape[2] in (1, 3)]  # PFM has no alpha
    depth = str(rng.choice(fits))
    dtype = TYPES[depth]
    part, crop = image, []
    if rng.random() < 0.5:
        (y, height), (x, width) = (part_of(rng, size) for size in image.shape[:2])
        part, crop = image[y : y + height, x : x + width], ["--crop", "%d,%d,%d,%d" % (x, y, width, height)]
    larger = ORDER.index(dtype) > ORDER.index(image.dtype)
    read = converted(part, dtype) if larger else part
    if rng.random() < 0.3:
        made, name, options = normalize(read), "normalize", []
    else:
        made, name, options = smooth(read, F32(1.1), 2, F32(0.6), "enhance,blur,smooth", "x", 0, False), "smooth", []
    return Case(name, options + crop + ["--depth", depth], [image], made=converted(made, dtype))
