"""dot: products of two images, and measures of their similarity."""

import numpy as np

from arithmetic import F32, F64, NAMES, ascending, colours, row_sums, top
from case import Case
from differing import Nearly
from images import random_summands, two_images

CASES = 200


def similarity(ab, aa, bb, dd, count, peak):
    """Return cosine, MSE and PSNR from the sums of products."""
    with np.errstate(all="ignore"):
        cosine = F64(ab) / np.sqrt(F64(aa) * F64(bb))
        mse = F64(dd) / F64(count)
        return cosine, mse, Nearly(10 * np.log10(F64(peak) ** 2 / mse))


def dot(a, b):
    shown = NAMES[a.shape[2]][: colours(a)]
    sums = []  # per channel: a.b, a.a, b.b and the squared differences
    for c in range(len(shown)):
        p, q = (v[:, :, c].astype(F64 if a.dtype == F32 else np.uint64) for v in (a, b))
        ab, aa, bb = (ascending(row_sums(v)) for v in (p * q, p * p, q * q))
        dd = ascending(row_sums((p - q) * (p - q))) if a.dtype == F32 else aa + bb - 2 * ab
        sums.append((ab, aa, bb, dd))
    counts = [a[:, :, 0].size] * len(sums)
    if len(sums) > 1:
        sums.append(tuple(ascending(column) for column in zip(*sums)))
        counts.append(sum(counts))
    found = [similarity(*s, n, top(a)) for s, n in zip(sums, counts)]
    keys = ["a.b", "a.a", "b.b", "cosine", "mse", "psnr"]
    rows = [s[:3] + f for s, f in zip(sums, found)]
    table = {"channel": (shown + ["total"])[: len(sums)]}
    table.update((key, [row[k] for row in rows]) for k, key in enumerate(keys))
    return {"products": table}


def published(rng):
    image = np.arange(8).reshape(1, 8, 1).astype(rng.choice(["u1", "u2", "f4"]))
    result = dot(image, image)
    assert result["products"]["a.b"] == [140]
    return Case("dot", [], [image, image], result=result)


def random_case(rng):
    a, b = two_images(rng, random_summands(rng))
    return Case("dot", [], [a, b], result=dot(a, b))
