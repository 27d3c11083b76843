"""resize: change the size of an image."""

import math
from fractions import Fraction

import numpy as np

from arithmetic import F32, F64, NAMES, colours, top
from case import Case
from filters.conversion import converted
from images import random_image
from separable import fma32

CASES = 120
SUPPORT = {"box": 0.5, "bilinear": 1.0, "hamming": 1.0, "bicubic": 2.0, "lanczos3": 3.0}


# ---- weights ----------------------------------------------------------------------------------------


def fma(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def sine(p, quarter):
    """Return sin(p), or with quarter 1 cos(p)."""
    part = [float.fromhex(text) for text in ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69")]
    n = int(p * float.fromhex("0x1.45f306dc9c883p-1") + 0.5)
    a = p - n * part[0]
    b = a - n * part[1]
    e = ((a - b) - n * part[1]) - n * part[2]
    u = b + e
    v = e - (u - b)
    z = u * u
    y = fma(u, u, -z) + 2 * u * v
    n += quarter
    t = 1.0
    if n % 2:
        h = z / 2
        for k in range(17, 4, -2):
            t = 1 - z * t / (k * (k + 1))
        m = 1 - h
        value = m + (((1 - m) - h) - y / 2 + z * z / 24 * t)
    else:
        d = z * u
        f = fma(z, u, -d) + y * u + z * v
        h = d / 6
        g = (fma(-6, h, d) + f) / 6
        for k in range(16, 5, -2):
            t = 1 - z * t / (k * (k + 1))
        m = u - h
        value = m + (((u - m) - h) + (v - g) + d * z / 120 * t)
    return -value if n & 2 else value


def sinc(z):
    return sine(z * math.pi, 0) / (z * math.pi) if z else 1.0


def weight(kernel, x):
    z = abs(x)
    if kernel == "box":
        return float(-0.5 < x <= 0.5)
    if kernel == "bilinear":
        return max(1 - z, 0.0)
    if kernel == "hamming":
        return sinc(z) * (float(F32(0.54)) + float(F32(0.46)) * sine(z * math.pi, 1)) if 0 < z < 1 else float(z == 0)
    if kernel == "bicubic":
        if z < 1:
            return (1.5 * z - 2.5) * z * z + 1
        return (((z - 5) * z + 8) * z - 4) * -0.5 if z < 2 else 0.0
    return sinc(z) * sinc(z / 3) if -3 <= x < 3 else 0.0


def windows(size, out, part, kernel, antialias):
    """Return the first sample and the weights of each output sample."""
    s = (part[1] - part[0]) / out
    q = max(s, 1.0) if antialias else 1.0
    for i in range(out):
        c = part[0] + (i + 0.5) * s
        first = max(0, math.floor(c - SUPPORT[kernel] * q + 0.5))
        end = min(size, math.floor(c + SUPPORT[kernel] * q + 0.5))
        weights = [weight(kernel, (j - c + 0.5) * (1 / q)) for j in range(first, end)]
        total = 0.0
        for w in weights:
            total += w
        weights = [w / total for w in weights]
        while weights[0] == 0:
            first, weights = first + 1, weights[1:]
        while weights[-1] == 0:
            weights.pop()
        yield first, weights


# ---- sums -------------------------------------------------------------------------------------------


def bytes_of(weights):
    """Return the integers of u8, or None if they do not suffice."""
    fixed = [int(w * 2**22 + (0.5 if w >= 0 else -0.5)) for w in weights]
    flat = (255 * sum(fixed) + 2**21) >> 22 == 255
    return fixed if flat and 255 * sum(map(abs, fixed)) < 2**31 - 2**21 - 1 else None


def words_of(weights):
    total, sums = 0.0, []
    for w in weights:
        total += w
        sums.append(math.floor(total * 2**35 + 0.5))
    sums[-1] = 2**35
    return [b - a for a, b in zip([0] + sums, sums)]


def along(image, size, part, kernel, antialias):
    """Resize the rows of an image, an array of any type."""
    if size == image.shape[0] and part == (0.0, float(size)):
        return image
    table = list(windows(image.shape[0], size, part, kernel, antialias))
    rows = []
    if image.dtype == F32:
        for first, weights in table:
            s = F32(weights[0]) * image[first]
            for j, w in enumerate(weights[1:], first + 1):
                s = fma32(F32(w), image[j], s)
            rows.append(np.where(np.isnan(s), F32(np.nan), s))
        return np.stack(rows).astype(F32)
    fixed = [bytes_of(weights) for _, weights in table]
    narrow = image.dtype == np.uint8 and None not in fixed
    bits = 22 if narrow else 35
    for (first, weights), taps in zip(table, fixed):
        taps = taps if narrow else words_of(weights)
        s = sum(t * image[first + j].astype(np.int64) for j, t in enumerate(taps))
        rows.append(np.clip((s + (1 << (bits - 1))) >> bits, 0, top(image)))
    return np.stack(rows).astype(image.dtype)


def resize(image, size, parts, kernel, antialias):
    """size: W and H; parts: of x and y."""
    (h, w), (W, H) = image.shape[:2], size
    order = [1, 0] if h - H > 0 and h - H > 2 * (w - W) else [0, 1]
    for axis in order:
        if axis == 0:
            image = along(image.swapaxes(0, 1), W, parts[0], kernel, antialias).swapaxes(0, 1)
        else:
            image = along(image, H, parts[1], kernel, antialias)
    return image


def weighed(image, *how):
    """The same for colours that are weighed by alpha."""
    v = converted(image, np.dtype(F32)).copy()
    colour = v[:, :, :-1] * v[:, :, -1:]
    v[:, :, :-1] = np.where(np.isnan(colour), F32(np.nan), colour)
    v = resize(v, *how).copy()
    a = np.where(v[:, :, -1:] > 0, np.minimum(v[:, :, -1:], F32(1)), F32(0))
    colour = np.where(a > 0, v[:, :, :-1] / np.where(a > 0, a, F32(1)), F32(0))
    v[:, :, :-1], v[:, :, -1:] = np.where(np.isnan(colour), F32(np.nan), colour), a
    return converted(v, image.dtype)


# ---- sizes ------------------------------------------------------------------------------------------


def ratio(a, b, c):
    return max(1, (2 * a * b + c) // (2 * c))


def random_size(rng, w, h, limited):
    """Return W, H, the parts, and the options that select them."""
    choice = str(rng.choice(["width", "height", "scale", "fit", "cover", "exact"]))
    W, H = (int(rng.choice([1, rng.integers(1, 8), rng.integers(1, 90), n, 2 * n])) for n in (w, h))
    parts = [(0.0, float(w)), (0.0, float(h))]
    text = {"width": str(W), "height": str(H), "scale": "%.4g" % rng.choice([0.5, 2, rng.uniform(0.01, 3)])}.get(
        choice, "%dx%d" % (W, H))
    if choice == "scale":
        W, H = (max(1, math.floor(n * float(text) + 0.5)) for n in (w, h))
    if limited:
        W, H = min(W, w), min(H, h)
    if choice == "height" or (choice == "fit" and W * h > H * w):
        W = ratio(w, H, h)
    elif choice in ("width", "fit"):
        H = ratio(h, W, w)
    elif choice == "cover" and W * h != H * w:
        y = W * h > H * w
        kept, size = (w / (W / H), h) if y else (W / H * h, w)
        a = (size - kept) * 0.5
        parts[y] = float(F32(a)), float(F32(a)) + float(F32(a + kept) - F32(a))
    return W, H, parts, ["--" + choice, text] + (["--no-enlarge"] if limited else [])


def random_case(rng):
    while True:
        image = random_image(rng)
        (h, w), alpha = image.shape[:2], NAMES[image.shape[2]][-1] == "a"
        W, H, parts, options = random_size(rng, w, h, bool(rng.random() < 0.3))
        if W * H * image.shape[2] < 100000 and W * h < 100000 and H * w < 100000:
            break
    kernel, antialias = str(rng.choice(list(SUPPORT))), bool(rng.random() < 0.8)
    options += ["--kernel", kernel] if kernel != "bicubic" or rng.random() < 0.5 else []
    options += [] if antialias else ["--no-antialias"]
    premultiply = str(rng.choice(["auto", "on", "off"]))
    options += ["--premultiply", premultiply] if premultiply != "auto" else []
    function = weighed if alpha and premultiply != "off" else resize
    return Case("resize", options, [image], made=function(image, (W, H), parts, kernel, antialias))
