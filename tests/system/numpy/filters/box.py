"""box: the mean of a rectangle."""

import numpy as np

from arithmetic import F32, colours, store
from case import Case
from images import random_image
from separable import both_axes, exact, fma32, padded, weighted
from settings import random_edge, scipy_agrees

CASES = 90


def box(image, radius, edge):
    """radius: of x and y."""
    taps = [[1] * (r + 1) for r in radius]
    count = (2 * radius[0] + 1) * (2 * radius[1] + 1)
    planes = []
    for c in range(colours(image)):
        v = padded(image[:, :, c], radius, edge)
        if image.dtype == F32:
            s = both_axes(v.astype(F32), taps, lambda rows, t: weighted(rows, t, fma32))
            planes.append(s / F32(count) if count > 1 else s)
        else:
            planes.append((both_axes(v.astype(np.int64), taps, exact) + count // 2) // count)
    return store(image, np.stack(planes, 2).astype(F32))


def random_case(rng):
    image = random_image(rng)
    radius = [int(rng.choice([1, 2, 3, rng.integers(1, 40)])) for _ in range(2)]
    if rng.random() < 0.5:
        radius[1] = radius[0]
    elif rng.random() < 0.3:
        radius[rng.integers(2)] = 0
    edge, options = random_edge(rng, image)
    if radius != [1, 1]:
        options += ["--radius", "%d" % radius[0] if radius[0] == radius[1] else "%d,%d" % tuple(radius)]
    made = box(image, radius, edge)
    assert scipy_agrees(image, made, edge, size=[2 * r + 1 for r in radius])
    return Case("box", options, [image], made=made)
