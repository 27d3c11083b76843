"""Pipelines: they equal their steps one by one, on arrays and files."""

import pickle

import gpufilter
import numpy as np
import pytest
from gpufilter import _library as c
from gpufilter import steps
from support import FORMATS, random_image, same

formats = pytest.mark.parametrize("dtype, channels", FORMATS)
# Text, a list, and calls that give the image after the steps. Those of measurements follow each.
CHAINS = [
    ("median", [steps.median()], [("median", {})]),
    ("median radius=2 ! gaussian sigma=2,0.5 ! erode",
     [steps.median(radius=2), steps.gaussian(sigma=(2, 0.5)), steps.erode()],
     [("median", {"radius": 2}), ("gaussian", {"sigma": (2, 0.5)}), ("erode", {})]),
    ("smooth --axis xy keep-brightness ! normalize # a comment",
     [steps.smooth(axis="xy", keep_brightness=True), steps.normalize()],
     [("smooth", {"axis": "xy", "keep_brightness": True}), ("normalize", {})]),
    ("convolve kernel=0,1,0,1,-4,1,0,1,0\nsharpen",
     [steps.convolve(kernel=[0, 1, 0, 1, -4, 1, 0, 1, 0]), steps.sharpen()],
     [("convolve", {"kernel": "0,1,0,1,-4,1,0,1,0"}), ("sharpen", {})]),
    ("open radius=2 ! close", [steps.open(radius=2), steps.close()],
     [("erode", {"radius": 2}), ("dilate", {"radius": 2}), ("dilate", {}), ("erode", {})]),
]


def one_by_one(image, calls):
    for name, keywords in calls:
        image = getattr(gpufilter, name)(image, **keywords)
    return image


@formats
@pytest.mark.parametrize("text, listed, calls", CHAINS, ids=[chain[0][:9] for chain in CHAINS])
def test_images(rng, dtype, channels, text, listed, calls):
    image = random_image(rng, dtype, channels)
    want = one_by_one(image, calls)
    for made in (gpufilter.pipeline(text), gpufilter.pipeline(listed)):
        assert same(made(image), want) and same(made(image, backend="golden"), want)
        assert same(made(image[2:, 3:]), one_by_one(image[2:, 3:], calls))
    out = np.zeros_like(want)
    assert gpufilter.pipeline(text)(image, out=out) is out and same(out, want)
    batch = np.stack([image, image[::-1]])
    assert same(gpufilter.pipeline(text)(batch), np.stack([want, one_by_one(batch[1], calls)]))


@formats
def test_measurements(rng, dtype, channels):
    image = random_image(rng, dtype, channels)
    middle = gpufilter.median(image)
    last = gpufilter.gaussian(middle, sigma=2)
    text = "hist bins=5 ! median ! axis-sum axis=y ! gaussian sigma=2 ! hist bins=8 channel=all"
    made = gpufilter.pipeline(text)(image)
    first, sums, bins = made.results
    assert same(made.image, last) and made.written == {}
    assert same(first.counts, gpufilter.hist(image, bins=5).counts)
    assert same(sums.sums, gpufilter.axis_sum(middle, axis="y").sums)
    assert same(bins.counts, gpufilter.hist(last, bins=8, channel="all").counts)
    first, sums = gpufilter.pipeline([steps.hist(bins=5), steps.axis_sum()])(image)  # no image
    assert isinstance(first, gpufilter.HistResult) and isinstance(sums, gpufilter.AxisSumResult)
    made = gpufilter.pipeline(text)(np.stack([image, middle]))
    assert same(made.image[0], last) and [len(results) for results in made.results] == [2, 2, 2]
    assert same(made.results[0][1].counts, gpufilter.hist(middle, bins=5).counts)


def test_drawings(image):
    """A path of an image or of samples enables it; with arrays, no file is written."""
    made = gpufilter.pipeline(
        [steps.median(), steps.hist(bins=8, extract=3, mask="none/m.png", out="none/s.npy")])(image)
    want = gpufilter.hist(gpufilter.median(image), bins=8, extract=3, mask=True)
    assert same(made.results[0].image, want.image)
    assert same(made.results[0].extracted, want.extracted)


