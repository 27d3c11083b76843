"""Every filter against the second implementation, bit for bit, on every backend of the CPU."""

import gpufilter
import numpy as np
import pytest
from filters import axis_sum, box, compare, dot, gaussian, hist, resize, sharpen
from support import FORMATS, cube, normalized, random_image, same, same_tables, smoothed

formats = pytest.mark.parametrize("dtype, channels", FORMATS)
backends = pytest.mark.parametrize("backend", ["auto", "cpu", "golden"])
SETTINGS = [
    {}, {"radius": 0}, {"radius": 7, "weight": 0.25, "gain": 0.7}, {"keep_brightness": True},
    {"axis": "y"}, {"axis": "xy", "radius": 3, "keep_brightness": True}, {"tile": 8},
    {"stages": "blur"}, {"stages": ["enhance", "smooth"]}, {"gain": 0.0}, {"gain": np.float32(1.7)},
]


@formats
@backends
def test_smooth(rng, dtype, channels, backend):
    image = random_image(rng, dtype, channels)
    for keywords in SETTINGS:
        want = dict(keywords)
        if isinstance(want.get("stages"), list):
            want["stages"] = ",".join(want["stages"])
        made = gpufilter.smooth(image, backend=backend, **keywords)
        assert same(made, smoothed(image, **want)), keywords


@formats
@backends
def test_normalize(rng, dtype, channels, backend):
    image = random_image(rng, dtype, channels)
    assert same(gpufilter.normalize(image, backend=backend), normalized(image))


@formats
@backends
def test_separable(rng, dtype, channels, backend):
    image = random_image(rng, dtype, channels)
    made = gpufilter.gaussian(image, backend=backend)
    assert same(made, gaussian.gaussian(image, (1, 1), "4", "mirror"))
    made = gpufilter.gaussian(image, sigma=(0, 7.5), edge="constant:1", backend=backend)
    assert same(made, gaussian.gaussian(image, (0, 7.5), "4", "constant:1"))
    made = gpufilter.box(image, radius=(np.int64(2), 5), edge="reflect", backend=backend)
    assert same(made, box.box(image, (2, 5), "reflect"))
    made = gpufilter.sharpen(image, sigma=2, amount=0.7, threshold=3, backend=backend)
    assert same(made, sharpen.sharpen(image, (2, 2), np.float32(0.7), np.float32(3), "mirror"))


@formats
@backends
def test_resize(rng, dtype, channels, backend):
    """Batches, too, also of images whose sides are those of the stacked images."""
    images = np.stack([random_image(rng, dtype, channels) for _ in range(3)])
    whole = [(0.0, 37.0), (0.0, 23.0)]
    function = resize.weighed if channels == 4 else resize.resize
    for keywords, size in (({"width": 12}, (12, 7)), ({"exact": [50, 69]}, (50, 69)),
                           ({"exact": (37, 69)}, (37, 69)), ({"fit": "9x23"}, (9, 6)),
                           ({"scale": 1}, (37, 23)), ({"exact": [5, 23]}, (5, 23)),
                           ({"height": 100, "no_enlarge": True}, (37, 23))):
        for kernel in ("bicubic", "box"):
            made = gpufilter.resize(images, kernel=kernel, backend=backend, **keywords)
            assert made.shape == (3, size[1], size[0], channels), keywords
            for got, image in zip(made, images):
                assert same(got, function(image, size, whole, kernel, True)), keywords
            alone = gpufilter.resize(images[1], kernel=kernel, backend=backend, **keywords)
            assert same(alone, made[1])
    if channels == 1:
        grey = gpufilter.resize(images[0, :, :, 0], width=12, backend=backend)
        assert grey.shape == (7, 12)
        assert same(grey, gpufilter.resize(images[0], width=12, backend=backend)[:, :, 0])


