"""Arrays in the memory of a CUDA device: PyTorch, CuPy and others. Bits equal those of the CPU."""

import threading

import gpufilter
import numpy as np
import pytest
from gpufilter import _run
from support import FORMATS, random_image, same

torch = pytest.importorskip("torch", reason="no PyTorch, which tests need on a GPU")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)
try:
    gpufilter.smooth(torch.zeros((4, 4), dtype=torch.uint8, device="cuda"))
except gpufilter.BackendError as error:
    pytest.skip("no GPU for this library: %s" % error, allow_module_level=True)

SETTINGS = [{}, {"axis": "y", "radius": 5}, {"axis": "xy", "keep_brightness": True}, {"tile": 16},
            {"stages": "blur", "radius": 20}]
formats = pytest.mark.parametrize("dtype, channels", FORMATS)


def to_device(array):
    return torch.from_numpy(np.ascontiguousarray(array)).cuda()


def same_as(tensor, array):
    """Return whether a tensor on a device has these bits."""
    assert tensor.is_cuda
    return same(tensor.cpu().numpy(), np.ascontiguousarray(array))


# ---- pixels and results -------------------------------------------------------------------------


@formats
def test_images(rng, dtype, channels):
    for shape in ((23, 37), (64, 64), (1, 1), (5, 1000), (300, 3)):
        image = random_image(rng, dtype, channels, shape)
        tensor = to_device(image)
        for keywords in SETTINGS:
            made = gpufilter.smooth(tensor, **keywords)
            assert same_as(made, gpufilter.smooth(image, backend="cpu", **keywords)), keywords
        assert same_as(gpufilter.normalize(tensor), gpufilter.normalize(image, backend="cpu"))
        assert same_as(tensor, image)


@formats
def test_measurements(rng, dtype, channels):
    a, b = (random_image(rng, dtype, channels) for _ in range(2))
    b[:9] = a[:9]
    x, y = to_device(a), to_device(b)
    for keywords in ({}, {"bins": 8, "extract": 3, "mask": True}, {"bins": 9, "per_row": True},
                     {"bins": 5, "extract": "all", "channel": "all", "mask": True}):
        got, want = gpufilter.hist(x, **keywords), gpufilter.hist(a, **keywords)
        assert same(got.counts, want.counts) and got.text == want.text
        if "extract" in keywords:
            assert same(got.extracted, want.extracted) and same_as(got.image, want.image)
        if "per_row" in keywords:
            assert same(got.row_counts, want.row_counts)
    for axis in ("x", "y"):
        got, want = gpufilter.axis_sum(x, axis=axis), gpufilter.axis_sum(a, axis=axis)
        assert same(got.sums, want.sums) and same(got.totals, want.totals)
    got, want = gpufilter.dot(x, y), gpufilter.dot(a, b)
    assert (got.ab, got.aa, got.bb, got.psnr) == (want.ab, want.aa, want.bb, want.psnr)
    got, want = gpufilter.compare(x, y, diff=True), gpufilter.compare(a, b, diff=True)
    assert (got.differing, got.largest, got.first) == (want.differing, want.largest, want.first)
    assert same_as(got.image, want.image)
    assert gpufilter.compare(x, x.clone())


@formats
def test_pipelines(rng, dtype, channels):
    image = random_image(rng, dtype, channels, (40, 53))
    made = gpufilter.pipeline("median ! write a ! compare b ! hist bins=8 ! gaussian sigma=2")
    got, want = made(to_device(image), to_device(image)), made(image, image, backend="cpu")
    assert same_as(got.image, want.image) and same_as(got.written["a"], want.written["a"])
    assert got.results[0].differing == want.results[0].differing
    assert same(got.results[1].counts, want.results[1].counts)
    one = gpufilter.pipeline("gaussian sigma=3")
    assert same_as(one(to_device(image)), one(image, backend="cpu"))


@formats
def test_layouts(rng, dtype, channels):
    image = random_image(rng, dtype, channels, (40, 53))
    tensor = to_device(image)
    for part in (lambda a: a[3:-2, 5:-4], lambda a: a[::3], lambda a: a[7:8, 1:],
                 lambda a: a[:, 3:4], lambda a: a[:, ::2], lambda a: a[:, 1:, :1]):
        made = gpufilter.smooth(part(tensor), axis="xy")
        assert same_as(made, gpufilter.smooth(part(image), axis="xy", backend="cpu"))
        assert gpufilter.hist(part(tensor)).counts.sum() == part(image)[..., 0].size
    assert same_as(gpufilter.smooth(tensor.transpose(0, 1)),
                   gpufilter.smooth(image.transpose(1, 0, 2), backend="cpu"))
    channel_first = tensor.permute(2, 0, 1).contiguous()
    assert same_as(gpufilter.smooth(channel_first.permute(1, 2, 0)), gpufilter.smooth(image))