def test_writers(image):
    """Writers without files: an image each. `input` returns to the first one."""
    made = gpufilter.pipeline("median ! write a.png ! input ! write 'b c' ! box ! write d")(image)
    assert list(made.written) == ["a.png", "b c", "d"] and made.results == []
    assert same(made.written["a.png"], gpufilter.median(image))
    assert same(made.written["b c"], image) and made.written["b c"] is not image
    assert made.image is made.written["d"] and same(made.image, gpufilter.box(image))
    made = gpufilter.pipeline("median ! write a ! input ! hist")(image)
    assert made.image is None and same(made.written["a"], gpufilter.median(image))
    assert same(made.results[0].counts, gpufilter.hist(image).counts)
    assert same(gpufilter.pipeline("median ! write a depth=16")(image),
                gpufilter.median(image).astype(np.uint16) * 257)


def test_conversions(image, tmp_path):
    deep = image.astype(np.uint16) * 257
    assert same(gpufilter.pipeline("depth 16 ! gaussian")(image), gpufilter.gaussian(deep))
    made = gpufilter.pipeline([steps.linear(), steps.gaussian(), steps.hist(bins=4)])(image)
    gpufilter.write(tmp_path / "a.png", image)
    gpufilter.gaussian_file(tmp_path / "a.png", tmp_path / "b.png", linear=True)
    assert same(made.image, gpufilter.read(tmp_path / "b.png"))
    assert gpufilter.pipeline("linear ! gaussian ! depth f32")(image).dtype == np.float32
    with pytest.warns(gpufilter.ClippingWarning, match="image: depth: .* are clipped") as caught:
        gpufilter.pipeline("depth f32 ! sharpen ! depth 8")(image)
    assert caught[0].filename == __file__
    out = np.zeros(image.shape, np.float32)
    made = gpufilter.pipeline("depth f32 ! sharpen")(image, out=out)
    assert made is out and made.max() > 1


def test_second_images(image, tmp_path):
    blurred = gpufilter.median(image)
    path = tmp_path / "a=b.png"  # not an option
    gpufilter.write(path, blurred)
    made = gpufilter.pipeline([steps.median(), steps.compare(path), steps.dot("-x")])
    assert str(made).endswith("! dot ./-x")
    same_image, products = made(image, blurred, image).results
    assert same_image and products.ab == gpufilter.dot(blurred, image).ab
    assert gpufilter.pipeline([steps.median(), steps.compare(path)])(image).results[0]
    assert not gpufilter.pipeline([steps.box(), steps.compare(path)])(image).results[0]
    with pytest.raises(gpufilter.UsageError, match="1 second images; the pipeline reads 0"):
        gpufilter.pipeline("median")(image, image)
    with pytest.raises(gpufilter.UsageError, match="image and input of step 2 differ"):
        gpufilter.pipeline("depth 16 ! compare b")(image, image)


# ---- text ---------------------------------------------------------------------------------------


def test_text(image):
    made = gpufilter.pipeline("median --radius 2 !\n gaussian -s 2 ! input ! hist --statistics")
    assert str(made) == "median radius=2 ! gaussian sigma=2 ! input ! hist statistics"
    assert repr(made) == "gpufilter.pipeline(%r)" % str(made)
    again = gpufilter.pipeline(str(made))
    assert again == made and hash(again) == hash(made) and made != str(made)
    assert pickle.loads(pickle.dumps(made)) == made
    joined = gpufilter.pipeline([made, "box # twice", steps.write("a b", quality=80, strip=True)])
    assert str(joined) == str(made) + " ! box ! write 'a b' quality=80 strip"
    listed = gpufilter.pipeline([steps.median(radius=2), steps.input(), steps.hist(statistics=True)])
    assert str(listed) == "median radius=2 ! input ! hist statistics"


def test_every_step():
    """Each word that begins a step is a function of gpufilter.steps."""
    with pytest.raises(gpufilter.UsageError) as failure:
        gpufilter.pipeline("zzzzzzzzz")
    words = failure.value.message.partition("a step is a filter, ")[2].replace(" or", ",").split(", ")
    assert len(words) == 6
    assert sorted(steps.__all__) == sorted(words + [f.function for f in c.FILTERS.values()])
    for name in steps.__all__:
        assert getattr(steps, name).__doc__


