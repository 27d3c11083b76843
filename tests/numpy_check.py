"""Every filter once more, in NumPy, from docs/numerics.md alone, and the program compared with it.

    tests/numpy_check.py BUILD [FILTER...]

Random and adversarial images go through the program on every backend of this machine; pixels, JSON and
extracted samples must be exactly what the functions below say. GF_TEST_SEED (1) chooses the images. One
check is one run of the program. Where one fails, its command line is printed and its files are kept."""

import concurrent.futures
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

F32, F64 = np.float32, np.float64
NAMES = {1: ["grey"], 2: ["grey", "a"], 3: ["r", "g", "b"], 4: ["r", "g", "b", "a"]}

# ---- the filters: images are arrays of H x W x C ---------------------------------------------------


def top(image):
    """The largest sample value: 255, 65535, or 1 for f32."""
    return np.iinfo(image.dtype).max if image.dtype != F32 else 1


def colours(image):
    """How many channels come before alpha."""
    return image.shape[2] - 1 if image.shape[2] in (2, 4) else image.shape[2]


def store(image, colour):
    """The image with its colour channels replaced by binary32 results, stored in its own type."""
    out = image.copy()
    if image.dtype != F32:
        colour = np.rint(np.minimum(np.maximum(colour, F32(0)), F32(top(image))))
    else:
        colour = np.where(np.isnan(colour), F32(np.nan), colour)
    out[:, :, : colours(image)] = colour
    return out


def smooth_signals(p, gain, radius, weight, stages, keep):
    """The chain along axis 1 of a binary32 array."""
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


def row_sums(values):
    """One sum a row of an H x W array: exact for integers, the tree of 256 binary64 lanes for f32."""
    if values.dtype.kind == "u":
        return [int(s) for s in values.sum(1, dtype=np.uint64)]
    lanes = np.zeros((values.shape[0], 256))
    for x in range(0, values.shape[1], 256):
        part = values[:, x : x + 256]
        lanes[:, : part.shape[1]] += part
    stride = 128
    while stride:
        lanes[:, :stride] += lanes[:, stride : 2 * stride]
        stride //= 2
    return list(lanes[:, 0])


def ascending(rows):
    """What the rows add up to, one after the other."""
    total = rows[0] * 0 if isinstance(rows[0], int) else F64(0)
    for row in rows:
        total = total + row
    return total


def normalize(image):
    out = np.zeros(image.shape, F32)[:, :, : colours(image)]
    for c in range(colours(image)):
        v = image[:, :, c]
        mean = F32(F64(ascending(row_sums(v))) / v.size)
        out[:, :, c] = v.astype(F32) / (F32(1) if mean <= 0 else mean)
    if image.dtype != F32:
        out = out * F32(top(image) / 2)
    return store(image, out)


def axis_sum(image, axis, alpha):
    shown = NAMES[image.shape[2]][: None if alpha else colours(image)]
    sums = {"y" if axis == "x" else "x": list(range(image.shape[0 if axis == "x" else 1]))}
    totals = {"channel": shown, "sum": [], "mean": []}
    for c, name in enumerate(shown):
        v = image[:, :, c]
        if axis == "x":
            sums[name] = row_sums(v)
        elif v.dtype == F32:
            sums[name] = list(ascending(v.astype(F64)))
        else:
            sums[name] = [int(s) for s in v.sum(0, dtype=np.uint64)]
        total = ascending(sums[name])
        totals["sum"].append(total)
        totals["mean"].append(F64(total) / v.size)
    return {"sums": sums, "totals": totals}


def luma(image):
    r, g, b = (image[:, :, c] for c in range(3))
    if image.dtype == F32:
        return F32(0.2126) * r + F32(0.7152) * g + F32(0.0722) * b
    r, g, b = (v.astype(np.uint32) for v in (r, g, b))
    return ((13933 * r + 46871 * g + 4732 * b + 32768) >> 16).astype(image.dtype)


def measured(image, channel):
    """The channels that hist measures: names, and an H x W x C array."""
    names = NAMES[image.shape[2]]
    if channel == "all":
        return names, image
    if channel is None or channel == "luma":
        return (["luma"], luma(image)[:, :, None]) if len(names) > 2 else (["grey"], image[:, :, :1])
    return [channel], image[:, :, [names.index(channel)]]


