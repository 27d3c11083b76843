"""Errors: class, status and message."""

import errno
import io
import sys
import warnings

import gpufilter
import numpy as np
import pytest
from gpufilter import _run
from gpufilter._library import in_python

IMAGE = np.zeros((4, 5, 3), np.uint8)
REAL = np.zeros((4, 5), np.float32)


@pytest.mark.parametrize("call, message", [
    (lambda: gpufilter.smooth(IMAGE, radius=128), "radius='128': must be an integer from 0"),
    (lambda: gpufilter.smooth(IMAGE, radius=2.5), "radius='2.5'"),
    (lambda: gpufilter.smooth(IMAGE, radius=object()), "radius: expected a number"),
    (lambda: gpufilter.smooth(IMAGE, gain=float("nan")), "gain='nan'"),
    (lambda: gpufilter.smooth(IMAGE, axis="z"), "axis='z'"),
    (lambda: gpufilter.smooth(IMAGE, axis="x\0"), "NUL"),
    (lambda: gpufilter.smooth(IMAGE, stages="none"), "stages"),
    (lambda: gpufilter.smooth(IMAGE, keep_brightness=True, weight=0), "keep_brightness"),
    (lambda: gpufilter.gaussian(IMAGE, sigma=(0, 0)), "sigma='0,0': must be a number from 0.2"),
    (lambda: gpufilter.gaussian(IMAGE, sigma=120, truncate=9), "sigma='120': the radius 1080, 9 times sigma"),
    (lambda: gpufilter.box(IMAGE, radius=(1, 2.5)), "radius='1,2.5': must be an integer from 1"),
    (lambda: gpufilter.box(IMAGE, edge="constant:256"), "edge='constant:256': the value must be an integer"),
    (lambda: gpufilter.hist(IMAGE, mask=True), "mask: no bins to extract"),
    (lambda: gpufilter.hist(IMAGE, bins=8, extract=8), "extract='8'"),
    (lambda: gpufilter.hist(IMAGE, range=(1, 0)), "range='1,0'"),
    (lambda: gpufilter.hist(IMAGE, channel="a"), "no alpha channel"),
    (lambda: gpufilter.smooth(IMAGE.astype(float)),
     'expected dtype uint8, uint16 or float32 in native byte order, got float64; pass image.astype("float32")'),
    (lambda: gpufilter.smooth(IMAGE.astype("f2")), 'got float16; pass image.astype("float32")'),
    (lambda: gpufilter.smooth(IMAGE.astype(">u2")), 'got >u2; pass image.astype("uint16")'),
    (lambda: gpufilter.smooth(IMAGE.astype(">f4")), 'got >f4; pass image.astype("float32")'),
    (lambda: gpufilter.smooth(IMAGE.astype(">f8")), 'got >f8; pass image.astype("float32")'),
    (lambda: gpufilter.smooth(IMAGE.astype(bool)), 'got bool; pass image.astype("uint8") * 255'),
    (lambda: gpufilter.smooth(IMAGE.astype(int)),
     'got int64; pass image.astype("uint8") for values from 0 to 255, "uint16" for 0 to 65535'),
    (lambda: gpufilter.hist(IMAGE.astype("i2")), "got int16; pass image.astype"),
    (lambda: gpufilter.write("x.png", IMAGE.astype("u4")), "got uint32; pass image.astype"),
    (lambda: gpufilter.smooth(IMAGE.astype(complex)), "got complex128"),
    (lambda: gpufilter.smooth(np.ma.masked_equal(IMAGE, 3)),
     "image: the mask of a masked array is not supported; pass image.filled(VALUE)"),
    (lambda: gpufilter.dot(IMAGE, np.ma.array(IMAGE)), "b: the mask of a masked array"),
    (lambda: gpufilter.smooth(IMAGE, out=np.ma.array(IMAGE)), "out: the mask of a masked array"),
    (lambda: gpufilter.write("x.png", np.ma.array(IMAGE)), "image: the mask of a masked array"),
    (lambda: gpufilter.smooth(IMAGE.tolist()),
     'got list; pass numpy.array(image, "uint8"), "uint16" or "float32"'),
    (lambda: gpufilter.smooth(IMAGE, threads=-1), "threads: expected an integer from 0 to 1024, got -1"),
    (lambda: gpufilter.smooth(IMAGE, threads=1025), "threads: expected an integer from 0 to 1024"),
    (lambda: gpufilter.hist_file("a.png", threads=1.5), "threads: expected an integer"),
    (lambda: gpufilter.batch(["a.png"], "o", threads="x"), "threads: expected an integer"),
    (lambda: gpufilter.batch(["a.png"], "o", name="{step}"), "name: {step}: expected {stem}, {ext}"),
    (lambda: gpufilter.batch(["a.png"], "o", name="{index:x}"), "name: {index:x}: expected {stem}"),
    (lambda: gpufilter.batch(["a.png"], "o", name="../{name}"), "is not the name of a file"),
    (lambda: gpufilter.batch(["a.png", "b.png"], "o", name="c.png"), "a.png and b.png have the same output"),
    (lambda: gpufilter.write(io.BytesIO(), IMAGE), 'format: needed for BytesIO, for example format="png"'),
    (lambda: gpufilter.write("a.png", IMAGE, format="gif"), "format: expected 'png', "),
    (lambda: gpufilter.read(io.StringIO("P5")), "path: expected a file opened with mode 'rb', got StringIO"),
    (lambda: gpufilter.read("a.png", max_pixels=0), "max_pixels: expected an integer from 1, got 0"),
    (lambda: gpufilter.smooth(IMAGE[0, 0]), "image: expected shape (H, W)"),
    (lambda: gpufilter.smooth(IMAGE[:0]), "got (0, 5, 3)"),
    (lambda: gpufilter.smooth(np.zeros((3, 4, 5), np.uint8)), "1 to 4 channels, got (3, 4, 5)"),
    (lambda: gpufilter.smooth(np.zeros((1, 1, 1, 1, 1), np.uint8)), "got (1, 1, 1, 1, 1)"),
    (lambda: gpufilter.smooth([[1]]), "image: expected a NumPy array, a PyTorch tensor"),
    (lambda: gpufilter.smooth(None), "got NoneType"),
    (lambda: gpufilter.dot(IMAGE, None), "b: expected a NumPy array"),
    (lambda: gpufilter.dot(IMAGE, IMAGE[1:]), "a and b differ in shape"),
    (lambda: gpufilter.compare(IMAGE, IMAGE.astype("u2")), "a and b differ in shape, dtype"),
    (lambda: gpufilter.smooth(IMAGE, out=IMAGE), "out: the array overlaps an input"),
    (lambda: gpufilter.smooth(IMAGE[1:], out=IMAGE[:-1]), "out: the array overlaps an input"),
    (lambda: gpufilter.smooth(IMAGE, out=IMAGE[1:]), "out: expected shape (4, 5, 3)"),
    (lambda: gpufilter.smooth(IMAGE, out=IMAGE.astype("u2")), "out: expected shape"),
    (lambda: gpufilter.smooth(IMAGE, out=IMAGE[::-1].copy()[::-1]), "not contiguous"),
    (lambda: gpufilter.smooth(IMAGE, out=np.broadcast_to(IMAGE[0], IMAGE.shape)), "out: "),
    (lambda: gpufilter.smooth(IMAGE, out=3), "out: expected a NumPy array"),
    (lambda: gpufilter.hist(IMAGE, out=IMAGE), "out: hist produces no image without mask=True"),
    (lambda: gpufilter.dot(IMAGE, IMAGE, out=IMAGE), "out: dot produces no image"),
    (lambda: gpufilter.smooth(IMAGE, stream=0), "stream: the arrays are not in the memory"),
    (lambda: gpufilter.smooth(IMAGE, backend="gpu"), "backend 'gpu': expected auto, golden, cpu"),
    (lambda: gpufilter.smooth(IMAGE, backend=["cpu"]), "backend '['cpu']': expected auto"),
    (lambda: gpufilter.smooth(np.stack([IMAGE, IMAGE]), out=np.lib.stride_tricks.as_strided(
        IMAGE.copy(), (2, 4, 5, 3), (0, 15, 3, 1))), "out: all images of the batch are in the same"),
    (lambda: gpufilter.hist_file("a.png", bins=8, extract=3, mask=True), "mask: expected a path"),
    (lambda: gpufilter.hist_file("a.png", bins=8, extract=3, mask="m\0"), "NUL"),
    (lambda: gpufilter.read(3.5), "path: expected a path, got float"),
    (lambda: gpufilter.batch(["x.png"], "o", "solarize"), "'solarize' is not a filter"),
    (lambda: gpufilter.batch(["x.png"], "o", "dot"), "'dot' is not a filter with one input"),
    (lambda: gpufilter.batch(["x.png"], None), "out_dir: smooth needs a directory"),
    (lambda: gpufilter.batch(["x.png"], "o", "hist"), "out_dir: hist produces no image"),
    (lambda: gpufilter.batch(["x.png"], None, "hist", radius=1), "hist has no option radius"),
    (lambda: gpufilter.read("a\0b"), "NUL"),
    (lambda: gpufilter.write("x.png", None), "image: expected a NumPy array"),
    (lambda: gpufilter.encode_png(IMAGE), "image: expected an array in the memory of a CUDA device"),
    (lambda: gpufilter.encode_png(None), "image: expected a NumPy array"),
    (lambda: gpufilter.write("x.png", IMAGE[None]), "expected one image"),
    *[(lambda name=name, value=value: gpufilter.read("a.png", **{name: value}), message)
      for name, message, values in [
          ("page", "page: expected an integer from 1, got ", [0, -1, 1.5, "1", "all", 2**32 - 1, ()]),
          ("depth", "depth: expected '8', '16' or 'f32', got ", [8, "12", "", IMAGE]),
          ("crop", "crop: expected integers x, y, width, height, got ", [
              5, (1, 2, 3), (1, 2, 3, 4, 5), (-1, 0, 1, 1), (0.5, 0, 1, 1), (0, 0, 1, 2**64), "1,2,3,4"]),
          ("autorotate", "autorotate: expected True or False, got ", ["yes", 2, IMAGE]),
      ] for value in values],
    *[(lambda name=name, value=value: gpufilter.write("a.png", IMAGE, **{name: value}), message)
      for name, message, values in [
          ("quality", "quality: expected an integer from 1 to 100, got ", [0, 101, 50.5, "95"]),
          ("compression", "compression: expected 'fast', 'balanced', ", ["none at all", 9, "fast\0"]),
          ("tiff_compression", "tiff_compression: expected 'deflate', ", ["small", b"lzw"]),
          ("depth", "depth: expected '8', '16' or 'f32', got ", ["12"]),
          ("force", "force: expected True or False, got ", ["no"]),
      ] for value in values],
    (lambda: gpufilter.smooth_file("a.png", "b.png", page="2"), "page: expected an integer from 1 or 'all'"),
    (lambda: gpufilter.smooth_file("a.png", "b.png", linear="x" * 999), "linear: expected True or False, got 'xxx"),
    (lambda: gpufilter.smooth_file("a.png", "b.png", strip=None, depth=16), "depth: expected '8'"),
    (lambda: gpufilter.hist_file("a.png", page="2"), "page: expected an integer from 1 or 'all'"),
    (lambda: gpufilter.read("a.png", as_="u8"), "as_: expected 'u16' or 'f32', got 'u8'"),
    (lambda: gpufilter.read("a.png", channels=1), "channels: expected a text such as '1,2,3', got 1"),
    (lambda: gpufilter.hist_file("a.png", depth="16"), "depth: no image is written"),
    (lambda: gpufilter.hist_file("a.png", strip=True), "strip: no image is written"),
    (lambda: gpufilter.compare_file("a.png", "b.png", quality=9), "quality: no image is written"),
    (lambda: gpufilter.batch(["a.png"], "o", quality=0), "quality: expected an integer from 1 to"),
    (lambda: gpufilter.batch(["a.png"], None, "hist", linear=True), "linear: no image is written"),
    (lambda: gpufilter.batch(["a.png"], None, "hist", quality=9), "quality: no image is written"),
])
def test_usage(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gpufilter.UsageError) as caught:
        call()
    error = caught.value
    assert message in str(error) and error.message == str(error) and "\n" not in error.message
    assert error.status == 2 and {ValueError, gpufilter.Error} < set(type(error).__mro__)


