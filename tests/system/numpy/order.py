"""Order statistics, as median, percentile, erode and dilate compute them, by sorting every window; and a comparison with
SciPy, bit for bit, where it is installed."""

import numpy as np

from arithmetic import F32, F64, colours
from images import random_image
from separable import padded
from settings import ndimage, random_edge

LIMIT = 4000000  # samples of all windows


def keys_of(samples):
    """Return integers in the order of the samples. All NaN become 0x7fc00000, the largest key."""
    if samples.dtype != F32:
        return samples.astype(np.int64)
    bits = np.where(np.isnan(samples), np.int32(0x7FC00000), np.ascontiguousarray(samples).view(np.int32))
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def samples_of(keys, dtype):
    if dtype != F32:
        return keys.astype(dtype)
    return np.where(keys < 0, keys ^ 0x7FFFFFFF, keys).astype(np.int32).view(F32)


def order_statistic(image, radius, edge, percent):
    """radius: of x and y."""
    out = image.copy()
    n = (2 * radius[0] + 1) * (2 * radius[1] + 1)
    index = min(n - 1, int(F64(n) * percent / 100))
    for c in range(colours(image)):
        plane = padded(image[:, :, c], radius, edge).astype(image.dtype)
        windows = np.lib.stride_tricks.sliding_window_view(keys_of(plane), (2 * radius[1] + 1, 2 * radius[0] + 1))
        ordered = np.sort(windows.reshape(image.shape[0], image.shape[1], n), axis=2)
        out[:, :, c] = samples_of(ordered[:, :, index], image.dtype)
    return out


def random_order(rng, percents):
    """Return a random image, its result, and the options. percents: percentiles to choose from, as text."""
    image = random_image(rng)
    percent = str(rng.choice(percents))
    radius = [int(rng.choice([1, 1, 2, 3, rng.integers(1, 12), rng.integers(1, 64)])) for _ in range(2)]
    if rng.random() < 0.6:
        radius[1] = radius[0]
    elif rng.random() < 0.3:
        radius[rng.integers(2)] = 0
    while (2 * radius[0] + 1) * (2 * radius[1] + 1) * image.shape[0] * image.shape[1] > LIMIT:
        radius = [r // 2 for r in radius]
    if radius == [0, 0]:
        radius = [1, 1]
    edge, options = random_edge(rng, image)
    if not options:
        options = ["--edge", edge]
    if edge == "replicate" and rng.random() < 0.5:
        options = []
    if radius != [1, 1]:
        options += ["--radius", "%d" % radius[0] if radius[0] == radius[1] else "%d,%d" % tuple(radius)]
    made = order_statistic(image, radius, edge, float(percent))
    assert scipy_agrees(image, made, radius, edge, float(percent))
    return image, made, options, percent


def scipy_agrees(image, made, radius, edge, percent):
    """SciPy has another order of NaN and -0, and mirrors an image of one pixel in its own way. Windows that are far
    larger than the image have wrong samples of mode reflect (1.17.1), unless the image is continued before."""
    plain = image.dtype != F32 or not (np.isnan(image) | ((image == 0) & np.signbit(image))).any()
    name, _, value = edge.partition(":")
    if not ndimage or not plain or (name == "mirror" and 1 in image.shape[:2]):
        return True
    how = {"size": (2 * radius[1] + 1, 2 * radius[0] + 1), "mode": {"replicate": "nearest"}.get(name, name),
           "cval": float(value or 0)}
    (height, width), (rx, ry) = image.shape[:2], radius
    far = rx > width or ry > height
    for c in range(colours(image)):
        plane = padded(image[:, :, c], radius, edge).astype(image.dtype) if far else image[:, :, c]
        want = (ndimage.minimum_filter(plane, **how) if percent == 0 else
                ndimage.maximum_filter(plane, **how) if percent == 100 else
                ndimage.median_filter(plane, **how) if percent == 50 else
                ndimage.percentile_filter(plane, percent, **how))
        want = want[ry:ry + height, rx:rx + width] if far else want
        if want.tobytes() != np.ascontiguousarray(made[:, :, c]).tobytes():
            return False
    return True