@formats
@backends
def test_hist(rng, dtype, channels, backend):
    image = random_image(rng, dtype, channels)
    top = {"u1": 255, "u2": 65535, "f4": 1}[dtype]
    for keywords in [
        {"bins": 8}, {"bins": 8, "extract": 3}, {"bins": 10, "extract": [0, 9], "channel": "all"},
        {"bins": 5, "range": (0.25 * top, 0.75 * top)}, {"bins": 6, "per_row": True},
        {"bins": 3, "per_row": True, "channel": "all"}, {"bins": 300, "extract": "all"}, {},
        {"bins": 9, "statistics": True, "channel": "all"}, {"bins": 4, "range": "data"},
        {"statistics": True}, {"bins": 65536, "statistics": True},
    ]:
        got = gpufilter.hist(image, mask="extract" in keywords, backend=backend, **keywords)
        extract = keywords.get("extract")
        extract = [extract] if isinstance(extract, int) else extract
        want, found, mask = hist.hist(
            image, keywords.get("bins", 256), keywords.get("range"), keywords.get("channel"), extract,
            keywords.get("per_row", False), keywords.get("statistics", False))
        names = want["totals"]["channel"]
        counts = np.stack([want["bins"][name] for name in names], -1).astype(np.uint64)
        assert got.counts.dtype == np.uint64 and got.channels == tuple(names)
        assert np.array_equal(got.counts, counts if len(names) > 1 else counts[:, 0])
        assert np.array_equal(got.edges, want["bins"]["from"] + want["bins"]["to"][-1:])
        assert np.array_equal(got.nan, want["totals"]["nan"])
        for name in ("below", "above"):
            assert np.array_equal(getattr(got, name), want["totals"].get(name, [0] * len(names)))
        if "per_row" in keywords:
            assert got.row_counts.shape == image.shape[:1] + got.counts.shape
            assert np.array_equal(got.row_counts.sum(0), got.counts)
        assert got.range == (got.edges[0], got.edges[-1])
        if "statistics" in want:
            assert np.array_equal(got.statistics["std"], want["statistics"]["std"])
        else:
            assert got.statistics is None
        if extract is None:
            assert got.extracted is None and got.image is None
            assert same_tables(got.tables, want)
        else:
            assert got.extracted.dtype == found.dtype and got.extracted.tobytes() == found.tobytes()
            assert same(got.image, mask if mask.shape[2] > 1 else mask)


def test_alpha(rng):
    """Of arrays, the last of four channels is alpha; alpha= overrides this."""
    for channels, by_default in ((2, False), (4, True)):
        image = random_image(rng, "u1", channels)
        names = {alpha: gpufilter.axis_sum(image, alpha=alpha).channels
                 for alpha in (None, True, False)}
        assert names[None] == names[by_default] and names[True] != names[False]
        assert len(names[False]) == channels == len(names[True]) + 1
        planes = np.stack([gpufilter.smooth(np.ascontiguousarray(image[:, :, i]))
                           for i in range(channels)], 2)
        assert same(gpufilter.smooth(image, alpha=False), planes)
        planes[:, :, -1] = image[:, :, -1]
        assert same(gpufilter.smooth(image, alpha=True), planes)
    with pytest.raises(gpufilter.UsageError, match="alpha: the last of 2 or 4 channels"):
        gpufilter.smooth(image[:, :, :3], alpha=True)
    for value in ("none", "last"):  # of the program: any text would be True
        with pytest.raises(gpufilter.UsageError, match="alpha: expected True or False, got '%s'" % value):
            gpufilter.smooth(image, alpha=value)


@formats
@backends
def test_axis_sum(rng, dtype, channels, backend):
    image = random_image(rng, dtype, channels)
    for axis in ("x", "y"):
        for mean in (False, True):
            got = gpufilter.axis_sum(image, axis=axis, mean=mean, backend=backend)
            want = axis_sum.axis_sum(image, axis, mean)
            assert same_tables(got.tables, want)
            sums = np.stack([want["means" if mean else "sums"][name] for name in got.channels], -1)
            assert np.array_equal(got.sums, sums if sums.shape[1] > 1 else sums[:, 0])
            assert np.array_equal(got.totals, want["totals"]["sum"])
            assert np.array_equal(got.means, want["totals"]["mean"])


