"""Files, batches and results: the same bytes and values as with arrays and with the program."""

import copy
import dataclasses
import gc
import os
import pathlib
import pickle
import subprocess

import gpufilter
import numpy as np
import pytest
from support import FORMATS, random_image, same, smoothed

PROGRAM = pathlib.Path(os.environ.get("GPUFILTER_PROGRAM", "build/gpufilter")).resolve()


# Float file formats have no alpha channel.
@pytest.mark.parametrize("dtype, channels", [f for f in FORMATS if f[0] != "f4" or f[1] in (1, 3)])
def test_write_and_read(rng, tmp_path, dtype, channels):
    image = random_image(rng, dtype, channels)
    path = tmp_path / ("image." + ("pfm" if dtype == "f4" else "png"))
    for view in (image, image[2:-3, 4:-1], image[::-1], image.transpose(1, 0, 2)):
        gpufilter.write(path, view, force=True)
        got = gpufilter.read(str(path))
        assert same(got, np.ascontiguousarray(view if channels > 1 else view[:, :, 0]))
        assert got.flags.writeable


@pytest.mark.parametrize("dtype, channels", FORMATS)
def test_npy(rng, tmp_path, dtype, channels):
    """Files of numpy.save are read in both byte orders, and written with the same bytes."""
    image = random_image(rng, dtype, channels)
    image = image if channels > 1 else image[:, :, 0]
    saved, written = tmp_path / "saved.npy", tmp_path / "written.npy"
    np.save(saved, image.astype(image.dtype.newbyteorder()))
    assert same(gpufilter.read(saved), image)
    np.save(saved, image)
    assert same(gpufilter.read(saved), image)
    gpufilter.write(written, image)
    assert written.read_bytes() == saved.read_bytes()


def test_read_options(image, tmp_path):
    path = tmp_path / "x.png"
    gpufilter.write(path, image)
    deep = image.astype(np.uint16) * 257
    assert same(gpufilter.read(path, depth="16"), deep)
    assert same(gpufilter.read(path, depth="f32"), image / np.float32(255))
    assert same(gpufilter.read(path, depth="8", autorotate=True), image)
    assert same(gpufilter.read(path, crop=(3, 2, 5, 7)), image[2:9, 3:8])
    gpufilter.write(path, deep, force=True)
    assert same(gpufilter.read(path, depth="8", crop=np.array([1, 0, 4, 4])), image[0:4, 1:5])
    with pytest.raises(gpufilter.Error, match="is not inside the image"):
        gpufilter.read(path, crop=(0, 0, image.shape[1] + 1, 1))
    for options in {"depth": "12"}, {"depth": 8}, {"crop": (1, 2, 3)}, {"crop": (-1, 0, 1, 1)}, {"crop": 5}, \
            {"crop": (0, 0, 0, 1)}, {"crop": (0.5, 0, 1, 1)}:
        with pytest.raises(gpufilter.UsageError, match=list(options)[0]):
            gpufilter.read(path, **options)


def test_write_options(image, tmp_path):
    path = os.fsencode(tmp_path / "ä.png")  # bytes are a path, too
    gpufilter.write(path, image)
    with pytest.raises(gpufilter.Error, match="exists") as caught:
        gpufilter.write(path, image)
    assert caught.value.status == 1
    gpufilter.write(path, image, force=True, compression="small")
    assert same(gpufilter.read(path), image)
    with pytest.raises(gpufilter.UsageError):
        gpufilter.write(tmp_path / "x.unknown", image)
    with pytest.raises(gpufilter.UsageError):
        gpufilter.write(tmp_path / "x.png", image, compression="none at all")
    sizes = []
    for codec in ("none", "lzw", "deflate", None):
        gpufilter.write(tmp_path / "x.tif", image, force=True, tiff_compression=codec)
        sizes.append((tmp_path / "x.tif").stat().st_size)
    assert len(set(sizes[:3])) == 3 and sizes[2] == sizes[3]  # deflate is the default
    with pytest.raises(gpufilter.UsageError):
        gpufilter.write(tmp_path / "x.tif", image, force=True, tiff_compression="small")