def test_read_only(image):
    out = np.empty_like(image)
    out.flags.writeable = False
    with pytest.raises(gpufilter.UsageError, match="read-only"):
        gpufilter.smooth(image, out=out)
    image.flags.writeable = False  # an input may be
    gpufilter.smooth(image)


def test_unknown_keyword(image):
    with pytest.raises(TypeError, match="radus"):
        gpufilter.smooth(image, radus=2)
    with pytest.raises(TypeError):
        gpufilter.smooth(image, 3)  # options are keywords
    for call in (lambda: gpufilter.read("a", linear=True), lambda: gpufilter.write("a", image, strip=True),
                 lambda: gpufilter.hist_file("a", linear=True), lambda: gpufilter.dot_file("a", "b", depth="8"),
                 lambda: gpufilter.compare_file("a", "b", strip=True)):
        with pytest.raises(TypeError, match="unexpected keyword"):
            call()


def test_system_errors(tmp_path):
    with pytest.raises(gpufilter.Error, match="none.png: cannot open: No such file") as caught:
        gpufilter.read(tmp_path / "none.png")
    assert caught.value.status == 1 and not isinstance(caught.value, ValueError)
    with pytest.raises(gpufilter.Error, match="none.png"):
        gpufilter.hist_file(tmp_path / "none.png")