@formats
@backends
def test_dot(rng, dtype, channels, backend):
    a, b = (random_image(rng, dtype, channels) for _ in range(2))
    got = gpufilter.dot(a, b, backend=backend)
    want = dot.dot(a, b)["products"]
    assert [got.ab, got.aa, got.bb, got.cosine, got.mse] == [
        want[name][-1] for name in ("a.b", "a.a", "b.b", "cosine", "mse")]
    assert got.psnr == pytest.approx(want["psnr"][-1])
    assert list(got.tables["products"]["channel"]) == want["channel"]
    assert gpufilter.dot(a, a).psnr == np.inf


@formats
@backends
def test_compare(rng, dtype, channels, backend):
    a = random_image(rng, dtype, channels)
    b = a.copy()
    b[3, 5, -1] = 0
    b[7:9, :, 0] = 1
    got = gpufilter.compare(a, b, diff=True, backend=backend)
    want, drawn = compare.compare(a, b)
    want = want["comparison"]
    assert not got and not got.equal and same(got.image, drawn)
    assert (got.samples, got.differing, got.largest) == (
        want["samples"], want["differing"], want["largest"])
    first = got.first
    assert [first.x, first.y, first.channel, first.a, first.b] == [
        want[name] for name in ("x", "y", "channel", "first", "second")]
    within = gpufilter.compare(a, b, tolerance=2, backend=backend)
    want = compare.compare(a, b, 2)[0]["comparison"]
    assert (within.differing, within.largest) == (want["differing"], want["largest"])
    assert gpufilter.compare(a, b, tolerance=1.001 * float(want["largest"]), backend=backend)
    equal = gpufilter.compare(a, a, backend=backend)
    assert equal and equal.first is None and equal.differing == 0 and equal.image is None
    assert equal.text.startswith("same")


def test_published():
    """The checks of docs/numerics.md."""
    i = np.arange(1024)
    ramp = ((i % 10).astype("f4") + i.astype("f4") / np.float32(100)).reshape(1, -1)
    made = gpufilter.smooth(ramp, tile=256)
    assert list(made.view(np.uint32)[0, :3]) == [0x3FD54FE1, 0x40155184, 0x40599409]
    matrix = np.arange(24, dtype=np.uint8).reshape(4, 6)
    assert list(gpufilter.axis_sum(matrix).sums) == [15, 51, 87, 123]
    row = np.arange(8, dtype=np.uint16).reshape(1, 8)
    assert gpufilter.dot(row, row).ab == 140
    values = ((np.arange(128) % 80).astype("f4") / np.float32(100)).reshape(1, -1)
    assert list(gpufilter.hist(values, bins=8).counts) == [26, 24, 26, 22, 13, 12, 5, 0]


def test_special_values(rng):
    image = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38, 1], "f4"), (9, 40))
    with np.errstate(all="ignore"):
        assert same(gpufilter.smooth(image, axis="xy"), smoothed(image, axis="xy"))
    assert gpufilter.hist(image).nan[0] == np.isnan(image).sum()


# ---- layouts ------------------------------------------------------------------------------------


def views(rng, dtype, channels):
    """Yield arrays with acceptable strides, and others."""
    whole = random_image(rng, dtype, channels, (30, 40))
    yield from (whole, whole[5:-3, 7:-2], whole[::2], whole[4:5, 1:], whole[:, 3:4], whole[3:4, :1])
    yield from (whole[:, ::2], whole[::-1], whole[:, ::-1], whole.transpose(1, 0, 2),
                np.asfortranarray(whole), np.broadcast_to(whole[:1], whole.shape))
    packed = np.zeros((30 * 40 * channels * whole.itemsize + 1,), np.uint8)
    unaligned = packed[1:].view(whole.dtype).reshape(whole.shape)
    unaligned[...] = whole
    yield unaligned
    yield whole[..., :1]


