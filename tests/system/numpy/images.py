"""Random and adversarial images."""

import numpy as np

from arithmetic import F32


def random_shape(rng):
    few, some, many = (int(rng.integers(1, n)) for n in (9, 80, 700))
    edge = int(rng.choice([255, 256, 257, 511, 512, 513, 1025]))  # around the sizes of sums and tiles
    shapes = [(1, 1), (1, many), (many, 1), (few, edge), (few, edge), (edge, few), (few, few), (some, some)]
    return shapes[rng.integers(len(shapes))]


def random_floats(rng, shape, count, span):
    """Return f32 samples that are difficult to round, sort into bins or compare."""
    content = rng.choice(["unit", "wide", "wide", "bits", "special", "edges", "edges", "constant"])
    unit = rng.random(shape, dtype=F32)
    spread = int(rng.choice([20, 30, 60]))  # exponents: every sum in binary64 is rounded
    wide = np.ldexp(unit - F32(0.5), rng.integers(-spread, spread, shape).astype(np.int32))
    with np.errstate(all="ignore"):
        bits = rng.integers(0, 2**32, shape, dtype=np.uint32).view(F32)
        special = [np.nan, np.inf, -np.inf, 0, -0.0, 1e-45, -1e-45, 1e-39, 3.4e38, -3.4e38, 1, 2]
        special = np.array(special, F32)
        low, high = span or (0, 1)
        edges = (low + (high - low) * rng.integers(-1, count + 2, shape) / count).astype(F32)
        ulp = rng.integers(-1, 2, shape)
        edges = np.where(ulp < 0, np.nextafter(edges, F32(-np.inf)), edges)
        edges = np.where(ulp > 0, np.nextafter(edges, F32(np.inf)), edges)
    made = {"unit": unit, "wide": wide, "bits": bits, "special": rng.choice(special, shape),
            "edges": edges, "constant": np.full(shape, rng.choice(special[3:]))}[content]
    if content in ("unit", "wide") and rng.random() < 0.3:  # one special sample among ordinary ones
        made[tuple(rng.integers(0, n) for n in shape)] = rng.choice(special)
    return made


def random_image(rng, kind=None, count=8, span=None):
    kind = kind or rng.choice(["u1", "u2", "f4", "f4"])
    if kind == "f4":
        return random_floats(rng, random_shape(rng) + (int(rng.integers(1, 5)),), count, span)
    shape = random_shape(rng) + (int(rng.integers(1, 5)),)
    maximum = 255 if kind == "u1" else 65535
    content = rng.choice(["uniform", "uniform", "extremes", "edges", "constant"])
    edges = np.arange(count + 1) * maximum // count
    made = {"uniform": rng.integers(0, maximum + 1, shape),
            "extremes": rng.choice([0, 1, maximum - 1, maximum], shape),
            "edges": np.clip(rng.choice(edges, shape) + rng.integers(-1, 2, shape), 0, maximum),
            "constant": np.full(shape, rng.choice([0, 1, maximum // 2, maximum - 1, maximum]))}[content]
    return made.astype(kind)


def random_summands(rng):
    """Return any image, or f32 rows whose exact sum is 0, so that any change of the summation order changes the
    result."""
    if rng.random() < 0.6:
        return random_image(rng)
    shape = int(rng.integers(1, 7)), int(rng.integers(1, 700)), int(rng.choice([1, 3]))
    half = np.ldexp(rng.random(shape, dtype=F32), rng.integers(-40, 40, shape).astype(np.int32))
    return np.concatenate([half, -rng.permutation(half, axis=1)], 1)


def two_images(rng, a):
    """Return the image, and a second one that shares some of its samples."""
    shuffled = rng.permutation(a.reshape(-1)).reshape(a.shape)
    share = rng.choice([0, 0.01, 0.5, 1])
    return a, np.where(rng.random(a.shape) < share, shuffled, a)


def decimal(rng, low, high):
    return "%.4g" % rng.uniform(low, high)
