"""median: the median of a window."""

from case import Case
from order import random_order

CASES = 90


def random_case(rng):
    image, made, options, _ = random_order(rng, ["50"])
    return Case("median", options, [image], made=made)