def test_missing_and_existing_files(tmp_path):
    missing = tmp_path / "none.png"
    for call in (lambda: gpufilter.read(missing), lambda: gpufilter.hist_file(missing),
                 lambda: gpufilter.compare_file(missing, missing),
                 lambda: gpufilter.write(tmp_path / "none" / "a.png", IMAGE)):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        assert isinstance(caught.value, gpufilter.Error) and caught.value.status == 1
        assert caught.value.errno == errno.ENOENT and str(caught.value) == caught.value.message
    made = tmp_path / "a.png"
    gpufilter.write(made, IMAGE)
    for call in (lambda: gpufilter.write(made, IMAGE), lambda: gpufilter.smooth_file(made, made)):
        with pytest.raises(FileExistsError, match="already exists; use force=True to replace it") as caught:
            call()
        assert isinstance(caught.value, gpufilter.ExistsError)
    failed = gpufilter.batch([missing, made], tmp_path)
    assert isinstance(failed[0].error, FileNotFoundError) and isinstance(failed[1].error, FileExistsError)
    with pytest.raises(gpufilter.Error) as caught:
        gpufilter.read(tmp_path)
    assert not isinstance(caught.value, OSError)


def test_words_of_python(tmp_path):
    """Remedies name keywords, and work."""
    path = tmp_path / "a.pgm"
    path.write_bytes(b"P5 4 4 255\n" + bytes(16))
    with pytest.raises(gpufilter.Error, match="raise it with max_pixels="):
        gpufilter.read(path, max_pixels=15)
    assert gpufilter.read(path, max_pixels=16).shape == (4, 4)
    with pytest.raises(gpufilter.Error, match="raise it with max_memory="):
        gpufilter.read(path, max_memory=15)
    with pytest.raises(gpufilter.Error, match="choose one from 1 to 1 with page="):
        gpufilter.read(path, page=2)
    for text, want in [
            ("use --force to replace it", "use force=True to replace it"),
            ("--radius '128': must be", "radius='128': must be"),
            ("--keep-brightness: cannot", "keep_brightness: cannot"),
            ("use --tiff-compression deflate or none", 'use tiff_compression="deflate" or none'),
            ("with --as f32 or --as u16, which", 'with as_="f32" or as_="u16", which'),
            ("use --backend cuda", 'use backend="cuda"'),
            ("or declare it with --alpha last", "or declare it with alpha=True"),
            ("remarks; --alpha none filters", "remarks; alpha=False filters"),
            ("a.tif: --page all: the input", 'a.tif: page="all": the input'),
            ("choose a page with --page N", "choose a page with page=N"),
            ("from 1 to 3 with --page", "from 1 to 3 with page="),
            ("no finite sample; give --range LO,HI", "no finite sample; give range=(LO, HI)"),
            ("choose up to 4, such as --channels 1,2,3", 'choose up to 4, such as channels="1,2,3"'),
            ("decoded only with --no-sandbox, for", "decoded only with no_sandbox=True, for"),
            ("rows without a header with --raw", "rows without a header with --raw"),
            ("a--page and --", "a--page and --")]:
        assert in_python(text) == want


