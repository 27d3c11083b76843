"""convolve: weighted sums of the samples around each pixel."""

import numpy as np

from arithmetic import F32, F64, colours, store, top
from case import Case
from images import decimal, random_image

CASES = 200

PADDING = {"replicate": "edge", "reflect": "symmetric", "mirror": "reflect", "constant": "constant"}
LIMIT = 2**31


def fma(a, b, c):
    """Return a * b + c in binary32, rounded once. The product is exact in binary64. The sum is rounded to odd there,
    therefore the second rounding is that of the exact sum."""
    product, c = a.astype(F64) * b.astype(F64), c.astype(F64)
    s = product + c
    part = s - product
    error = (product - (s - part)) + (c - part)
    even = s.view(np.int64) % 2 == 0
    away = np.nextafter(s, np.copysign(np.inf, error))
    return np.where(np.isfinite(s) & (error != 0) & even, away, s).astype(F32)


def exact(n, scale):
    """Return n / scale, rounded half to even."""
    n, scale = (n, scale) if scale > 0 else (-n, -scale)
    q, rest = np.divmod(n, scale)
    return q + ((2 * rest > scale) | ((2 * rest == scale) & (q % 2 == 1)))


def is_integer(number):
    return float(number) == int(float(number)) and abs(float(number)) < LIMIT


def convolve(image, rows, scale, offset, edge, value):
    """rows: texts of the elements; scale and offset are texts, too."""
    width, height = len(rows[0]), len(rows)
    colour = image[:, :, : colours(image)]
    pad = [(height // 2, height - 1 - height // 2), (width // 2, width - 1 - width // 2), (0, 0)]
    fill = {"constant_values": value} if edge == "constant" else {}
    padded = np.pad(colour, pad, PADDING[edge], **fill)
    numbers = [number for row in rows for number in row]
    integer = image.dtype != F32 and all(map(is_integer, numbers + [scale, offset]))
    kind, read = (np.int64, lambda text: int(float(text))) if integer else (F32, F32)
    scale, offset = read(scale), read(offset)
    total = np.full(colour.shape, offset * scale if integer else 0, kind)
    first = True
    for j in range(height):
        for i in range(width):
            v = padded[j : j + image.shape[0], i : i + image.shape[1]].astype(kind)
            k = kind(read(rows[j][i]))
            if integer:
                total += k * v
            elif k != 0:
                total = k * v if first else fma(np.full_like(v, k), v, total)
                first = False
    if integer:
        out = image.copy()
        out[:, :, : colours(image)] = np.clip(exact(total, scale), 0, top(image))
        return out
    if scale != 1:
        total = total / scale
    if offset != 0:
        total = total + offset
    return store(image, total)


def random_number(rng, kind):
    if kind == "decimal":
        return decimal(rng, -2, 2)
    limit = {"small": 9, "large": 1000, "huge": LIMIT - 1}[kind]
    return str(rng.integers(-limit, limit + 1))


def random_case(rng):
    image = random_image(rng)
    kind = str(rng.choice(["small", "small", "large", "huge", "decimal", "decimal"]))
    listed = bool(rng.random() < 0.3)
    width, height = (int(rng.choice([1, 3, 3, 5])),) * 2 if listed else (int(n) for n in rng.choice([1, 2, 3, 4, 5, 15], 2))
    zero = rng.choice([0, 0.3, 0.9])
    rows = [["0" if rng.random() < zero else random_number(rng, kind) for _ in range(width)] for _ in range(height)]
    scale, offset, files = "1", "0", {}
    if listed:
        options = ["--kernel", ",".join(sum(rows, [])) + ","]
    else:
        head = [str(width), str(height)]
        if rng.random() < 0.7:
            scale = str(rng.choice(["-1", "2", "16", "9", "-273", "8388608", "0.3", random_number(rng, "huge")]))
            head.append(scale)
            if rng.random() < 0.6:
                offset = str(rng.choice(["128", "-3", "0.5", "20000"]))
                head.append(offset)
        gap = str(rng.choice([" ", "\t", ", ", ";", ' "']))
        files = {"kernel.mat": "\n".join(gap.join(row) for row in [head] + rows)}
        options = ["--kernel", "@kernel.mat"]
    edge, value = str(rng.choice(["mirror", *PADDING])), 0
    if edge == "constant":
        value = int(rng.integers(0, top(image) + 1)) if image.dtype != F32 else F32(decimal(rng, -2, 2))
    options += ["--edge", edge + (":%s" % value if edge == "constant" else "")]
    return Case("convolve", options, [image], made=convolve(image, rows, scale, offset, edge, value), files=files)