def test_file_functions(samples, tmp_path):
    scene = samples / "scene.png"
    image = gpufilter.read(scene)
    out = tmp_path / "out.png"
    report = gpufilter.smooth_file(scene, out, axis="xy", keep_brightness=True)
    made = gpufilter.read(out)
    assert same(made, gpufilter.smooth(image, axis="xy", keep_brightness=True))
    assert report.backend in ("cpu", "cuda") and report.seconds > 0
    assert report.clipped == (made == 255).sum()
    with pytest.raises(gpufilter.Error, match="force"):
        gpufilter.smooth_file(scene, out)
    gpufilter.smooth_file(scene, out, stages=["blur"], force=True, compression="none")
    assert same(gpufilter.read(out), gpufilter.smooth(image, stages="blur"))
    gpufilter.normalize_file(scene, out, force=True, backend="cpu")
    assert same(gpufilter.read(out), gpufilter.normalize(image))

    mask, found = tmp_path / "mask.png", tmp_path / "samples.npy"
    got = gpufilter.hist_file(scene, bins=8, extract=3, mask=mask, out=found)
    want = gpufilter.hist(image, bins=8, extract=3, mask=True)
    assert same(got.counts, want.counts) and same(gpufilter.read(mask), want.image)
    assert same(np.load(found), want.extracted)
    assert same(got.extracted, want.extracted[:10]) and got.text == want.text
    assert same(gpufilter.axis_sum_file(scene).sums, gpufilter.axis_sum(image).sums)
    assert gpufilter.dot_file(scene, scene).ab == gpufilter.dot(image, image).ab
    diff = tmp_path / "diff.png"
    assert not gpufilter.compare_file(scene, out, diff=diff)
    drawn = gpufilter.compare(image, gpufilter.read(out), diff=True).image
    assert same(gpufilter.read(diff), drawn)


def test_program_agrees(samples, tmp_path):
    if not PROGRAM.exists():
        pytest.skip("no program")
    out = tmp_path / "out.png"
    subprocess.run([PROGRAM, "smooth", "-r", "3", "--axis", "xy", samples / "scene.png", out],
                   check=True, stderr=subprocess.DEVNULL)
    image = gpufilter.read(samples / "scene.png")
    assert same(gpufilter.smooth(image, radius=3, axis="xy"), gpufilter.read(out))


# ---- batches ------------------------------------------------------------------------------------


def make_files(rng, directory, count=12):
    images = [random_image(rng, "u1", 3) for _ in range(count)]
    paths = [directory / ("%d.png" % i) for i in range(count)]
    for path, image in zip(paths, images):
        gpufilter.write(path, image)
    return paths, images


def test_batch(rng, tmp_path):
    paths, images = make_files(rng, tmp_path)
    done = gpufilter.batch(paths, tmp_path / "new" / "out", axis="xy", radius=1)
    for outcome, path, image in zip(done, paths, images):
        assert outcome.path == str(path) and outcome.error is None
        assert isinstance(outcome.result, gpufilter.Report)
        assert same(gpufilter.read(outcome.out), smoothed(image, axis="xy", radius=1))
    again = gpufilter.batch(paths[:2], tmp_path / "new" / "out")
    assert all("exists" in outcome.error.message for outcome in again)
    again = gpufilter.batch(paths[:2], tmp_path / "new" / "out", force=True, progress=True)
    assert all(outcome.error is None for outcome in again)
    assert gpufilter.batch([], tmp_path) == []


def test_batch_continues_after_failures(rng, tmp_path):
    paths, images = make_files(rng, tmp_path)
    paths[4].write_bytes(b"no image")
    paths[7].unlink()
    done = gpufilter.batch(paths, tmp_path / "out", "normalize", backend="cpu")
    assert [i for i, outcome in enumerate(done) if outcome.error] == [4, 7]
    assert done[4].error.status == 1 and "4.png" in done[4].error.message
    assert done[7].result is None and not os.path.exists(done[7].out)


def test_batch_of_measurements(rng, tmp_path):
    paths, images = make_files(rng, tmp_path)
    done = gpufilter.batch(paths, filter="hist", bins=8, channel="all", extract="2", per_row=True)
    for outcome, image in zip(done, images):
        want = gpufilter.hist(image, bins=8, channel="all", extract=2, per_row=True)
        assert same(outcome.result.counts, want.counts) and outcome.out is None
        assert same(outcome.result.row_counts, want.row_counts)
        assert same(outcome.result.extracted, want.extracted[:10])
        assert list(outcome.result.tables["bins"]) == list(want.tables["bins"])
    done = gpufilter.batch(paths, filter="axis-sum")
    assert [outcome.result.sums.sum() for outcome in done] == [image.sum() for image in images]


