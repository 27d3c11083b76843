"""percentile: a percentile of a window."""

from case import Case
from order import random_order

CASES = 90


def random_case(rng):
    image, made, options, percent = random_order(rng, ["0", "10", "25", "33.3", "50", "66", "75", "90", "99.5", "100"])
    return Case("percentile", options + ["--percent", percent], [image], made=made)
