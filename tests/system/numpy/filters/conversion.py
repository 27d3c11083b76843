"""Conversion of the input and the output of a filter: --crop, --depth and --linear."""

import numpy as np

from arithmetic import F32, F64, colours, top
from case import Case
from filters.normalize import normalize
from filters.smooth import smooth
from images import random_image
from srgb import linear_table, thresholds, to_codes, to_linear

CASES = 80

TYPES = {"8": np.dtype(np.uint8), "16": np.dtype(np.uint16), "f32": np.dtype(F32)}
ORDER = list(TYPES.values())
COPY = ["--stages", "enhance", "--gain", "1"]  # changes no f32 sample


def converted(image, dtype, linear=False):
    """Convert all samples. linear: integers are sRGB, except alpha, and f32 is linear light."""
    if image.dtype == dtype:
        return image
    if dtype == F32:
        out = image.astype(F32) / F32(top(image))
    elif image.dtype == F32:
        unit = np.where(image > 0, np.minimum(image, F32(1)), F32(0))
        out = np.rint(unit.astype(F64) * np.iinfo(dtype).max).astype(dtype)
    elif dtype == np.uint16:
        out = image.astype(dtype) * dtype.type(257)
    else:
        out = np.rint(image.astype(F64) / 257).astype(dtype)  # no quotient is near a half
    if linear:
        colour = image[:, :, : colours(image)]
        out[:, :, : colours(image)] = to_linear(colour) if dtype == F32 else to_codes(colour, dtype)
    return out


def part_of(rng, size):
    first = int(rng.integers(0, size))
    return first, int(rng.integers(1, size - first + 1))


def random_case(rng):
    image = random_image(rng)
    fits = [name for name in TYPES if name != "f32" or image.shape[2] in (1, 3)]  # PFM has no alpha
    dtype, options = image.dtype, []
    if rng.random() < 0.8:
        depth = str(rng.choice(fits))
        dtype, options = TYPES[depth], ["--depth", depth]
    part = image
    if rng.random() < 0.5:
        (y, height), (x, width) = (part_of(rng, size) for size in image.shape[:2])
        part = image[y : y + height, x : x + width]
        options += ["--crop", "%d,%d,%d,%d" % (x, y, width, height)]
    linear = bool(rng.random() < 0.4)
    options += ["--linear"] if linear else []
    larger = linear or ORDER.index(dtype) > ORDER.index(image.dtype)
    read = converted(part, ORDER[2] if linear else dtype, linear) if larger else part
    if rng.random() < 0.3:
        made, name = normalize(read), "normalize"
    else:
        made, name = smooth(read, F32(1.1), 2, F32(0.6), "enhance,blur,smooth", "x", 0, False), "smooth"
    return Case(name, options, [image], made=converted(made, dtype, linear))


# ---- every code value and every threshold of sRGB ---------------------------------------------------------------


def linear_case(dtype):
    """All code values become linear light."""
    codes = np.arange(np.iinfo(dtype).max + 1).astype(dtype).reshape(-1, 256, 1)
    return Case("smooth", COPY + ["--linear", "--depth", "f32"], [codes], made=linear_table(top(codes))[codes])


def codes_case(depth):
    """The thresholds and the numbers below and above them become code values; the light of a code becomes it."""
    dtype = TYPES[depth]
    limit = int(np.iinfo(dtype).max)
    table, codes = thresholds(limit), np.arange(1, limit + 1)
    assert (np.diff(table) > 0).all() and (np.diff(linear_table(limit)) > 0).all()
    special = np.array([0, -0.0, np.nan, -np.nan, np.inf, -np.inf, -1, 1, 2, 1e-45, 1e-30, 3e38], F32)
    light = [table, np.nextafter(table, F32(0)), np.nextafter(table, F32(2)), linear_table(limit)[1:], special]
    made = [codes, codes - 1, codes, codes, [0, 0, 0, 0, limit, 0, 0, limit, limit, 0, 0, limit]]
    shape = 1, -1, 1
    return Case("smooth", COPY + ["--linear", "--depth", depth], [np.concatenate(light).reshape(shape)],
                made=np.concatenate(made).astype(dtype).reshape(shape))


FIXED = [lambda: linear_case(np.uint8), lambda: linear_case(np.uint16), lambda: codes_case("8"),
         lambda: codes_case("16")]
