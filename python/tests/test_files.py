"""Files, batches and results: the same bytes and values as with arrays and with the program."""

import copy
import dataclasses
import gc
import io
import os
import pathlib
import pickle
import struct
import subprocess
import zlib

import gpufilter
import numpy as np
import pytest
from gpufilter import _library as c
from gpufilter import _settings
from support import FORMATS, random_image, same, smoothed

PROGRAM = pathlib.Path(os.environ.get("GPUFILTER_PROGRAM", "build/gpufilter")).resolve()


# Float file formats have no alpha channel.
@pytest.mark.parametrize("dtype, channels", [f for f in FORMATS if f[0] != "f4" or f[1] in (1, 3)])
def test_write_and_read(rng, tmp_path, dtype, channels):
    image = random_image(rng, dtype, channels)
    path = tmp_path / ("image." + ("pfm" if dtype == "f4" else "png"))
    for view in (image, image[2:-3, 4:-1], image[::-1], image.transpose(1, 0, 2)):
        gpufilter.write(path, view, force=True, alpha=channels in (2, 4))
        got, alpha = gpufilter.read(str(path), return_alpha=True)
        assert alpha == (channels in (2, 4))
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


def write_pages(path, images):
    """Write a TIFF with a page of 8 bits per grey image of an even size."""
    data = struct.pack("<2sHI", b"II", 42, 8)
    for i, image in enumerate(images):
        height, width = image.shape
        start = len(data) + 2 + 9 * 12 + 4
        tags = {256: width, 257: height, 258: 8, 259: 1, 262: 1, 273: start, 277: 1, 278: height,
                279: image.size}
        entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
        following = start + image.size if i + 1 < len(images) else 0
        data += struct.pack("<H", len(tags)) + entries + struct.pack("<I", following)
        data += image.tobytes()
    path.write_bytes(data)


def write_turned(path, image):
    """Write a PNG whose EXIF orientation is 6: the upright image is turned clockwise."""
    gpufilter.write(path, image)
    chunk = b"eXIfII*\0" + struct.pack("<IHHHIII", 8, 1, 0x112, 3, 1, 6, 0)
    chunk = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    data = path.read_bytes()
    path.write_bytes(data[:33] + chunk + data[33:])


@pytest.fixture
def inputs(image, tmp_path):
    """Files of several formats; their directory."""
    gpufilter.write(tmp_path / "in.png", image)
    gpufilter.write(tmp_path / "in.jpg", image)
    gpufilter.write(tmp_path / "in.tif", image)
    write_turned(tmp_path / "turned.png", image)
    write_pages(tmp_path / "pages.tif", [image[:, :, i].copy() for i in range(3)])
    return tmp_path


def test_read_options(image, inputs):
    assert same(gpufilter.read(inputs / "turned.png"), image)
    upright = np.rot90(image, -1)
    assert same(gpufilter.read(inputs / "turned.png", autorotate=True), upright)
    got = gpufilter.read(inputs / "turned.png", autorotate=np.bool_(1), crop=(3, 2, 5, 7))
    assert same(got, upright[2:9, 3:8])
    for page in (1, 2, np.int64(3), None):
        assert same(gpufilter.read(inputs / "pages.tif", page=page), image[:, :, (page or 1) - 1])
    with pytest.raises(gpufilter.Error, match="has no page 4"):
        gpufilter.read(inputs / "pages.tif", page=4)
    with pytest.raises(gpufilter.Error, match="omit page="):
        gpufilter.read(inputs / "in.png", page=2)
    path = inputs / "x.png"
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
    with pytest.raises(gpufilter.UsageError, match="^crop: the rectangle is empty"):
        gpufilter.read(path, crop=(0, 0, 0, 1))