def bin_of(values, count, span):
    """The bin of every sample; -1 for NaN."""
    if values.dtype != F32 and span is None:
        return np.minimum(count - 1, values.astype(np.int64) * count // top(values))
    v = values.astype(F64)
    if span is not None:
        v = (v - span[0]) / (span[1] - span[0])
    v = np.floor(v * count)
    v = np.where(v < 0, 0, np.where(v > count - 1, count - 1, v))
    return np.where(np.isnan(v), -1, v).astype(np.int64)


def hist(image, count, span, channel, extract, per_row):
    """The tables, the extracted samples in order, and the mask."""
    names, values = measured(image, channel)
    bins = bin_of(values, count, span)
    low, high = span or (0, 1)
    edges = [low + (high - low) * (k / count) for k in range(count + 1)]
    edges[count] = high
    table = {"bin": list(range(count)), "from": edges[:-1], "to": edges[1:]}
    if image.dtype != F32 and span is None and count <= top(image) + 1:  # none is empty
        every = np.arange(top(image) + 1, dtype=image.dtype)
        first = [int(v) for v in np.searchsorted(bin_of(every, count, None), np.arange(count + 1))]
        table.update(first=first[:-1], last=[v - 1 for v in first[1:]])
    for c, name in enumerate(names):
        table[name] = [int(n) for n in np.bincount(bins[:, :, c][bins[:, :, c] >= 0], minlength=count)]
    nan = [int((bins[:, :, c] < 0).sum()) for c in range(len(names))]
    result = {
        "bins": table,
        "totals": {"channel": names, "samples": [values[:, :, 0].size] * len(names), "nan": nan},
    }
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
    kinds = kinds[len(wanted) == 1 :]  # the file has the bin where there are several
    samples = np.empty(len(order), kinds)
    for name, _ in kinds:
        samples[name] = columns[name][order]
    # The file has a channel's place in the pixel.
    places = [255 if name == "luma" else NAMES[image.shape[2]].index(name) for name in names]
    samples["channel"] = np.array(places)[samples["channel"]]
    result["extracted"] = {
        "bin": wanted,
        "from": [edges[k] for k in wanted],
        "to": [edges[k + 1] for k in wanted],
        "count": [sum(table[name][k] for name in names) for k in wanted],
    }
    # The first ten of each bin are among the tables, unless there are too many bins to list.
    heads = [np.flatnonzero(bins[chosen] == k)[:10] for k in (wanted if len(wanted) <= 64 else [])]
    heads = [i for head in heads for i in head]
    result["samples"] = {name: [int(v) for v in columns[name][heads]] for name in ("bin", "x", "y")}
    result["samples"]["channel"] = [names[k] for k in columns["channel"][heads]]
    result["samples"]["value"] = [v if image.dtype == F32 else int(v) for v in columns["value"][heads]]
    mask = image
    if image.dtype != F32 and colours(image) == image.shape[2]:
        mask = np.concatenate([image, np.full_like(image[:, :, :1], top(image))], 2)
    mask = np.where(chosen.any(2)[:, :, None], mask, 0).astype(image.dtype)
    return result, samples, mask


class Nearly(float):
    """A logarithm, the one function that IEEE-754 leaves to libraries: its last digit may differ."""


def likeness(ab, aa, bb, dd, count, peak):
    """cosine, MSE and PSNR from the sums of products."""
    with np.errstate(all="ignore"):
        cosine = F64(ab) / np.sqrt(F64(aa) * F64(bb))
        mse = F64(dd) / F64(count)
        return cosine, mse, Nearly(10 * np.log10(F64(peak) ** 2 / mse))


def dot(a, b, alpha):
    shown = NAMES[a.shape[2]][: None if alpha else colours(a)]
    sums = []  # of each channel: a.b, a.a, b.b and the squared differences
    for c in range(len(shown)):
        p, q = (v[:, :, c].astype(F64 if a.dtype == F32 else np.uint64) for v in (a, b))
        ab, aa, bb = (ascending(row_sums(v)) for v in (p * q, p * p, q * q))
        dd = ascending(row_sums((p - q) * (p - q))) if a.dtype == F32 else aa + bb - 2 * ab
        sums.append((ab, aa, bb, dd))
    counts = [a[:, :, 0].size] * len(sums)
    if len(sums) > 1:
        sums.append(tuple(ascending(column) for column in zip(*sums)))
        counts.append(sum(counts))
    found = [likeness(*s, n, top(a)) for s, n in zip(sums, counts)]
    keys = ["a.b", "a.a", "b.b", "cosine", "mse", "psnr"]
    rows = [s[:3] + f for s, f in zip(sums, found)]
    table = {"channel": (shown + ["total"])[: len(sums)]}
    table.update((key, [row[k] for row in rows]) for k, key in enumerate(keys))
    return {"products": table}


def compare(a, b):
    """The result, and the map of differences."""
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
    dark = luma(a) if colours(a) == 3 else a[:, :, 0]
    if a.dtype == F32:
        dark = np.where(dark > 0, np.where(dark < 1, dark, F32(1)), F32(0)) * F32(255)
    shift = 10 if a.dtype == np.uint16 else 2
    drawn = np.repeat((dark.astype(np.uint16) >> shift)[:, :, None], 3, 2).astype(np.uint8)
    differs = (~same).any(2)
    drawn[differs] = np.stack([np.full_like(ramp, 255), ramp, np.zeros_like(ramp)], 2)[differs]
    return {"comparison": result}, drawn


# ---- files -----------------------------------------------------------------------------------------


def write_image(stem, image):
    """Writes PFM, PGM, PPM or PAM; gives the name."""
    height, width, channels = image.shape
    if image.dtype == F32:
        kind, head = ".pfm", "%s\n%d %d\n-1\n" % ("PF" if channels == 3 else "Pf", width, height)
        data = image[::-1].astype("<f4")
    else:
        data = image.astype(">u2" if image.dtype == np.uint16 else "u1")
        if channels in (1, 3):
            kind, magic = (".pgm", "P5") if channels == 1 else (".ppm", "P6")
            head = "%s\n%d %d\n%d\n" % (magic, width, height, top(image))
        else:
            kind, tuples = ".pam", "GRAYSCALE_ALPHA" if channels == 2 else "RGB_ALPHA"
            head = "P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n" % (
                width, height, channels, top(image), tuples)
    with open(stem + kind, "wb") as file:
        file.write(head.encode() + data.tobytes())
    return stem + kind


def read_image(path):
    """Reads PFM or PAM."""
    with open(path, "rb") as file:
        magic = file.readline().strip()
        if magic == b"P7":
            head, pixels = file.read().split(b"\nENDHDR\n", 1)
            head = dict(line.split(None, 1) for line in head.splitlines())
            shape = [int(head[key]) for key in (b"HEIGHT", b"WIDTH", b"DEPTH")]
            kind = "u1" if int(head[b"MAXVAL"]) < 256 else ">u2"
            return np.frombuffer(pixels, kind).reshape(shape).astype(kind.strip(">"))
        width, height = file.readline().split()
        kind = "<f4" if float(file.readline()) < 0 else ">f4"
        shape = int(height), int(width), {b"PF": 3, b"Pf": 1}[magic]
        return np.frombuffer(file.read(), kind).reshape(shape)[::-1].astype(F32)


class Number(str):
    """A number of a JSON text, as it was written."""


def read_json(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


# ---- comparing: each gives what differs first, or None -----------------------------------------------


def differing_pixels(want, got):
    if want.shape != got.shape or want.dtype != got.dtype:
        return "want %s %s, got %s %s" % (want.shape, want.dtype, got.shape, got.dtype)
    bits = {F32: np.uint32}.get(want.dtype.type, want.dtype)
    wrong = np.argwhere(np.ascontiguousarray(want).view(bits) != np.ascontiguousarray(got).view(bits))
    if len(wrong) == 0:
        return None
    y, x, c = wrong[0]
    return "%d samples; first at x %d, y %d, channel %d: want %r, got %r" % (
        len(wrong), x, y, c, want[y, x, c], got[y, x, c])


def differing_samples(want, got):
    if want.dtype != got.dtype or want.shape != got.shape:
        return "want %d samples of %s, got %d of %s" % (len(want), want.dtype, len(got), got.dtype)
    if want.tobytes() == got.tobytes():
        return None
    i = next(i for i in range(len(want)) if want[i].tobytes() != got[i].tobytes())
    return "sample %d: want %s, got %s" % (i, want[i], got[i])


def same_number(want, got):
    """Is this JSON text the number? Integers above 2^53, NaN and infinities are strings there."""
    if isinstance(want, int):
        return got == str(want) and isinstance(got, Number) == (want <= 2**53)
    if not math.isfinite(want) or not isinstance(got, Number):
        return got == str(want) and not isinstance(got, Number)
    if isinstance(want, Nearly):
        return abs(float(got) - want) <= 1e-12 * abs(want)
    number = F32(got) if isinstance(want, F32) else float(got)
    return number == want and math.copysign(1, number) == math.copysign(1, want)


def differing_value(want, got):
    if isinstance(want, dict):
        if not isinstance(got, dict) or sorted(want) != sorted(got):
            return ": want keys %s, got %.200s" % (list(want), got)
        pairs = [(".%s" % key, want[key], got[key]) for key in want]
    elif isinstance(want, list):
        if not isinstance(got, list) or len(want) != len(got):
            return ": want %d values, got %.200s" % (len(want), got)
        pairs = zip(itertools.count(), want, got)
    else:
        plain = want is None or isinstance(want, str)
        same = want == got if plain else same_number(want, got)
        return None if same else ": want %r, got %r" % (want, got)
    for place, w, g in pairs:
        text = differing_value(w, g)
        if text:
            return (place if isinstance(place, str) else "[%d]" % place) + text
    return None


# ---- random images and settings ----------------------------------------------------------------------


def random_shape(rng):
    few, some, many = (int(rng.integers(1, n)) for n in (9, 80, 700))
    edge = int(rng.choice([255, 256, 257, 511, 512, 513, 1025]))  # around whole lanes and tiles
    shapes = [(1, 1), (1, many), (many, 1), (few, edge), (few, edge), (edge, few), (few, few), (some, some)]
    return shapes[rng.integers(len(shapes))]


def random_floats(rng, shape, count, span):
    """f32 samples that are awkward to round, to sort into bins, or to compare."""
    content = rng.choice(["unit", "wide", "wide", "bits", "special", "edges", "edges", "constant"])
    unit = rng.random(shape, dtype=F32)
    spread = int(rng.choice([20, 30, 60]))  # exponents: each sum in binary64 is rounded
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
        return random_floats(rng, random_shape(rng) + (int(rng.choice([1, 3])),), count, span)
    shape = random_shape(rng) + (int(rng.integers(1, 5)),)
    most = 255 if kind == "u1" else 65535
    content = rng.choice(["uniform", "uniform", "extremes", "edges", "constant"])
    edges = np.arange(count + 1) * most // count
    made = {"uniform": rng.integers(0, most + 1, shape),
            "extremes": rng.choice([0, 1, most - 1, most], shape),
            "edges": np.clip(rng.choice(edges, shape) + rng.integers(-1, 2, shape), 0, most),
            "constant": np.full(shape, rng.choice([0, 1, most // 2, most - 1, most]))}[content]
    return made.astype(kind)


def random_summands(rng):
    """Any image, or f32 rows that add up to nothing but what was rounded off: any other order shows."""
    if rng.random() < 0.6:
        return random_image(rng)
    shape = int(rng.integers(1, 7)), int(rng.integers(1, 700)), int(rng.choice([1, 3]))
    half = np.ldexp(rng.random(shape, dtype=F32), rng.integers(-40, 40, shape).astype(np.int32))
    return np.concatenate([half, -rng.permutation(half, axis=1)], 1)


def decimal(rng, low, high):
    return "%.4g" % rng.uniform(low, high)


def smooth_case(rng):
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


def normalize_case(rng):
    image = random_summands(rng)
    return Case("normalize", [], [image], made=normalize(image))


def axis_sum_case(rng):
    image, axis, alpha = random_summands(rng), str(rng.choice(["x", "y"])), bool(rng.random() < 0.5)
    options = ["--axis", axis] + (["--alpha"] if alpha else [])
    return Case("axis-sum", options, [image], result=axis_sum(image, axis, alpha))


def hist_case(rng):
    counts = [1, 2, 3, 8, 10, 100, 255, 256, 257, 1000, *rng.integers(1, 400, 20), 65535, 65536]
    count = int(rng.choice(counts))
    kind = str(rng.choice(["u1", "u2", "f4"]))
    most = {"u1": 255, "u2": 65535, "f4": 1}[kind]
    texts = [decimal(rng, -0.5 * most, 0.4 * most), decimal(rng, 0.5 * most, 1.5 * most)]
    if rng.random() < 0.5:  # edges that are samples, so that every rounding on the way to a bin counts
        low = int(rng.integers(-20, 20))
        texts = [str(low), str(low + count * int(rng.integers(1, 4)))]
    texts = texts if rng.random() < 0.5 else None
    span = [float(t) for t in texts] if texts else None
    image = random_image(rng, kind, count, span)
    options = ["--bins", str(count)] + (["--range=" + ",".join(texts)] if texts else [])
    channel, extract = None, None
    if rng.random() < 0.6:
        names = [n for n in NAMES[image.shape[2]] if n != "grey"]
        channel = str(rng.choice(names + ["all"] + (["luma"] if colours(image) == 3 else [])))
        options += ["--channel", channel]
    if rng.random() < 0.7:
        extract = sorted({int(k) for k in rng.integers(0, count, rng.integers(1, 4))})
        text = ",".join(map(str, extract))
        if rng.random() < 0.2:
            extract = text = "all"
        options += ["--extract", text]
    per_row = bool(count * image.shape[0] < 5000 and rng.random() < 0.3)
    options += ["--per-row"] if per_row else []
    result, samples, mask = hist(image, count, span, channel, extract, per_row)
    return Case("hist", options, [image], result=result, samples=samples, made=mask)


def two_images(rng, a):
    """An image, and one that shares some of its samples."""
    shuffled = rng.permutation(a.reshape(-1)).reshape(a.shape)
    share = rng.choice([0, 0.01, 0.5, 1])
    return a, np.where(rng.random(a.shape) < share, shuffled, a)


def dot_case(rng):
    a, b = two_images(rng, random_summands(rng))
    alpha = bool(rng.random() < 0.5)
    return Case("dot", ["--alpha"] if alpha else [], [a, b], result=dot(a, b, alpha))


def compare_case(rng):
    a, b = two_images(rng, random_image(rng))
    result, drawn = compare(a, b)
    same = result["comparison"]["differing"] == 0
    return Case("compare", [], [a, b], result=result, made=drawn, code=0 if same else 1)


# ---- running -----------------------------------------------------------------------------------------


class Case:
    """Inputs and options of one run, and what must come of it."""

    def __init__(self, name, options, images, made=None, result=None, samples=None, code=0):
        self.name, self.options, self.images = name, options, images
        self.made, self.result, self.samples, self.code = made, result, samples, code


# Options of images beside the result.
DRAWS = {"hist": "--mask", "compare": "--diff"}


def run(program, folder, case, inputs, backend, spread):
    """Runs a case on one backend: the command line, and what differs or None."""
    image = case.made is not None and os.path.join(
        folder, "out-%s.%s" % (backend, "pfm" if case.made.dtype == F32 else "pam"))
    samples = case.samples is not None and os.path.join(folder, "out-%s.npy" % backend)
    command = [program, case.name] + spread + case.options
    if backend != "default":
        command += ["--backend", backend]
    if case.result is not None:
        command += ["--json"]
    if samples:
        command += ["--out", samples]
    if image and case.name in DRAWS:
        command += [DRAWS[case.name], image]
    command += inputs
    if image and case.name not in DRAWS:
        command += [image]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
        if done.returncode != case.code:
            said = done.stderr.decode().strip()
            return command, "exit code %d, want %d: %s" % (done.returncode, case.code, said)
        wrong = None
        if case.result is not None:
            record = read_json(done.stdout)
            wrong = differing_value(case.result, record["result"])
            wrong = wrong and "result" + wrong
            if not wrong and case.name == "compare" and record["passed"] != (case.code == 0):
                wrong = "passed: got %r" % record["passed"]
        if not wrong and image:
            wrong = differing_pixels(case.made, read_image(image))
        if not wrong and samples:
            wrong = differing_samples(case.samples, np.load(samples))
        return command, wrong
    except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
        return command, repr(error)


def check(job):
    """Makes a case from its own random numbers and runs it on every backend: what failed."""
    program, folder, backends, seed, number, make = job
    rng = np.random.default_rng([seed, number])
    with np.errstate(all="ignore"):
        case = make(rng)
    folder = os.path.join(folder, "%s-%d" % (case.name, number))
    os.mkdir(folder)
    inputs = [write_image(os.path.join(folder, "in%d" % i), image) for i, image in enumerate(case.images)]
    spread = ["--threads", str(rng.integers(1, 4))]
    spread += ["--band-rows", str(rng.integers(1, 20))] if rng.random() < 0.5 else []
    runs = [run(program, folder, case, inputs, backend, spread) for backend in backends]
    failures = [" ".join(command) + "\n  " + wrong for command, wrong in runs if wrong]
    if not failures:
        shutil.rmtree(folder)
    return len(runs) - len(failures), failures


# ---- published checks ----------------------------------------------------------------------------------


def published_smooth(rng):
    i = np.arange(1024)
    ramp = ((i % 10).astype(F32) + i.astype(F32) / F32(100)).reshape(1, -1, 1)
    made = smooth(ramp, F32(1.1), 2, F32(0.6), "enhance,blur,smooth", "x", 256, False)
    assert [int(v) for v in made[0, :3, 0].view(np.uint32)] == [0x3FD54FE1, 0x40155184, 0x40599409]
    return Case("smooth", ["--tile", "256"], [ramp], made=made)


def published_axis_sum(rng):
    image = np.arange(24).reshape(4, 6, 1).astype(rng.choice(["u1", "u2", "f4"]))
    result = axis_sum(image, "x", False)
    assert result["sums"]["grey"] == [15, 51, 87, 123]
    return Case("axis-sum", [], [image], result=result)


def published_hist(rng):
    values = ((np.arange(128) % 80).astype(F32) / F32(100)).reshape(1, -1, 1)
    result, samples, mask = hist(values, 8, None, None, [0], False)
    assert result["bins"]["grey"] == [26, 24, 26, 22, 13, 12, 5, 0]
    assert list(samples["value"][:3]) == [F32(0), F32(0.01), F32(0.02)]
    options = ["--bins", "8", "--extract", "0"]
    return Case("hist", options, [values], result=result, samples=samples, made=mask)


def published_dot(rng):
    image = np.arange(8).reshape(1, 8, 1).astype(rng.choice(["u1", "u2", "f4"]))
    result = dot(image, image, False)
    assert result["products"]["a.b"] == [140]
    return Case("dot", [], [image, image], result=result)


FILTERS = {  # the published check, how many random cases, and how to make one
    "smooth": (published_smooth, 150, smooth_case),
    "axis-sum": (published_axis_sum, 200, axis_sum_case),
    "hist": (published_hist, 120, hist_case),
    "dot": (published_dot, 200, dot_case),
    "compare": (None, 100, compare_case),
    "normalize": (None, 100, normalize_case),
}


BACKENDS = ["golden", "cpu", "default"]


def main(build, *wanted):
    program = os.path.join(build, "gpufilter")
    seed = int(os.environ.get("GF_TEST_SEED", "1"))
    folder = tempfile.mkdtemp(prefix="gpufilter-numpy-")
    makers = []
    for name in wanted or FILTERS:
        published, count, random_case = FILTERS[name]
        makers += [published] * 3 * (published is not None) + [random_case] * count
    print("seed %d, %d cases, NumPy %s" % (seed, len(makers), np.__version__))

    jobs = [(program, folder, BACKENDS, seed, number, make) for number, make in enumerate(makers)]
    # CUDA takes long to start: every third case goes there, and of each published check one.
    passed, skipped, failures = 0, 0, []
    probe = write_image(os.path.join(folder, "probe"), np.zeros((1, 1, 1), np.uint8))
    command = [program, "smooth", "--backend", "cuda", probe, os.path.join(folder, "probe.pam")]
    cuda = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if cuda.returncode == 0:
        jobs[::3] = [(program, folder, BACKENDS + ["cuda"], *job[3:]) for job in jobs[::3]]
    elif os.environ.get("GF_REQUIRE_CUDA"):
        failures.append(" ".join(command) + "\n  " + cuda.stderr.decode().strip())
    else:
        print("SKIP cuda:", cuda.stderr.decode().strip())
        skipped = len(jobs[::3])

    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for good, bad in pool.map(check, jobs):
            passed += good
            failures += bad
    for failure in failures:
        print("FAIL", failure)
    if not failures:
        shutil.rmtree(folder)
    print("%d passed, %d failed, %d skipped" % (passed, len(failures), skipped))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