def test_errors(image):
    for text, message in {
            "median ! gauss": "step 2, gauss: no such step; did you mean gaussian?",
            "median ! gaussian sigma=a": "step 2, gaussian: sigma='a': must be a number",
            "median ! compare": "step 2, compare: expected compare FILE",
            "write a": "pipeline: no filter", "": "pipeline: no filter",
            "median ! input": "input: no step follows", "me\0dian": "a NUL character",
            "median ! write a ! write a": "step 3, write: a: step 2 writes it, too"}.items():
        with pytest.raises(gpufilter.UsageError) as failure:
            gpufilter.pipeline(text)
        assert message in failure.value.message
    with pytest.raises(gpufilter.UsageError, match="step 2, box: radius='99999'"):
        gpufilter.pipeline([steps.median(), steps.box(radius=99999)])
    with pytest.raises(gpufilter.UsageError, match="step 2, hist: "):
        gpufilter.pipeline("median ! hist channel=a")(image)
    with pytest.raises(gpufilter.UsageError, match="radius: expected a number, a text or a sequence"):
        steps.median(radius=object())
    with pytest.raises(gpufilter.UsageError, match="out: hist produces no image without mask"):
        gpufilter.pipeline("hist")(image, out=image.copy())
    with pytest.raises(gpufilter.UsageError, match="out: expected shape"):
        gpufilter.pipeline("depth 16 ! median")(image, out=image.copy())
    with pytest.raises(gpufilter.NotFoundError, match="none.png"):
        gpufilter.pipeline("median ! compare none.png")(image)


# ---- files --------------------------------------------------------------------------------------


def test_files(image, tmp_path):
    start, end, middle = (tmp_path / name for name in ("a.png", "b.png", "c.jpg"))
    gpufilter.write(start, image)
    want = gpufilter.gaussian(gpufilter.median(image))
    report = gpufilter.pipeline("median ! gaussian").files(start, end, compression="small")
    assert isinstance(report, gpufilter.Report) and same(gpufilter.read(end), want)
    listed = [steps.median(), steps.write(middle, quality=50), steps.gaussian(), steps.hist(bins=4)]
    with pytest.raises(gpufilter.ExistsError):
        gpufilter.pipeline(listed).files(start, end)
    assert not middle.exists()
    made = gpufilter.pipeline(listed).files(start.read_bytes(), end, force=True, backend="golden")
    assert same(gpufilter.read(end), want) and middle.exists()
    assert made.image.backend == "golden" and list(made.written) == [str(middle)]
    assert same(made.results[0].counts, gpufilter.hist(want, bins=4).counts)
    (found,) = gpufilter.pipeline("hist bins=4").files(end, crop=(1, 2, 3, 4))
    assert found.counts.sum() == 12
    (equal,) = gpufilter.pipeline([steps.compare(end)]).files(end)
    assert equal
    with pytest.raises(gpufilter.UsageError, match="produces an image"):
        gpufilter.pipeline("median").files(start)
    with pytest.raises(TypeError, match="no keyword radius"):
        gpufilter.pipeline("median").files(start, end, radius=2)


def test_batches(rng, tmp_path):
    images = [random_image(rng, "u1", 3, (9 + i, 8)) for i in range(3)]
    for i, image in enumerate(images):
        gpufilter.write(tmp_path / ("%d.png" % i), image)
    paths = [tmp_path / name for name in ("0.png", "none.png", "1.png", "2.png")]
    made = gpufilter.pipeline("median ! write {stem}-m.tif ! box ! hist bins=3 ! depth 16")
    for run in (made.batch, lambda *arguments: gpufilter.batch(*arguments, made, resume=True)):
        outcomes = run(paths, tmp_path / "out")
        assert isinstance(outcomes[1].error, gpufilter.NotFoundError)
        del outcomes[1]
        for i, (image, outcome) in enumerate(zip(images, outcomes)):
            middle = gpufilter.median(image)
            assert outcome.out == str(tmp_path / "out" / ("%d.png" % i))
            assert same(gpufilter.read(tmp_path / "out" / ("%d-m.tif" % i)), middle)
            want = gpufilter.box(middle)
            assert same(gpufilter.read(outcome.out), want.astype(np.uint16) * 257)
            if not outcome.skipped:
                assert same(outcome.result.results[0].counts, gpufilter.hist(want, bins=3).counts)
    assert all(outcome.skipped for outcome in outcomes)
    with pytest.raises(gpufilter.UsageError, match="out_dir: median ! write"):
        made.batch(paths)
    with pytest.raises(TypeError, match="no keyword radius"):
        made.batch(paths, tmp_path, radius=2)
    (outcome,) = gpufilter.pipeline("hist bins=3").batch(paths[:1])
    assert outcome.out is None and len(outcome.result[0].counts) == 3
