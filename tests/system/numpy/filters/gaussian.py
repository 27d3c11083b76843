"""gaussian: blur by a Gaussian."""

import math

import numpy as np

from arithmetic import F32, F64, colours, store
from case import Case
from images import random_image
from separable import NARROW, both_axes, exact, fixed_taps, fma32, fma64, gaussian_taps, padded, weighted
from settings import random_edge, random_sigma, scipy_agrees

CASES = 90


def radii(sigma, truncate):
    return [math.floor(float(F32(truncate)) * s + 0.5) for s in sigma]


def blurred(plane, taps, edge, integers):
    """Return a plane of samples, blurred in binary32, or in binary64, and not rounded to integers. integers: narrow
    windows of u8, whose result is rounded."""
    radius = [len(t) - 1 for t in taps]
    v = padded(plane, radius, edge)
    if integers:
        v = both_axes(v.astype(np.int64), [fixed_taps(t) for t in taps], exact, lambda s: (s + 128) >> 8)
        return (v + (1 << 23)) >> 24
    wide = plane.dtype == np.uint16 and (integers is None or max(radius) > NARROW)
    if wide:
        return both_axes(v.astype(F64), taps, lambda rows, t: weighted(rows, t, fma64))
    return both_axes(v.astype(F32), taps, lambda rows, t: weighted(rows, t, fma32))


def gaussian(image, sigma, truncate, edge):
    """sigma: of x and y."""
    radius = radii(sigma, truncate)
    taps = [gaussian_taps(s, r) for s, r in zip(sigma, radius)]
    integers = image.dtype == np.uint8 and max(radius) <= NARROW
    colour = np.stack([blurred(image[:, :, c], taps, edge, integers) for c in range(colours(image))], 2)
    return store(image, (colour if image.dtype == F32 else np.rint(colour)).astype(F32))


def random_case(rng):
    image = random_image(rng)
    sigma, options = random_sigma(rng)
    edge, more = random_edge(rng, image)
    truncate = "4"
    if rng.random() < 0.3:
        truncate = str(rng.choice(["0.1", "1", "2.5", "5", "7.3"]))
        more += ["--truncate", truncate]
    made = gaussian(image, sigma, truncate, edge)
    assert scipy_agrees(image, made, edge, sigma=sigma, truncate=float(F32(truncate)))
    return Case("gaussian", options + more, [image], made=made)