@pytest.mark.parametrize("mode, remedy", [
    ("L", "numpy.asarray(image)"), ("RGB", "numpy.asarray(image)"), ("RGBA", "numpy.asarray(image)"),
    ("F", "numpy.asarray(image)"), ("1", 'numpy.asarray(image.convert("L"))'),
    ("P", 'numpy.asarray(image.convert("RGB"))'), ("CMYK", 'numpy.asarray(image.convert("RGB"))'),
    ("PA", 'numpy.asarray(image.convert("RGBA"))'), ("I", 'numpy.asarray(image).astype("uint16")'),
    ("I;16", 'numpy.asarray(image).astype("uint16")')])
def test_pillow_images(mode, remedy):
    image = pytest.importorskip("PIL.Image").new(mode, (4, 3))
    with pytest.raises(gpufilter.UsageError) as caught:
        gpufilter.smooth(image)
    assert str(caught.value).split("; pass ")[1].split(" for ")[0] == remedy
    gpufilter.smooth(eval(remedy, {"numpy": np, "image": image}))


def test_errors_leave_the_engine_usable(image):
    want = gpufilter.smooth(image)
    for _ in range(100):
        with pytest.raises(gpufilter.UsageError):
            gpufilter.smooth(image, radius=1000)
    assert (gpufilter.smooth(image) == want).all()