@formats
def test_strides(rng, dtype, channels):
    for view in views(rng, dtype, channels):
        before = view.tobytes()
        assert same(gpufilter.smooth(view, axis="xy"), smoothed(view, axis="xy")), view.strides
        want = gpufilter.hist(np.ascontiguousarray(view)).counts
        assert np.array_equal(gpufilter.hist(view).counts, want)
        assert view.tobytes() == before


def test_two_dimensions(rng):
    image = random_image(rng, "u1", 1)[:, :, 0]
    assert same(gpufilter.smooth(image), smoothed(image))
    assert same(gpufilter.smooth(image.T), smoothed(image.T))
    assert gpufilter.hist(image, extract=3, bins=8, mask=True).image.shape == image.shape + (2,)
    assert gpufilter.compare(image, image, diff=True).image.shape == image.shape + (3,)
    real = image.astype("f4")
    assert gpufilter.hist(real, extract=3, bins=8, mask=True).image.shape == image.shape


def test_subclasses(rng, tmp_path):
    image = random_image(rng, "u2", 3)
    mapped = np.memmap(tmp_path / "raw", "u2", "w+", shape=image.shape)
    mapped[:] = image
    assert same(np.asarray(gpufilter.smooth(mapped)), smoothed(image))


@formats
def test_batch(rng, dtype, channels):
    images = np.stack([random_image(rng, dtype, channels) for _ in range(5)])
    made = gpufilter.smooth(images)
    assert all(same(made[i], smoothed(images[i])) for i in range(5))
    for view in (images[::-2], images[:, 1:, 2:], images[:1], images.transpose(0, 2, 1, 3)):
        made = gpufilter.smooth(view, axis="xy")
        assert made.shape == view.shape
        assert all(same(made[i], smoothed(view[i], axis="xy")) for i in range(len(view)))
    found = gpufilter.hist(images, bins=8, extract=3, mask=True)
    assert isinstance(found, list) and len(found) == 5
    for got, image in zip(found, images):
        alone = gpufilter.hist(image, bins=8, extract=3, mask=True)
        assert same(got.counts, alone.counts) and same(got.extracted, alone.extracted)
        assert same(got.image, alone.image)
    products = gpufilter.dot(images, images[::-1])
    assert [p.ab for p in products] == [
        gpufilter.dot(a, b).ab for a, b in zip(images, images[::-1])]


# ---- out ----------------------------------------------------------------------------------------


def test_out(image):
    out = np.empty_like(image)
    assert gpufilter.smooth(image, out=out) is out and same(out, smoothed(image))
    larger = np.full((30, 40, 3), 7, np.uint8)
    part = larger[3:27, 5:36]
    assert gpufilter.smooth(image, out=part) is part and same(part.copy(), smoothed(image))
    larger[3:27, 5:36] = 7
    assert (larger == 7).all()
    mask = np.empty(image.shape[:2] + (4,), np.uint8)
    assert gpufilter.hist(image, bins=8, extract=3, mask=True, out=mask).image is mask
    batch = np.stack([image, image])
    out = np.empty((2, 30) + image.shape[1:], np.uint8)[:, :24]
    assert gpufilter.smooth(batch, out=out) is out and same(out[1].copy(), smoothed(image))


def test_out_of_another_size(image):
    batch = np.stack([image, image[::-1]])
    out = np.empty((2, 20, 12, 3), np.uint8)[:, :9]
    assert gpufilter.resize(batch, width=12, out=out) is out
    assert same(out.copy(), gpufilter.resize(batch, width=12))
    for wrong in (np.empty_like(batch), out[0], out[:1], out[..., 0], out.astype("u2"), out[:, :8]):
        with pytest.raises(gpufilter.UsageError,
                           match=r"out: expected shape \(2, 9, 12, 3\) and dtype uint8 on"):
            gpufilter.resize(batch, width=12, out=wrong)
    both = gpufilter.pipeline("resize width=12 ! write small ! input ! resize scale=2")(batch)
    assert same(both.written["small"], out.copy())
    assert same(both.image, gpufilter.resize(batch, scale=2))


