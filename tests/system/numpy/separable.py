"""Weighted sums along x and y, as gaussian, box and sharpen compute them: edges, taps, and fused multiply-add in binary32
and binary64 from operations of NumPy."""

import math

import numpy as np

from arithmetic import F32, F64

NARROW = 20  # largest radius of FIXED, and of SINGLE for u16


def outside(mode):
    """Return the arguments of np.pad for a mode of --edge."""
    name, _, value = mode.partition(":")
    if name == "constant":
        return {"mode": "constant", "constant_values": F64(value)}
    return {"mode": {"replicate": "edge", "reflect": "symmetric", "mirror": "reflect"}[name]}


def padded(plane, radius, mode):
    """Return a plane with the samples around it."""
    rx, ry = radius
    return np.pad(plane, ((ry, ry), (rx, rx)), **outside(mode))


# ---- taps -------------------------------------------------------------------------------------------


def exp_of_minus(x):
    if x > 700:
        return 0.0
    n = int(x * float.fromhex("0x1.71547652b82fep+0") + 0.5)
    f = (n * float.fromhex("0x1.62e42feep-1") - x) + n * float.fromhex("0x1.a39ef35793c76p-33")
    total = 1.0
    for k in range(18, 0, -1):
        total = 1 + total * f / k
    return math.ldexp(total, -n)


def gaussian_taps(sigma, radius):
    """Return the taps at distances 0 to radius."""
    if radius == 0:
        return [1.0]
    distance = [k / sigma for k in range(radius + 1)]
    taps = [exp_of_minus(d * d / 2) for d in distance]
    total = 0.0
    for tap in reversed(taps[1:]):
        total += 2 * tap
    return [tap / (total + 1) for tap in [1.0] + taps[1:]]


def fixed_taps(taps):
    """Round taps to integers with a sum of 2^16 over the window: up where the fractions are largest, in pairs."""
    scaled = [tap * 65536 for tap in taps]
    fixed = [int(s) for s in scaled]
    rest = 65536 - fixed[0] - 2 * sum(fixed[1:])
    order = sorted(range(1, len(taps)), key=lambda k: (fixed[k] - scaled[k], k))
    for k in order[: rest // 2]:
        fixed[k] += 1
    fixed[0] += rest % 2
    return fixed


# ---- arithmetic -------------------------------------------------------------------------------------


def two_sum(a, b):
    """Return the rounded sum of binary64 numbers, and its exact error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def rounded_to_odd(s, error):
    """Return s + error, rounded to odd: rounding the result again to fewer bits is rounding once."""
    odd = np.ascontiguousarray(s).view(np.int64)
    inexact = np.isfinite(error) & (error != 0) & (odd & 1 == 0)
    step = np.where((error > 0) == (s > 0), 1, -1)
    return np.where(inexact, odd + step, odd).view(F64)


def fma32(a, b, c):
    return rounded_to_odd(*two_sum(F64(a) * b.astype(F64), c.astype(F64))).astype(F32)


def halves(a):
    """Split a number into two of at most 26 bits."""
    t = 134217729.0 * a
    high = t - (t - a)
    return high, a - high


def fma64(a, b, c):
    """The algorithm of Boldo and Melquiond. Products are far from overflow and underflow."""
    product = a * b
    (ah, al), (bh, bl) = halves(F64(a)), halves(b)
    error = al * bl - (((product - ah * bh) - al * bh) - ah * bl)
    u, u_error = two_sum(c, error)
    t, t_error = two_sum(product, u)
    return t + rounded_to_odd(*two_sum(t_error, u_error))


def weighted(v, taps, fma):
    """Return the sums along axis 1, in the type of v, from the outermost samples to the center."""
    r, count = len(taps) - 1, v.shape[1] - 2 * (len(taps) - 1)
    at = lambda k: v[:, r + k : r + k + count]
    if r == 0:
        return v.dtype.type(taps[0]) * v
    s = v.dtype.type(taps[r]) * (at(-r) + at(r))
    for k in range(r - 1, 0, -1):
        s = fma(v.dtype.type(taps[k]), at(-k) + at(k), s)
    return fma(v.dtype.type(taps[0]), at(0), s)


def exact(v, taps):
    """Return the sums along axis 1 in 64-bit integers."""
    r, count = len(taps) - 1, v.shape[1] - 2 * (len(taps) - 1)
    return sum(taps[abs(k)] * v[:, r + k : r + k + count] for k in range(-r, r + 1))


def both_axes(plane, taps, along, between=lambda s: s):
    """Apply a function of rows and taps along x, `between` to the result, then the function along y."""
    x = between(along(plane, taps[0]))
    return along(np.ascontiguousarray(x.T), taps[1]).T