def test_no_cuda(image):
    try:
        gpufilter.smooth(image, backend="cuda")
    except gpufilter.BackendError as error:
        assert error.status == 3 and isinstance(error, RuntimeError)
    else:
        pytest.skip("this machine has a GPU")


def test_device_array_without_a_device(image):
    """An object with a CUDA interface needs the cuda backend: never another one silently."""
    class Foreign:
        __cuda_array_interface__ = {
            "shape": image.shape, "typestr": "|u1", "data": (image.ctypes.data, False),
            "version": 3}

    with pytest.raises(gpufilter.UsageError, match="needs auto or cuda"):
        gpufilter.smooth(Foreign(), backend="cpu")
    with pytest.raises((gpufilter.BackendError, gpufilter.UsageError)):
        gpufilter.smooth(Foreign(), out=Foreign())
    with pytest.raises((gpufilter.BackendError, gpufilter.UsageError)):
        gpufilter.encode_png(Foreign())


def test_byte_order_of_a_device_array(image):
    class Swapped:
        __cuda_array_interface__ = {
            "shape": image.shape, "typestr": ">u2", "data": (image.ctypes.data, False),
            "version": 3}

    with pytest.raises(gpufilter.UsageError, match="native byte order, got >u2"):
        gpufilter.hist(Swapped())