@pytest.mark.parametrize("width", [1, 15, 16, 17, 63, 65, 255, 257])
def test_unaligned_widths(rng, width):
    for dtype in ("u1", "u2", "f4"):
        image = random_image(rng, dtype, 1, (33, width))[:, :, 0]
        tensor = to_device(image)
        for axis in ("x", "y", "xy"):
            assert same_as(gpufilter.smooth(tensor, axis=axis),
                           gpufilter.smooth(image, axis=axis, backend="cpu"))
        if width > 1:
            assert same_as(gpufilter.smooth(tensor[:, 1:]), gpufilter.smooth(image[:, 1:]))


@formats
def test_batches(rng, dtype, channels):
    images = np.stack([random_image(rng, dtype, channels, (20, 32)) for _ in range(9)])
    tensor = to_device(images)
    for part in (lambda a: a, lambda a: a[::2], lambda a: a[:, 2:, 3:], lambda a: a[:1]):
        for axis in ("x", "y", "xy"):
            made = gpufilter.smooth(part(tensor), axis=axis)
            assert same_as(made, gpufilter.smooth(part(images), axis=axis, backend="cpu"))
    out = torch.empty((9, 25, 40, channels), dtype=tensor.dtype, device="cuda")[:, 1:21, 2:34]
    assert gpufilter.smooth(tensor, out=out) is out
    assert same_as(out.contiguous(), gpufilter.smooth(images, backend="cpu"))
    for got, want in zip(gpufilter.hist(tensor, bins=8, extract=3, mask=True),
                         gpufilter.hist(images, bins=8, extract=3, mask=True)):
        assert same(got.counts, want.counts) and same_as(got.image, want.image)
    sums = gpufilter.axis_sum(tensor)
    assert all(same(got.sums, want.sums) for got, want in zip(sums, gpufilter.axis_sum(images)))
    assert [d.ab for d in gpufilter.dot(tensor, tensor.flip(0))] == [
        d.ab for d in gpufilter.dot(images, images[::-1])]


@formats
def test_resize(rng, dtype, channels):
    """Outputs of other sizes: of images, of packed batches, and of parts, in and out."""
    images = np.stack([random_image(rng, dtype, channels, (41, 67)) for _ in range(70)])
    tensor = to_device(images)
    for keywords in ({"width": 16}, {"exact": [224, 224]}, {"exact": [67, 9]}, {"exact": [5, 41]},
                     {"scale": 3.1, "kernel": "lanczos3"}, {"scale": 1}, {"exact": [1, 1]},
                     {"cover": "30x30", "kernel": "box"}, {"fit": [20, 90], "no_antialias": True}):
        for part in (lambda a: a[3], lambda a: a, lambda a: a[:9, 2:, 3:], lambda a: a[::3]):
            made = gpufilter.resize(part(tensor), **keywords)
            assert same_as(made, gpufilter.resize(part(images), backend="cpu", **keywords)), keywords
    want = gpufilter.resize(images, width=16, backend="cpu")
    out = torch.empty((70, 30, 40, channels), dtype=tensor.dtype, device="cuda")[:, 1:11, 2:18]
    assert gpufilter.resize(tensor, width=16, out=out) is out
    assert same_as(out.contiguous(), want)
    with pytest.raises(gpufilter.UsageError, match="out: expected shape"):
        gpufilter.resize(tensor, width=16, out=torch.empty_like(tensor))
    sizes = gpufilter.pipeline("resize width=16 ! write a ! input ! resize scale=0.3 ! write b ! hist bins=4")
    got, made = sizes(tensor), sizes(images, backend="cpu")
    assert all(same_as(got.written[name], made.written[name]) for name in "ab")
    assert all(same(a.counts, b.counts) for a, b in zip(got.results[0], made.results[0]))


# ---- arguments ----------------------------------------------------------------------------------


