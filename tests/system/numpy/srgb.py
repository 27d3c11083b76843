"""The sRGB transfer function in exact integers: tables, and conversion of samples."""

import functools

import numpy as np

from arithmetic import F32

BITS = 80  # of the fraction of a floor; its exactness is known


def scaled(p, q):
    """Return floor(E(p / q) * 2^BITS), and whether that is exact."""
    if 100000 * p <= 4045 * q:
        quotient, rest = divmod(25 * p << BITS, 323 * q)
        return quotient, rest == 0
    n, d = (200 * p + 11 * q) ** 12 << 5 * BITS, (211 * q) ** 12  # E^5 = n / d / 2^(5 * BITS)
    power = n // d
    root = int((n / d / 2.0 ** (5 * BITS)) ** 0.2 * 2.0**BITS)
    while True:  # Newton's method for the fifth root of an integer
        better = (4 * root + power // root**4) // 5
        if abs(better - root) <= 1:
            break
        root = better
    root = max(root, better) + 1
    while root**5 * d > n:
        root -= 1
    return root, root**5 * d == n


def rounded(p, q, up):
    """Return E(p / q) rounded to binary32: up, or to nearest even."""
    root, exact = scaled(p, q)
    drop = root.bit_length() - 24
    kept, rest = root >> drop, root & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    if up:
        more = rest > 0 or not exact
    else:
        more = rest > half or (rest == half and (not exact or kept & 1))
    return float(kept + more) * 2.0 ** (drop - BITS)  # exact


@functools.lru_cache(None)
def linear_table(top):
    return np.array([0.0] + [rounded(v, top, False) for v in range(1, top + 1)], F32)


@functools.lru_cache(None)
def thresholds(top):
    """Return the least light of the codes 1 to top."""
    return np.array([rounded(2 * k - 1, 2 * top, True) for k in range(1, top + 1)], F32)


def to_linear(image):
    return linear_table(int(np.iinfo(image.dtype).max))[image]


def to_codes(light, dtype):
    codes = np.searchsorted(thresholds(int(np.iinfo(dtype).max)), light, side="right")
    return np.where(np.isnan(light), 0, codes).astype(dtype)