def test_write_options(image, tmp_path):
    path = tmp_path / "ä.png"
    gpufilter.write(path, image)
    with pytest.raises(gpufilter.Error, match="exists") as caught:
        gpufilter.write(path, image)
    assert caught.value.status == 1
    gpufilter.write(path, image, force=True, compression="small")
    assert same(gpufilter.read(path), image)
    with pytest.raises(gpufilter.UsageError):
        gpufilter.write(tmp_path / "x.unknown", image)
    sizes = []
    for codec in ("none", "lzw", "deflate", None):
        gpufilter.write(tmp_path / "x.tif", image, force=True, tiff_compression=codec)
        sizes.append((tmp_path / "x.tif").stat().st_size)
    assert len(set(sizes[:3])) == 3 and sizes[2] == sizes[3]  # deflate is the default


def test_write_depth(image, tmp_path):
    deep, real = image.astype(np.uint16) * 257, image / np.float32(255)
    path = tmp_path / "x.tif"
    for array in (image, image[:, ::2], deep, real):
        part = array[:, :3]
        for depth, want in {"8": image, "16": deep, "f32": real, None: array}.items():
            gpufilter.write(path, array, depth=depth, force=True)
            want = want[:, ::2] if array.shape != image.shape and depth else want
            assert same(gpufilter.read(path), np.ascontiguousarray(want))
            gpufilter.write(path, part, depth=depth, force=True)
            assert same(gpufilter.read(path), np.ascontiguousarray(want[:, :3]))
    gpufilter.write(tmp_path / "x.jpg", real, depth="8")
    gpufilter.write(tmp_path / "y.jpg", image)
    assert (tmp_path / "x.jpg").read_bytes() == (tmp_path / "y.jpg").read_bytes()


def test_write_quality(image, inputs):
    """An image has the bytes of a filter that changes nothing."""
    files = []
    for quality in (1, 40, 95, 100, None):
        keywords = {"quality": quality, "force": True}
        gpufilter.write(inputs / "a.jpg", image, **keywords)
        gpufilter.smooth_file(inputs / "in.png", inputs / "b.jpg", stages="enhance", gain=1,
                              **keywords)
        files.append((inputs / "a.jpg").read_bytes())
        assert files[-1] == (inputs / "b.jpg").read_bytes()
    assert len(set(files)) == 4 and files[2] == files[4]  # 95 is the default


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


@pytest.mark.parametrize("name, keywords, options", [
    ("turned.png", {"autorotate": True}, ["--autorotate"]),
    ("turned.png", {"strip": True}, ["--strip"]),
    ("turned.png", {"strip": True, "autorotate": True, "crop": (1, 4, 7, 20)},
     ["--strip", "--autorotate", "--crop", "1,4,7,20"]),
    ("in.png", {"crop": np.array([3, 2, 9, 7])}, ["--crop", "3,2,9,7"]),
    ("in.png", {"depth": "16"}, ["--depth", "16"]),
    ("in.png", {"linear": True}, ["--linear"]),
    ("in.png", {"compression": "none"}, ["--compression", "none"]),
    ("in.jpg", {"quality": 31}, ["--quality", "31"]),
    ("in.tif", {"depth": "f32"}, ["--depth", "f32"]),
    ("in.tif", {"tiff_compression": "lzw"}, ["--tiff-compression", "lzw"]),
    ("pages.tif", {"page": 2}, ["--page", "2"]),
], ids=str)
def test_file_options(inputs, name, keywords, options):
    """Options have the effect that they have in the program: the bytes of the output."""
    if not PROGRAM.exists():
        pytest.skip("no program")
    names = ["plain", "program", "file"]
    plain, program, file = [inputs / (word + pathlib.Path(name).suffix) for word in names]
    gpufilter.smooth_file(inputs / name, plain)
    subprocess.run([PROGRAM, "smooth", *options, inputs / name, program], check=True,
                   stderr=subprocess.DEVNULL)
    gpufilter.smooth_file(inputs / name, file, **keywords)
    done, = gpufilter.batch([inputs / name], inputs / "out", **keywords)
    want = program.read_bytes()
    assert plain.read_bytes() != want
    assert file.read_bytes() == want and pathlib.Path(done.out).read_bytes() == want


