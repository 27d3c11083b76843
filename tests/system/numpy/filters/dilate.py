"""dilate: the maximum of a window."""

from case import Case
from order import random_order

CASES = 90


def random_case(rng):
    image, made, options, _ = random_order(rng, ["100"])
    return Case("dilate", options, [image], made=made)
