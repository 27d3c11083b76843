"""hist: counts of samples per bin, and the samples of selected bins with their positions."""

import math

import numpy as np

from arithmetic import F32, F64, NAMES, ascending, colours, luma, row_sums, top
from case import Case
from images import decimal, random_image

CASES = 120


def measured(image, channel):
    """Return the channels that hist measures: names, and an H x W x C array."""
    names = NAMES[image.shape[2]]
    if channel == "all":
        return names, image
    if channel is None or channel == "luma":
        return (["luma"], luma(image)[:, :, None]) if len(names) > 2 else (["grey"], image[:, :, :1])
    return [channel], image[:, :, [names.index(channel)]]


NAN, BELOW, ABOVE = -1, -2, -3


def bin_of(values, count, span):
    """Return the bin of every sample; NAN, BELOW or ABOVE for samples outside of all bins."""
    if values.dtype != F32 and span is None:
        return np.minimum(count - 1, values.astype(np.int64) * count // top(values))
    x = values.astype(F64)
    if span is None:
        v = np.floor(x * count)
    else:
        v = np.floor((x - span[0]) * count / (span[1] - span[0])) if span[0] < span[1] else x * 0 + count
    v = np.where(v < 0, 0, np.where(v > count - 1, count - 1, v))
    if span is not None:
        v = np.where(x < span[0], BELOW, np.where(x > span[1], ABOVE, v))
    return np.where(np.isnan(x), NAN, v).astype(np.int64)


STATISTICS = ["count", "min", "max", "mean", "std", "median", "p1", "p99"]


def ordered(values):
    """Return f32 values in order, with -0 before 0."""
    return values[np.lexsort((~np.signbit(values), values))]


def statistics(values):
    """Return the statistics of one channel, an H x W array, in the order of STATISTICS."""
    flat = values.ravel()
    flat = ordered(flat[~np.isnan(flat)]) if values.dtype == F32 else np.sort(flat)
    n = len(flat)
    if n == 0:
        return [0] + [None] * 7
    percentiles = [flat[-(-n * p // 100) - 1] for p in (50, 1, 99)]
    if values.dtype != F32:
        total, squares = int(flat.sum(dtype=np.uint64)), sum(int(v) ** 2 for v in flat)
        mean, std = total / n, math.sqrt(float(n * squares - total**2)) / n
        return [n, int(flat[0]), int(flat[-1]), mean, std] + [int(v) for v in percentiles]
    numbers = np.where(np.isnan(values), F32(0), values).astype(F64)
    total, squares = ascending(row_sums(numbers)), ascending(row_sums(numbers * numbers))
    mean = total / n
    variance = (squares - total * mean) / n
    cut = (np.array(percentiles).view(np.uint32) & 0xFFFF0000).view(F32)
    cut = [flat[0] if v < flat[0] else flat[-1] if v > flat[-1] else v for v in cut]
    return [n, flat[0], flat[-1], mean, F64(0) if variance < 0 else np.sqrt(variance)] + cut


def hist(image, count, span, channel, extract, per_row, requested):
    """Return the tables, the extracted samples in order, and the mask."""
    names, values = measured(image, channel)
    if span == "data":
        finite = values[np.isfinite(values)].astype(F64)
        span = [finite.min() + 0.0, finite.max() + 0.0]  # 0 for -0
    bins = bin_of(values, count, span)
    maximum = 1 if image.dtype == F32 else top(image)
    if span is not None:
        edges = [span[0] + k * (span[1] - span[0]) / count for k in range(count)] + [span[1]]
    elif image.dtype == F32 or count > maximum + 1:  # some bins contain no integer value
        edges = [k * maximum / count for k in range(count + 1)]
    else:
        every = np.arange(maximum + 1, dtype=image.dtype)
        edges = [int(v) for v in np.searchsorted(bin_of(every, count, None), np.arange(count + 1))]
    table = {"bin": list(range(count)), "from": edges[:-1], "to": edges[1:]}
    if isinstance(edges[0], int):
        table["to"] = [v - 1 for v in edges[1:]]
    for c, name in enumerate(names):
        table[name] = [int(n) for n in np.bincount(bins[:, :, c][bins[:, :, c] >= 0], minlength=count)]
    totals = {"channel": names, "samples": [values[:, :, 0].size] * len(names)}
    totals["nan"] = [int((bins[:, :, c] == NAN).sum()) for c in range(len(names))]
    if span is not None or image.dtype == F32:
        low, high = (0, 1) if span is None else span
        totals["below"] = [int((values[:, :, c].astype(F64) < low).sum()) for c in range(len(names))]
        totals["above"] = [int((values[:, :, c].astype(F64) > high).sum()) for c in range(len(names))]
    result = {"bins": table, "totals": totals}
    if requested or (image.dtype != F32 and span is None and count == maximum + 1):
        columns = zip(*[statistics(values[:, :, c]) for c in range(len(names))])
        result["statistics"] = {"channel": names, **{k: list(v) for k, v in zip(STATISTICS, columns)}}
    if per_row:
        rows = [(y, c, k) for y in range(bins.shape[0]) for c in range(len(names)) for k in range(count)]
        counted = [np.bincount(bins[y, :, c][bins[y, :, c] >= 0], minlength=count)
                   for y in range(bins.shape[0]) for c in range(len(names))]
        result["rows"] = {
            "y": [y for y, c, k in rows],
            "channel": [names[c] for y, c, k in rows],
            "bin": [k for y, c, k in rows],
            "count": [int(n) for n in np.concatenate(counted)],
        }
    if extract is None:
        return result, None, None
    wanted = list(range(count)) if extract == "all" else sorted(extract)
    chosen = np.isin(bins, wanted)
    y, x, c = np.nonzero(chosen)  # in the order y, x, channel
    order = np.argsort(bins[chosen], kind="stable")
    columns = {"bin": bins[chosen], "x": x, "y": y, "channel": c, "value": values[chosen]}
    kinds = [("bin", "u4"), ("x", "u8"), ("y", "u8"), ("channel", "u1"), ("value", values.dtype)]
    kinds = kinds[len(wanted) == 1 :]  # the file contains the bin if several are extracted
    samples = np.empty(len(order), kinds)
    for name, _ in kinds:
        samples[name] = columns[name][order]
    # The file stores the index of the channel in the pixel.
    indices = [255 if name == "luma" else NAMES[image.shape[2]].index(name) for name in names]
    samples["channel"] = np.array(indices)[samples["channel"]]
    result["extracted"] = {
        "bin": wanted,
        "from": [table["from"][k] for k in wanted],
        "to": [table["to"][k] for k in wanted],
        "count": [sum(table[name][k] for name in names) for k in wanted],
    }
    # The tables contain the first ten samples of each bin, unless more than 64 bins are extracted.
    heads = [np.flatnonzero(bins[chosen] == k)[:10] for k in (wanted if len(wanted) <= 64 else [])]
    heads = [i for head in heads for i in head]
    result["samples"] = {name: [int(v) for v in columns[name][heads]] for name in ("bin", "x", "y")}
    result["samples"]["channel"] = [names[k] for k in columns["channel"][heads]]
    result["samples"]["value"] = [v if image.dtype == F32 else int(v) for v in columns["value"][heads]]
    mask = image
    if image.dtype != F32 and image.shape[2] in (1, 3):
        mask = np.concatenate([image, np.full_like(image[:, :, :1], top(image))], 2)
    mask = np.where(chosen.any(2)[:, :, None], mask, 0).astype(image.dtype)
    return result, samples, mask


def published(rng):
    values = ((np.arange(128) % 80).astype(F32) / F32(100)).reshape(1, -1, 1)
    result, samples, mask = hist(values, 8, None, None, [0], False, False)
    assert result["bins"]["grey"] == [26, 24, 26, 22, 13, 12, 5, 0]
    assert list(samples["value"][:3]) == [F32(0), F32(0.01), F32(0.02)]
    options = ["--bins", "8", "--extract", "0"]
    return Case("hist", options, [values], result=result, samples=samples, made=mask, draws="--mask")


def random_case(rng):
    counts = [1, 2, 3, 8, 10, 100, 255, 256, 257, 1000, *rng.integers(1, 400, 20), 65535, 65536]
    count = int(rng.choice(counts))
    kind = str(rng.choice(["u1", "u2", "f4"]))
    maximum = {"u1": 255, "u2": 65535, "f4": 1}[kind]
    texts = [decimal(rng, -0.5 * maximum, 0.4 * maximum), decimal(rng, 0.5 * maximum, 1.5 * maximum)]
    if rng.random() < 0.5:  # edges equal to samples, so that every rounding in the computation of a bin matters
        low = int(rng.integers(-20, 20))
        texts = [str(low), str(low + count * int(rng.integers(1, 4)))]
    texts = texts if rng.random() < 0.5 else None
    span = [float(t) for t in texts] if texts else None
    image = random_image(rng, kind, count, span)
    options = ["--bins", str(count)] + (["--range=" + ",".join(texts)] if texts else [])
    if not texts and rng.random() < 0.4:
        span = "data"
        options += ["--range", "data"]
        image[0, 0] = np.nan_to_num(image[0, 0], posinf=2, neginf=0)
    channel, extract = None, None
    if rng.random() < 0.6:
        names = [n for n in NAMES[image.shape[2]] if n not in ("grey", "data")]
        channel = str(rng.choice(names + ["all"] + (["luma"] if image.shape[2] >= 3 else [])))
        options += ["--channel", channel]
    if rng.random() < 0.7:
        extract = sorted({int(k) for k in rng.integers(0, count, rng.integers(1, 4))})
        text = ",".join(map(str, extract))
        if rng.random() < 0.2:
            extract = text = "all"
        options += ["--extract", text]
    per_row = bool(count * image.shape[0] < 5000 and rng.random() < 0.3)
    options += ["--per-row"] if per_row else []
    requested = bool(rng.random() < 0.4)
    options += ["--statistics"] if requested else []
    result, samples, mask = hist(image, count, span, channel, extract, per_row, requested)
    return Case("hist", options, [image], result=result, samples=samples, made=mask, draws="--mask")
