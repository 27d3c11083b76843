"""compare: whether two images are equal, and where they differ."""

import numpy as np

from arithmetic import F32, F64, NAMES, colours, luma, top
from case import Case
from images import random_image, two_images

CASES = 200


def compare(a, b, tolerance=None):
    """Return the result and the difference image. tolerance: None: bits must be equal."""
    if a.dtype == F32:
        p, q = a.astype(F64), b.astype(F64)
        same = a.view(np.uint32) == b.view(np.uint32)
        d = np.where(np.isnan(p) | np.isnan(q), np.inf, np.abs(p - q))
        d = np.where((p == q) | (np.isnan(p) & np.isnan(q)), 0, d)
        ramp = (np.minimum(d, 1) * 669).max(2).astype(np.int64)
    else:
        d = np.abs(a.astype(np.int64) - b.astype(np.int64))
        same = d == 0
        ramp = d.max(2) * 669 // top(a)
    differs = (~same).any(2)
    if tolerance is not None:
        same = d <= F64(F32(tolerance))
    differing = int((~same).sum())
    largest = d.max() if a.dtype == F32 else int(d.max())
    result = {"samples": int(a.size), "differing": differing, "largest": largest}
    result.update(dict.fromkeys(["x", "y", "channel", "first", "second"]))  # null if none differs
    if differing:
        y, x, c = (int(i) for i in np.argwhere(~same)[0])  # in the order y, x, channel
        first, second = (v[y, x, c] if a.dtype == F32 else int(v[y, x, c]) for v in (a, b))
        result.update(x=x, y=y, channel=NAMES[a.shape[2]][c], first=first, second=second)
    dark = luma(a) if a.shape[2] >= 3 else a[:, :, 0]
    if a.dtype == F32:
        dark = np.where(dark > 0, np.where(dark < 1, dark, F32(1)), F32(0)) * F32(255)
    shift = 10 if a.dtype == np.uint16 else 2
    drawn = np.repeat((dark.astype(np.uint16) >> shift)[:, :, None], 3, 2).astype(np.uint8)
    glow = np.stack([np.clip(96 + ramp - 255 * i, 0, 255) for i in range(3)], 2).astype(np.uint8)
    drawn[differs] = glow[differs]
    return {"comparison": result}, drawn


def random_case(rng):
    a, b = two_images(rng, random_image(rng))
    tolerance = rng.choice([None, 0, 1, 20.5, 0.01, 300])
    result, drawn = compare(a, b, tolerance)
    same = result["comparison"]["differing"] == 0
    options = [] if tolerance is None else ["--tolerance", str(tolerance)]
    return Case("compare", options, [a, b], result=result, made=drawn, draws="--diff", code=0 if same else 1,
                passed=same)