def test_batch_usage(rng, tmp_path):
    paths, _ = make_files(rng, tmp_path, 2)
    for call in (
            lambda: gpufilter.batch(paths, tmp_path / "out", radius=1000),
            lambda: gpufilter.batch(paths, filter="hist", mask="x.png", extract=3),
            lambda: gpufilter.batch(paths[0], tmp_path / "out"),
            lambda: gpufilter.batch(str(paths[0]), tmp_path / "out"),
            lambda: gpufilter.batch([None], tmp_path / "out"),
            lambda: gpufilter.batch(paths, tmp_path / "out", backend=None),
            lambda: gpufilter.batch([paths[0], paths[0]], tmp_path / "out")):
        with pytest.raises(gpufilter.UsageError):
            call()
    with pytest.raises((gpufilter.UsageError, gpufilter.BackendError)):
        gpufilter.batch(paths, tmp_path / "out", backend="none")
    for outcome in gpufilter.batch(paths, tmp_path / "out", compression=9):
        assert isinstance(outcome.error, gpufilter.UsageError)
    with pytest.raises(gpufilter.Error, match="cannot create: File exists"):
        gpufilter.batch(paths, paths[0])


# ---- results ------------------------------------------------------------------------------------


def test_tables(image):
    result = gpufilter.hist(image, bins=8, channel="all")
    tables = result.tables
    assert list(tables) == ["bins", "totals"] and len(tables) == 2 and "bins" in repr(result)
    assert list(tables["bins"]) == ["bin", "from", "to", "r", "g", "b"]
    assert tables["bins"]["r"].dtype == np.uint64 and tables["totals"]["channel"][0] == "r"
    assert tables["bins"] is tables["bins"]
    with pytest.raises(KeyError):
        tables["none"]
    with pytest.raises(AttributeError):
        result.counts = None


def test_wide_integers():
    """Sums beyond 64 bits are exact."""
    image = np.full((3, 70000), 65535, np.uint16)
    wide = gpufilter.dot(np.broadcast_to(image[:1], (1, 70000)), image[:1])
    assert wide.ab == 70000 * 65535**2 and isinstance(wide.ab, int)


def test_result_outlives_the_engine(image):
    import threading

    found = []
    thread = threading.Thread(target=lambda: found.append(gpufilter.axis_sum(image)))
    thread.start()
    thread.join()
    assert np.array_equal(found[0].tables["sums"]["r"], image[:, :, 0].sum(1))


def test_copies_of_results(image, tmp_path):
    """A copy, or a result of a batch, does not need the library."""
    path = tmp_path / "a.png"
    gpufilter.write(path, image)
    results = [gpufilter.hist(image, bins=8, extract=[2, 3], per_row=True)]
    assert "samples" in results[0].tables and not results[0].tables._read.get("samples")
    results += [copy.deepcopy(results[0]), pickle.loads(pickle.dumps(results[0]))]
    tables = [result.tables for result in results]
    tables += [copy.copy(tables[0]), dataclasses.asdict(results[0])["tables"]]
    for other in tables[1:]:
        assert list(other) == list(tables[0]) and other.text == tables[0].text
        for name, columns in tables[0].items():
            for column, values in columns.items():
                assert np.array_equal(other[name][column], values)
                assert np.array_equal(other.read(name, column), values)
    del results[1:], tables[0]
    gc.collect()
    assert tables[0]["bins"]["grey" if image.ndim == 2 else "luma"].sum() == image[..., 0].size
    of_batch = gpufilter.batch([path], None, "hist", bins=8)[0].result
    assert of_batch.tables.read("bins", "bin").tolist() == list(range(8))


def test_plot(image):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = gpufilter.hist(image, bins=8, channel="all").plot()
    assert ax.get_xlabel() == "sample value" and len(ax.patches) == 3
    assert gpufilter.hist(image, bins=8).plot(ax) is ax
    for bins in (8, 256):  # the last bar is as wide as the others
        edges = gpufilter.hist(image, bins=bins).plot().patches[0].get_data().edges
        assert edges[-1] == 256 and set(np.diff(edges)) == {256 / bins}
    assert len(gpufilter.axis_sum(image).plot().lines) == 3
    with pytest.raises(gpufilter.Error, match="no chart"):
        gpufilter.dot(image, image).plot()
    matplotlib.pyplot.close("all")