def test_decode_png_needs_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(gpufilter.UsageError, match="returns tensors of PyTorch: import torch"):
        gpufilter.decode_png(b"x")


def test_clipping_by_depth(tmp_path):
    """Each call that stores f32 samples outside of 0..1 as integers warns; others do not."""
    wide, path, out = np.array([[0, 1, 1.5, -0.25, np.nan, 0.5]], np.float32), tmp_path / "a.npy", tmp_path / "b.png"
    narrow = np.array([[0, 1]], np.float32)

    def warned(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        assert all(w.category is gpufilter.ClippingWarning and w.filename == __file__ for w in found)
        return [str(w.message) for w in found]

    assert warned(lambda: gpufilter.write(path, wide)) == []
    text = "%s: depth: 3 float32 samples outside 0..1 are clipped"
    for depth in "8", "16":
        assert warned(lambda: gpufilter.write(out, wide, depth=depth, force=True)) == [text % out]
        assert warned(lambda: gpufilter.write(io.BytesIO(), wide, depth=depth, format="png")) == [text % "image"]
        assert warned(lambda: gpufilter.read(path, depth=depth)) == [text % path]
        assert warned(lambda: gpufilter.smooth_file(
            path, out, stages="enhance", gain=1, depth=depth, linear=True, force=True)) == [text % path]
        assert warned(lambda: gpufilter.write(out, narrow, depth=depth, force=True)) == []
        assert warned(lambda: gpufilter.write(out, np.uint16([[9]]), depth=depth, force=True)) == []
    assert warned(lambda: gpufilter.read(path)) == []


def test_clipping_is_warned_of_once(monkeypatch, samples, tmp_path):
    """A call that brightens and clips warns once per process, wherever it is; others do not."""
    def warned(call):
        monkeypatch.setattr(_run, "_warned", False)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
            call()
        assert all(w.category is gpufilter.ClippingWarning for w in found)
        assert all(w.filename == __file__ for w in found)
        return [str(w.message) for w in found]

    def dark(channels, dtype=np.uint8):
        image = np.full((6, 7, channels), 20, dtype)
        image[:, :, -1] = 255
        return image

    white, scene = np.full((6, 7, 3), 200, np.uint8), samples / "scene.png"
    text = "smooth: brightness x1.452, and samples are clipped; keep_brightness=True avoids it"
    assert warned(lambda: gpufilter.smooth(white)) == [text]
    assert warned(lambda: gpufilter.smooth(white[None])) == [text]
    assert warned(lambda: gpufilter.smooth(dark(2))) == [text]
    assert warned(lambda: gpufilter.smooth(dark(4), alpha=False)) == [text]
    assert warned(lambda: gpufilter.smooth(white, out=np.empty_like(white))) == [text]
    assert warned(lambda: gpufilter.smooth(white, gain=1.5))[0].endswith(
        "; keep_brightness=True and gain=1 avoid it")
    assert warned(lambda: gpufilter.smooth(white, keep_brightness=True, gain=1.5))[0].endswith(
        "; a lower gain avoids it")
    assert warned(lambda: gpufilter.smooth_file(scene, tmp_path / "a.png", force=True)) == [text]
    assert warned(lambda: gpufilter.batch(
        [scene], tmp_path / "out", force=True)) == [text]
    for call in (lambda: gpufilter.smooth(white, keep_brightness=True),
                 lambda: gpufilter.smooth(white.astype(np.float32)),
                 lambda: gpufilter.smooth(dark(2), alpha=True), lambda: gpufilter.smooth(dark(4)[None]),
                 lambda: gpufilter.normalize(white), lambda: gpufilter.hist(white)):
        assert warned(call) == []