def test_out(image):
    tensor = to_device(image)
    larger = torch.full((30, 40, 3), 7, dtype=torch.uint8, device="cuda")
    out = larger[3:27, 5:36]
    assert gpufilter.smooth(tensor, out=out) is out
    assert same_as(out.contiguous(), gpufilter.smooth(image))
    out.fill_(7)
    assert bool((larger == 7).all())


@pytest.mark.parametrize("call", [
    lambda t, a: gpufilter.smooth(t, out=t),
    lambda t, a: gpufilter.smooth(t[1:], out=t[:-1]),
    lambda t, a: gpufilter.smooth(t, out=t[1:]),
    lambda t, a: gpufilter.smooth(t, out=t.float()),
    lambda t, a: gpufilter.smooth(t, out=t.cpu()),
    lambda t, a: gpufilter.smooth(t, out=a),
    lambda t, a: gpufilter.smooth(a, out=t),
    lambda t, a: gpufilter.dot(t, t.cpu()),
    lambda t, a: gpufilter.dot(t.cpu(), t),
    lambda t, a: gpufilter.smooth(t.double()),
    lambda t, a: gpufilter.smooth(t.half()),
    lambda t, a: gpufilter.smooth(t, backend="cpu"),
    lambda t, a: gpufilter.smooth(t, stream="0"),
    lambda t, a: gpufilter.smooth(t, radius=1000),
    lambda t, a: gpufilter.hist(t, mask=True),
])
def test_usage(image, call):
    with pytest.raises(gpufilter.UsageError):
        call(to_device(image), image)


def test_a_call_without_memory_frees_other_plans(image, monkeypatch):
    tensor, run = to_device(image), _run.Plan.run
    failures = [gpufilter.Error("cuda: out of memory")]

    def fail_once(*arguments):
        if failures:
            raise failures.pop()
        return run(*arguments)

    gpufilter.smooth(tensor, radius=7)
    monkeypatch.setattr(_run.Plan, "run", fail_once)
    assert same_as(gpufilter.smooth(tensor), gpufilter.smooth(image))
    assert [key[2][1] for key in _run._local.plans] == [2, 2] and not failures