def test_file_options_of_measurements(image, inputs):
    """Options select the part that is measured, and how an image is drawn."""
    pages, turned, mask = (inputs / name for name in ("pages.tif", "turned.png", "mask.png"))
    part = {"autorotate": True, "crop": (1, 2, 7, 8)}
    want = np.rot90(image, -1)[2:10, 1:8]
    assert same(gpufilter.axis_sum_file(turned, **part).sums, gpufilter.axis_sum(want).sums)
    assert gpufilter.dot_file(turned, turned, **part).ab == gpufilter.dot(want, want).ab
    for outcome in gpufilter.batch([turned], None, "hist", **part):
        assert same(outcome.result.counts, gpufilter.hist(want).counts)
    drawing = gpufilter.hist(image[:, :, 2], bins=8, extract=3, mask=True).image
    for depth, scale in {"8": 1, "16": 257}.items():
        gpufilter.hist_file(pages, page=3, bins=8, extract=3, mask=mask, depth=depth, force=True)
        assert same(gpufilter.read(mask), drawing.astype("u%d" % (int(depth) // 8)) * scale)
    sizes = []
    for compression in ("none", "small"):
        gpufilter.compare_file(pages, pages, diff=mask, compression=compression, force=True)
        sizes.append(mask.stat().st_size)
    assert sizes[0] > sizes[1]
    gpufilter.hist_file(turned, bins=8, extract=3, mask=mask, force=True)
    assert b"eXIf" in mask.read_bytes()
    gpufilter.hist_file(turned, bins=8, extract=3, mask=mask, force=True, strip=True)
    assert b"eXIf" not in mask.read_bytes()
    got = gpufilter.hist_file(turned, quality=95, depth=None, strip=False, force=True)
    assert same(got.counts, gpufilter.hist(image).counts)  # defaults need no image


def grey_pages(path, sizes):
    """Write uncompressed TIFF pages of these (height, width). Return their images."""
    images = [np.arange(h * w, dtype=np.uint8).reshape(h, w) * 7 for h, w in sizes]
    tags = 7
    directory = 2 + 12 * tags + 4
    data = 8 + directory * len(sizes)
    file = struct.pack("<2sHI", b"II", 42, 8)
    for i, image in enumerate(images):
        h, w = image.shape
        values = ((256, w), (257, h), (258, 8), (262, 1), (273, data), (278, h), (279, h * w))
        file += struct.pack("<H", tags) + b"".join(struct.pack("<HHII", tag, 4, 1, v) for tag, v in values)
        file += struct.pack("<I", 8 + directory * (i + 1) if i + 1 < len(images) else 0)
        data += h * w
    path.write_bytes(file + b"".join(image.tobytes() for image in images))
    return images


def test_types_and_channels(tmp_path):
    counts = np.arange(2 * 3 * 6, dtype=">i4").reshape(2, 3, 6) * 70000 - 5
    np.save(tmp_path / "counts.npy", np.asfortranarray(counts))
    with pytest.raises(gpufilter.Error, match='with as_="f32" or as_="u16", which'):
        gpufilter.read(tmp_path / "counts.npy")
    got = gpufilter.read(tmp_path / "counts.npy", as_="f32", channels="6,1,3")
    assert same(got, counts[:, :, [5, 0, 2]].astype(np.float32))
    with pytest.raises(gpufilter.Error, match="other values: 12, from -5 to 2449995"):
        gpufilter.hist_file(tmp_path / "counts.npy", as_="u16", channels="1,6")
    np.save(tmp_path / "volume.npy", np.arange(60, dtype=np.uint8).reshape(3, 4, 5))
    result = gpufilter.hist_file(tmp_path / "volume.npy", page="all", bins=256)
    assert list(result.counts[:61]) == 60 * [1] + [0]
    assert same(gpufilter.read(tmp_path / "volume.npy", page=2),
                np.arange(20, 40, dtype=np.uint8).reshape(4, 5))


def test_all_pages(tmp_path):
    images = grey_pages(tmp_path / "in.tif", [(5, 9), (3, 4), (8, 2)])
    report = gpufilter.smooth_file(tmp_path / "in.tif", tmp_path / "out.tif", page="all", radius=1)
    assert report.clipped is not None
    for page, image in enumerate(images, 1):
        assert same(gpufilter.read(tmp_path / "in.tif", page=page), image)
        assert same(gpufilter.read(tmp_path / "out.tif", page=page), smoothed(image, radius=1))
    with pytest.raises(gpufilter.Error, match="has no page 4"):
        gpufilter.read(tmp_path / "out.tif", page=4)
    with pytest.raises(gpufilter.UsageError, match="holds one image"):
        gpufilter.smooth_file(tmp_path / "in.tif", tmp_path / "out.png", page="all")


# ---- contents instead of paths ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["png", "tif", "jpg", "npy", "pgm", "bmp"])
def test_bytes_and_files(rng, tmp_path, kind):
    """Contents give what their file gives, and files opened for writing receive its bytes."""
    path = tmp_path / ("a." + kind)
    image = rng.integers(0, 256, (9, 7), dtype=np.uint8)
    gpufilter.write(path, image)
    made = io.BytesIO()
    gpufilter.write(made, image, format=kind)
    assert made.getvalue() == path.read_bytes()
    data = path.read_bytes()
    want = gpufilter.read(path)
    for source in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
        assert same(gpufilter.read(source), want)
    with open(path, "rb") as file:
        assert same(gpufilter.read(file), want)
    counts = gpufilter.hist_file(io.BytesIO(data), bins=8).counts
    assert same(counts, gpufilter.hist_file(path, bins=8).counts)
    assert gpufilter.compare_file(data, path)
    gpufilter.smooth_file(data, tmp_path / "b.png")
    gpufilter.smooth_file(path, tmp_path / "c.png")
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "c.png").read_bytes()


def test_messages_about_bytes(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for call, start in ((lambda: gpufilter.read(b""), "path: the file is empty"),
                        (lambda: gpufilter.read(b"no image"), "path: unsupported image format"),
                        (lambda: gpufilter.hist_file(b"P5 4 4 255\n"), "image: the file ends too early"),
                        (lambda: gpufilter.dot_file(b"P5 1 1 255\n1", io.BytesIO()), "b: the file is"),
                        (lambda: gpufilter.write(io.BytesIO(), np.zeros((2, 2, 2), np.uint8), format="png"),
                         "path: PNG stores channel 2 only as alpha")):
        with pytest.raises(gpufilter.Error) as caught:
            call()
        assert str(caught.value).startswith(start) and caught.value.message == str(caught.value)
    assert len(os.listdir("/proc/self/fd")) == before


def test_damage(tmp_path):
    """Damage that was read is a warning, which names the files and says which one is damaged; strict fails."""
    path, whole = tmp_path / "fax.tif", np.full((3, 8), 255, np.uint8)
    tags = [(256, 8), (257, 3), (259, 4), (262, 0), (273, 98), (278, 3), (279, 4)]
    path.write_bytes(b"II*\0\10\0\0\0\7\0" + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags) +
                     b"\0\0\0\0\xc0\4\0\x40")  # two rows of three
    gpufilter.write(tmp_path / "whole.png", whole)
    text = "1 of 3 rows of the fax are damaged; missing ones are blank"
    with pytest.warns(gpufilter.DamageWarning) as found:
        assert same(gpufilter.read(path), whole)
        assert gpufilter.compare_file(tmp_path / "whole.png", path)
    assert [str(one.message) for one in found] == [
        "%s: %s" % (path, text), "%s, %s: second image: %s" % (tmp_path / "whole.png", path, text)]
    with pytest.raises(gpufilter.Error, match="fax.tif: 1 of 3 rows .* without strict=True, this is a warning"):
        gpufilter.read(path, strict=True)


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


def test_batch_names(rng, tmp_path):
    paths, _ = make_files(rng, tmp_path, 3)
    done = gpufilter.batch(paths, tmp_path / "o", name="{index:3}-{stem}{ext}.{index}.png")
    assert [os.path.basename(outcome.out) for outcome in done] == [
        "%03d-%s.%d.png" % (i, path.name, i) for i, path in enumerate(paths, 1)]
    assert all(os.path.exists(outcome.out) for outcome in done)


def test_batch_extensions(rng, tmp_path):
    """Names follow format and the formats that can be written, and have the braces of the program."""
    for name in "a.jpg", "b.tif":
        gpufilter.write(tmp_path / name, rng.integers(0, 100, (5, 6), dtype=np.uint8))
    (tmp_path / "b.tif").rename(tmp_path / "b.gif")
    paths = [tmp_path / "a.jpg", tmp_path / "b.gif"]
    for name, format, want in (("{stem}{ext}", None, ["a.jpg", "b.png"]), ("{stem}{ext}", "pgm", ["a.pgm", "b.pgm"]),
                               ("{{{stem}}}.png", None, ["{a}.png", "{b}.png"])):
        done = gpufilter.batch(paths, tmp_path / "o", name=name, format=format, force=True, keep_brightness=True)
        assert [outcome.error for outcome in done] == [None, None]
        assert [os.path.basename(outcome.out) for outcome in done] == want
    magic = [open(outcome.out, "rb").read(2) for outcome in done]
    assert magic == [b"\x89P"] * 2
    for name in "{", "a}b", "{index:0}", "{index:21}", "{}":
        with pytest.raises(gpufilter.UsageError, match="name: "):
            gpufilter.batch(paths, tmp_path / "o", name=name)


def test_batch_resumes(rng, tmp_path):
    (paths, _), out = make_files(rng, tmp_path, 4), tmp_path / "o"
    first = gpufilter.batch(paths, out)
    assert not any(outcome.skipped or outcome.error for outcome in first)
    os.utime(first[1].out, (1, 1))  # older than its input
    os.truncate(first[2].out, 0)
    os.unlink(first[3].out)
    again = gpufilter.batch(paths, out, resume=True)
    assert [outcome.skipped for outcome in again] == [True, False, False, False]
    assert [outcome.error for outcome in again] == [None] * 4
    assert [outcome.result is None for outcome in again] == [True, False, False, False]
    for outcome in again:
        assert same(gpufilter.read(outcome.out), gpufilter.smooth(gpufilter.read(outcome.path)))
    assert all(o.skipped for o in gpufilter.batch(paths, out, resume=True, progress=True))


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
    with pytest.raises(gpufilter.Error, match="cannot create: File exists"):
        gpufilter.batch(paths, paths[0])


# ---- results ------------------------------------------------------------------------------------


def test_tables(image):
    result = gpufilter.hist(image, bins=8, channel="all")
    tables = result.tables
    assert list(tables) == ["bins", "totals"] and len(tables) == 2 and "bins" in repr(tables)
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


def test_short_texts(image):
    """A result is printed in a few words, whatever its size."""
    for result in (gpufilter.hist(image, bins=1000, per_row=True, extract=3), gpufilter.axis_sum(image),
                   gpufilter.dot(image, image), gpufilter.compare(image, image[::-1])):
        text = repr(result)
        assert text.startswith(type(result).__name__ + "(") and len(text) < 700 and "\n" not in text
    assert "counts=<uint64 (1000,)>" in repr(gpufilter.hist(image, bins=1000))
    assert "equal=True, samples=" in repr(gpufilter.compare(image, image))


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
