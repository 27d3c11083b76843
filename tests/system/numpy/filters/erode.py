"""erode: the minimum of a window."""

from case import Case
from order import random_order

CASES = 90


def random_case(rng):
    image, made, options, _ = random_order(rng, ["0"])
    return Case("erode", options, [image], made=made)
