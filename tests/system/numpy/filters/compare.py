"""compare: whether two images are equal, and where they differ."""

import numpy as np

from arithmetic import F32, F64, NAMES, colours, luma, top
from case import Case
from images import random_image, two_images

CASES = 100


def compare(a, b):
    """Return the result and the difference image."""
    if a.dtype == F32:
        p, q = a.astype(F64), b.astype(F64)
        same = a.view(np.uint32) == b.view(np.uint32)
        d = np.where(np.isnan(p) | np.isnan(q), np.inf, np.abs(p - q))
        d = np.where((p == q) | (np.isnan(p) & np.isnan(q)), 0, d)
        ramp = (np.minimum(d, 1) * 255).max(2).astype(np.uint8)
    else:
        d = np.abs(a.astype(np.int64) - b.astype(np.int64))
        same = d == 0
        ramp = d.max(2) * 255 // top(a)
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
    differs = (~same).any(2)
    drawn[differs] = np.stack([np.full_like(ramp, 255), ramp, np.zeros_like(ramp)], 2)[differs]
    return {"comparison": result}, drawn


def random_case(rng):
    a, b = two_images(rng, random_image(rng))
    result, drawn = compare(a, b)
    same = result["comparison"]["differing"] == 0
    return Case("compare", [], [a, b], result=result, made=drawn, draws="--diff", code=0 if same else 1,
                passed=same)
