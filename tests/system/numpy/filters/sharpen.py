"""sharpen: unsharp mask."""

import numpy as np

from arithmetic import F32, F64, colours, store
from case import Case
from filters.gaussian import blurred, radii
from images import decimal, random_image
from separable import fma32, fma64, gaussian_taps
from settings import random_edge, random_sigma

CASES = 90


def sharpened(plane, taps, edge, amount, threshold):
    g = blurred(plane, taps, edge, None)
    v = plane.astype(g.dtype)
    d = v - g
    fma = fma32 if g.dtype == F32 else fma64
    return np.where(np.abs(d) < g.dtype.type(threshold), v, fma(g.dtype.type(amount), d, v))


def sharpen(image, sigma, amount, threshold, edge):
    """sigma: of x and y; amount, threshold: binary32."""
    taps = [gaussian_taps(s, r) for s, r in zip(sigma, radii(sigma, "4"))]
    colour = np.stack([sharpened(image[:, :, c], taps, edge, amount, threshold) for c in range(colours(image))], 2)
    return store(image, (colour if image.dtype == F32 else np.rint(colour)).astype(F32))


def random_case(rng):
    image = random_image(rng)
    sigma, options = random_sigma(rng)
    edge, more = random_edge(rng, image)
    amount, threshold = "1", "0"
    if rng.random() < 0.6:
        amount = str(rng.choice(["0", "0.5", "2", "100", decimal(rng, 0, 5)]))
        more += ["--amount", amount]
    if rng.random() < 0.5:
        threshold = str(rng.choice(["0.1", "1", "3", decimal(rng, 0, 50)]))
        more += ["--threshold", threshold]
    made = sharpen(image, sigma, F32(amount), F32(threshold), edge)
    return Case("sharpen", options + more, [image], made=made)
