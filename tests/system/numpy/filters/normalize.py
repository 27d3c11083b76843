"""normalize: divide every sample by the mean of its channel."""

import numpy as np

from arithmetic import F32, F64, ascending, colours, row_sums, store, top
from case import Case
from images import random_summands

CASES = 100


def normalize(image):
    out = np.zeros(image.shape, F32)[:, :, : colours(image)]
    for c in range(colours(image)):
        v = image[:, :, c]
        mean = F32(F64(ascending(row_sums(v))) / v.size)
        out[:, :, c] = v.astype(F32) / (F32(1) if mean <= 0 else mean)
    if image.dtype != F32:
        out = out * F32(top(image) / 2)
    return store(image, out)


def random_case(rng):
    image = random_summands(rng)
    return Case("normalize", [], [image], made=normalize(image))