def test_neighbours_do_not_overlap(image):
    """Input and output are the halves of one array: their rows alternate in memory."""
    both = np.concatenate([image, np.zeros_like(image)], 1)
    width = image.shape[1]
    gpufilter.smooth(both[:, :width], out=both[:, width:])
    assert same(both[:, width:].copy(), smoothed(image)) and same(both[:, :width].copy(), image)


def test_repeated_calls_use_new_arrays(image):
    """Calls of one layout share a plan: no call may see the arrays of another."""
    made = [gpufilter.smooth(image + np.uint8(i)) for i in range(100)]
    assert all(same(made[i], smoothed(image + np.uint8(i))) for i in range(100))
    for width in range(1, 31):  # more layouts than plans are kept
        for radius in (1, 2, 3):
            part = image[:, :width]
            assert same(gpufilter.smooth(part, radius=radius), smoothed(part, radius=radius))


def test_equal_values_of_other_types(image):
    want = smoothed(image, radius=3, gain=2)
    for radius in (3, 3.0, np.int64(3), np.uint8(3), np.float32(3), "3"):
        for gain in (2, 2.0, "2"):
            assert same(gpufilter.smooth(image, radius=radius, gain=gain), want)
    real = np.zeros((3, 4), "f4")
    assert same(gpufilter.smooth(real, gain=-0.0), gpufilter.smooth(real, gain=0))


class Count:
    """An integer that can change."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def test_values_that_change(image):
    for radius in (Count(2), np.array(2), np.array([2])):
        assert same(gpufilter.smooth(image, radius=radius), smoothed(image, radius=2))
        if isinstance(radius, Count):
            radius.value = 5
        else:
            radius[...] = 5
        assert same(gpufilter.smooth(image, radius=radius), smoothed(image, radius=5))


def test_samples_outside_of_the_edges():
    image = np.array([[-1, -0.0, 0.5, 1, 1.5, np.inf, np.nan]], np.float32)
    clamped = gpufilter.hist(image, bins=2)
    assert (clamped.counts.tolist(), clamped.below[0], clamped.above[0]) == ([2, 4], 1, 2)
    ranged = gpufilter.hist(image, bins=2, range=(0, 1))
    assert (ranged.counts.tolist(), ranged.below[0], ranged.above[0]) == ([1, 2], 1, 2)
    data = gpufilter.hist(image, bins=5, range="data")
    assert (data.range, data.counts.tolist(), data.above[0]) == ((-1, 1.5), [1, 0, 1, 1, 2], 1)
    with pytest.raises(gpufilter.Error, match="no finite sample"):
        gpufilter.hist(image[:, 5:], range="data")


def test_arrays_as_values(image):
    want = gpufilter.hist(image, bins=8, extract=[3, 5], range=(0, 99.5))
    got = gpufilter.hist(image, bins=np.uint8(8), extract=np.array([3, 5]),
                         range=np.array([0, 99.5]))
    assert same(got.extracted, want.extracted) and same(got.edges, want.edges)
    flag = np.zeros(1, bool)[0]
    assert same(gpufilter.smooth(image, keep_brightness=flag), smoothed(image))
    assert same(gpufilter.smooth(image, gain=np.array(1.5)), smoothed(image, gain=1.5))


def test_shapes_of_one_channel(rng):
    image = random_image(rng, "u1", 1)
    assert gpufilter.hist(image, channel="all").counts.shape == (256,)
    assert gpufilter.axis_sum(image).sums.shape == (23,)
    assert cube(image).shape == image.shape
