"""smooth: enhance, blur and smooth along rows or columns."""

import numpy as np

from arithmetic import F32, F64, colours, store
from case import Case
from images import decimal, random_image

CASES = 150


def smooth_signals(p, gain, radius, weight, stages, keep):
    """Apply the stages along axis 1 of a binary32 array."""
    width = p.shape[1]
    if "enhance" in stages:
        p = p * gain
    if "blur" in stages:
        i = np.arange(width)
        low, high = np.maximum(0, i - radius), np.minimum(width - 1, i + radius)
        s = p[:, low]
        for step in range(1, min(2 * radius, width - 1) + 1):
            inside = (low + step <= high)[:, None]
            s = np.where(inside, s + p[:, np.minimum(low + step, width - 1)], s)
        p = s / (high - low + 1).astype(F32)[:, None]
    if "smooth" in stages:
        t = p.copy()
        t[:, 1:] = (t[:, 1:] + p[:, :-1]) * weight
        t[:, :-1] = (t[:, :-1] + p[:, 1:]) * weight
        if keep and width > 1:
            w = F64(weight)
            factor = np.full((width, 1), 1 / (w + 2 * w * w)).astype(F32)
            factor[0] = factor[-1] = F32(1 / (2 * w))
            t = t * factor
        p = t
    return p


def smooth(image, gain, radius, weight, stages, axis, tile, keep):
    p = image[:, :, : colours(image)].astype(F32)
    for direction in axis:
        if direction == "y":
            p = p.transpose(1, 0, 2)
        step = tile or p.shape[1]
        tiles = [p[:, x : x + step] for x in range(0, p.shape[1], step)]
        p = np.concatenate([smooth_signals(t, gain, radius, weight, stages, keep) for t in tiles], 1)
        if direction == "y":
            p = p.transpose(1, 0, 2)
    return store(image, p)


def published(rng):
    i = np.arange(1024)
    ramp = ((i % 10).astype(F32) + i.astype(F32) / F32(100)).reshape(1, -1, 1)
    made = smooth(ramp, F32(1.1), 2, F32(0.6), "enhance,blur,smooth", "x", 256, False)
    assert [int(v) for v in made[0, :3, 0].view(np.uint32)] == [0x3FD54FE1, 0x40155184, 0x40599409]
    return Case("smooth", ["--tile", "256"], [ramp], made=made)


def random_case(rng):
    image = random_image(rng)
    options, keep = [], bool(rng.random() < 0.4)
    gain, radius, weight, stages, axis, tile = "1" if keep else "1.1", 2, "0.6", "enhance,blur,smooth", "x", 0
    if rng.random() < 0.5:
        gain = str(rng.choice(["0", "1", "100", decimal(rng, 0, 3)]))
        options += ["--gain", gain]
    if rng.random() < 0.5:
        radius = int(rng.choice([0, 1, 3, 127, rng.integers(0, 40)]))
        options += ["--radius", str(radius)]
    if rng.random() < 0.5:
        weight = str(rng.choice(["0.5", "1", "100", decimal(rng, 0.1, 2)]))
        options += ["--weight", weight]
    if rng.random() < 0.3:
        stages = [s for s in ("enhance", "blur", "smooth") if rng.random() < 0.5]
        stages = ",".join(stages) or "blur"
        options += ["--stages", stages]
    if rng.random() < 0.7:
        axis = str(rng.choice(["x", "y", "xy"]))
        options += ["--axis", axis]
    if rng.random() < 0.5:
        tile = int(rng.choice([1, 2, 16, 256, rng.integers(1, 300)]))
        options += ["--tile", str(tile)]
    options += ["--keep-brightness"] if keep else []
    made = smooth(image, F32(gain), radius, F32(weight), stages, axis, tile, keep)
    return Case("smooth", options, [image], made=made)