def test_parameters_and_gradients(rng):
    image = random_image(rng, "f4", 1)[:, :, 0]
    parameter = torch.nn.Parameter(to_device(image))
    assert same_as(gpufilter.smooth(parameter), gpufilter.smooth(image))
    factor = torch.ones_like(parameter, requires_grad=True)
    out = torch.zeros_like(factor, requires_grad=False)
    product = (factor * out).sum()
    gpufilter.smooth(parameter.detach(), out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    with torch.inference_mode():
        made = gpufilter.smooth(parameter.detach(), out=torch.empty_like(out))
    assert same_as(made, gpufilter.smooth(image))


# ---- streams ------------------------------------------------------------------------------------


def slow(stream, tensor, value):
    """Queue work that fills a tensor late."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        tensor.copy_(value, non_blocking=True)


@pytest.mark.parametrize("how", ["current", "object", "handle"])
def test_streams(rng, how):
    """The work waits for earlier work of its stream, and for nothing else."""
    image = random_image(rng, "u1", 3, (200, 300))
    stream, ready = torch.cuda.Stream(), to_device(image)
    torch.cuda.synchronize()
    for filter_, keywords in ((gpufilter.smooth, {}), (gpufilter.smooth, {"axis": "xy"}),
                              (gpufilter.normalize, {})):
        tensor = torch.zeros_like(ready)
        torch.cuda.synchronize()
        slow(stream, tensor, ready)
        if how == "current":
            with torch.cuda.stream(stream):
                made = filter_(tensor, **keywords)
        else:
            given = stream if how == "object" else stream.cuda_stream
            made = filter_(tensor, stream=given, **keywords)
        stream.synchronize()
        assert same_as(made, filter_(image, **keywords))
    tensor.zero_()
    torch.cuda.synchronize()
    slow(stream, tensor, ready)
    counts = gpufilter.hist(tensor, stream=stream).counts
    assert np.array_equal(counts, gpufilter.hist(image).counts)


def test_calls_do_not_wait(rng):
    tensor = to_device(random_image(rng, "u1", 3))
    out = torch.empty_like(tensor)
    gpufilter.smooth(tensor, out=out)
    torch.cuda.synchronize()
    torch.cuda._sleep(500_000_000)
    ended = torch.cuda.Event()
    gpufilter.smooth(tensor, out=out)
    ended.record()
    assert not ended.query()
    torch.cuda.synchronize()


def test_memory_of_temporary_tensors(rng):
    """Outputs and copies return to the allocator while work is queued: none may be corrupted."""
    image = random_image(rng, "f4", 3, (128, 128))
    want = gpufilter.smooth(gpufilter.smooth(image), axis="y")
    tensor = to_device(image)
    for _ in range(200):
        made = gpufilter.smooth(gpufilter.smooth(tensor), axis="y")
        copied = gpufilter.smooth(tensor.permute(1, 0, 2))
    assert same_as(made, want)
    assert same_as(copied, gpufilter.smooth(image.transpose(1, 0, 2)))


def test_threads(rng):
    images = [random_image(rng, "u1", 3, (50, 60 + i)) for i in range(6)]
    wants = [gpufilter.smooth(image, axis="xy") for image in images]
    failures = []

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in np.random.default_rng(seed).permutation(len(images)):
                if not same_as(gpufilter.smooth(to_device(images[i]), axis="xy"), wants[i]):
                    failures.append(i)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---- graphs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("filter_, keywords", [
    (gpufilter.smooth, {}), (gpufilter.smooth, {"axis": "xy", "radius": 4}),
    (gpufilter.normalize, {}), (gpufilter.resize, {"exact": [100, 51]}),
])
def test_graph(rng, filter_, keywords):
    images = [random_image(rng, "u1", 3, (64, 80)) for _ in range(3)]
    tensor, stream = to_device(images[0]), torch.cuda.Stream()
    out = torch.empty_like(filter_(tensor, **keywords))
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):  # the first run on a stream allocates
        filter_(tensor, out=out, **keywords)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        filter_(tensor, out=out, **keywords)
    for width in range(1, 80):  # evict the plan: the graph must keep its memory
        gpufilter.smooth(tensor[:, :width])
    for image in images:
        tensor.copy_(to_device(image))
        graph.replay()
        torch.cuda.synchronize()
        assert same_as(out, filter_(image, **keywords))


# ---- several devices ----------------------------------------------------------------------------


def test_second_device(image):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    tensor = to_device(image).to("cuda:1")
    made = gpufilter.smooth(tensor)
    assert made.device.index == 1 and same_as(made, gpufilter.smooth(image))
    assert torch.cuda.current_device() == 0
    with pytest.raises(gpufilter.UsageError):
        gpufilter.smooth(tensor, out=tensor.to("cuda:0"))
    with pytest.raises(gpufilter.UsageError):
        gpufilter.dot(tensor, tensor.to("cuda:0"))


# ---- other packages -----------------------------------------------------------------------------


@formats
def test_cupy(rng, dtype, channels):
    cupy = pytest.importorskip("cupy")
    image = random_image(rng, dtype, channels)
    array = cupy.asarray(image)
    made = gpufilter.smooth(array, axis="xy")
    assert isinstance(made, cupy.ndarray) and same(made.get(), gpufilter.smooth(image, axis="xy"))
    out = cupy.empty((30, 40, channels), dtype)[2:25, 1:38]
    assert gpufilter.smooth(array, out=out) is out
    assert same(cupy.ascontiguousarray(out).get(), gpufilter.smooth(image))
    for part in (lambda a: a[::-1], lambda a: a.transpose(1, 0, 2)):
        assert same(gpufilter.smooth(part(array)).get(), gpufilter.smooth(part(image)))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        inside = gpufilter.smooth(array)
    outside = gpufilter.smooth(array, stream=stream)
    stream.synchronize()
    assert same(inside.get(), gpufilter.smooth(image)) and same(outside.get(), inside.get())
    small = gpufilter.resize(cupy.stack([array, array]), width=9)
    assert same(small[1].get(), gpufilter.resize(image, width=9))
    mask = gpufilter.hist(array, bins=8, extract=3, mask=True).image
    assert same(mask.get(), gpufilter.hist(image, bins=8, extract=3, mask=True).image)
    with pytest.raises(gpufilter.UsageError, match="different kinds"):
        gpufilter.dot(array, to_device(image))


class Interface:
    """An array of an unknown package, with __cuda_array_interface__."""

    def __init__(self, tensor):
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


class Dlpack:
    """An array of an unknown package, with DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("kind", [Interface, Dlpack])
def test_unknown_packages(image, kind):
    tensor = to_device(image)
    result = torch.empty_like(tensor)
    out = kind(result)
    torch.cuda.synchronize()
    slow(torch.cuda.default_stream(), result, torch.zeros_like(result))
    assert gpufilter.smooth(kind(tensor), out=out) is out
    assert torch.cuda.default_stream().query()  # the work has ended
    assert same_as(result, gpufilter.smooth(image))
    assert np.array_equal(gpufilter.hist(kind(tensor)).counts, gpufilter.hist(image).counts)
    small = torch.empty((10, 9, 3), dtype=torch.uint8, device="cuda")
    gpufilter.resize(kind(tensor), exact=[9, 10], out=kind(small))
    assert same_as(small, gpufilter.resize(image, exact=[9, 10]))
    part = tensor[2:-2, 3:-5]
    assert gpufilter.axis_sum(kind(part)).sums.shape == part.shape[::2]
    with pytest.raises(gpufilter.UsageError, match="out: pass an output of shape"):
        gpufilter.smooth(kind(tensor))
    with pytest.raises(gpufilter.UsageError, match="not contiguous"):
        gpufilter.hist(kind(tensor[:, ::2]))


# ---- PNG ----------------------------------------------------------------------------------------


def file_of(image, path, alpha=None):
    gpufilter.write(path, image, alpha=alpha, force=True)
    return path.read_bytes()


@pytest.mark.parametrize("dtype, channels", [f for f in FORMATS if f[0] != "f4"])
def test_encode_png(rng, tmp_path, dtype, channels):
    path, alpha = tmp_path / "cpu.png", channels == 2 or None  # PNG has no data as channel 2
    image = random_image(rng, dtype, channels, (300, 411))
    image[50:90] = image[50]
    image[:, 20:60] = 7
    tensor = to_device(image)
    for part in (lambda a: a, lambda a: a[1:-3, 2:-5], lambda a: a[:, ::2], lambda a: a[:1, :1],
                 lambda a: a[60:65]):
        assert gpufilter.encode_png(part(tensor), alpha=alpha) == file_of(part(image), path, alpha)
    images = np.stack([image, image[::-1], image[:, ::-1]])
    want = [file_of(one, path, alpha) for one in images]
    assert gpufilter.encode_png(to_device(images), alpha=alpha) == want
    result = torch.zeros_like(tensor)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    slow(stream, result, tensor)
    assert gpufilter.encode_png(result, alpha=alpha, stream=stream) == want[0]
    assert gpufilter.encode_png(Interface(tensor), alpha=alpha) == want[0]


def test_encode_png_errors(image):
    with pytest.raises(gpufilter.UsageError, match="encode_png: PNG cannot store f32"):
        gpufilter.encode_png(to_device(image).float())
    with pytest.raises(gpufilter.UsageError, match="channel 2 only as alpha.*alpha=True"):
        gpufilter.encode_png(to_device(image)[..., :2])
    with pytest.raises(gpufilter.UsageError, match="memory of a CUDA device"):
        gpufilter.encode_png(torch.zeros((4, 5), dtype=torch.uint8))


@pytest.mark.parametrize("dtype, channels", [f for f in FORMATS if f[0] != "f4"])
def test_decode_png(rng, tmp_path, dtype, channels):
    path, alpha = tmp_path / "cpu.png", channels == 2 or None
    images = [random_image(rng, dtype, channels, shape) for shape in ((300, 411), (1, 1), (700, 90))]
    images = [image[..., 0] if channels == 1 else image for image in images]
    files = [file_of(image, path, alpha) for image in images]
    assert all(same_as(got, want) for got, want in zip(gpufilter.decode_png(files), images))
    with torch.cuda.stream(torch.cuda.Stream()):
        made = gpufilter.decode_png(bytearray(files[0]), device=torch.device("cuda", 0))
    assert same_as(made, images[0]) and gpufilter.decode_png([]) == []
    assert gpufilter.encode_png(made, alpha=alpha) == files[0]


def test_decode_png_errors(image, tmp_path):
    file = file_of(image, tmp_path / "cpu.png")
    broken = bytearray(file)
    broken[60] ^= 255
    with pytest.raises(gpufilter.Error, match="PNG: the PNG is damaged"):
        gpufilter.decode_png(broken)
    with pytest.raises(gpufilter.Error, match="file 1: PNG: the PNG is damaged"):
        gpufilter.decode_png([file, broken])
    with pytest.raises(gpufilter.UsageError, match="got int"):
        gpufilter.decode_png([3])
    with pytest.raises(gpufilter.UsageError, match="expected a CUDA device, got cpu"):
        gpufilter.decode_png(file, device="cpu")
