"""Tensors of PyTorch in host memory."""

import gpufilter
import pytest
from support import same, smoothed

torch = pytest.importorskip("torch", reason="no PyTorch")


def test_tensors_of_the_cpu(image):
    tensor = torch.from_numpy(image)
    made = gpufilter.smooth(tensor, backend="cpu")
    assert isinstance(made, torch.Tensor) and same(made.numpy(), gpufilter.smooth(image))
    out = torch.empty_like(tensor)
    assert gpufilter.smooth(tensor, out=out) is out and same(out.numpy(), made.numpy())
    mask = gpufilter.hist(tensor, bins=8, extract=3, mask=True).image
    assert isinstance(mask, torch.Tensor)
    other = torch.empty_like(mask)
    assert gpufilter.hist(tensor, bins=8, extract=3, mask=True, out=other).image is other
    assert torch.equal(mask, other)
    assert [r.equal for r in gpufilter.compare(torch.stack([tensor, tensor]),
                                               torch.stack([tensor, made]))] == [True, False]


def test_resize_on_the_cpu(image):
    tensor = torch.from_numpy(image)
    assert same(gpufilter.resize(tensor, width=9).numpy(), gpufilter.resize(image, width=9))
    out = torch.empty((2, 7, 9, 3), dtype=torch.uint8)
    assert gpufilter.resize(torch.stack([tensor, tensor]), exact=[9, 7], out=out) is out
    assert same(out[1].numpy(), gpufilter.resize(image, exact=[9, 7]))


def test_pipelines_of_the_cpu(image):
    tensor, out = torch.from_numpy(image), torch.empty(image.shape, dtype=torch.uint8)
    made = gpufilter.pipeline("median ! write a ! hist bins=8 extract=3 mask=m ! box")(tensor, out=out)
    assert made.image is out and same(out.numpy(), gpufilter.box(gpufilter.median(image)))
    assert same(made.written["a"].numpy(), gpufilter.median(image))
    assert isinstance(made.results[0].image, torch.Tensor)
    assert same(gpufilter.pipeline("median")(tensor).numpy(), gpufilter.median(image))


def test_values(image):
    tensor, radius = torch.from_numpy(image), torch.tensor(2)
    assert same(gpufilter.smooth(tensor, radius=radius).numpy(), smoothed(image, radius=2))
    radius.fill_(5)
    assert same(gpufilter.smooth(tensor, radius=radius).numpy(), smoothed(image, radius=5))
    assert same(gpufilter.smooth(image, gain=torch.tensor(1.5)), smoothed(image, gain=1.5))


def test_out_has_another_version():
    factor = torch.ones((4, 5), requires_grad=True)
    out = torch.zeros((4, 5))
    product = (factor * out).sum()
    gpufilter.smooth(torch.ones((4, 5)), out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_tensors_that_are_no_arrays():
    for tensor in (torch.zeros((4, 5), dtype=torch.bfloat16), torch.zeros((4, 5)).to_sparse()):
        with pytest.raises(gpufilter.UsageError, match="not an array of NumPy"):
            gpufilter.smooth(tensor)
