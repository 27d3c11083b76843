"""Random settings of filters with a window, and a comparison with SciPy where it is installed."""

import numpy as np

from arithmetic import F32, colours, top

try:
    from scipy import ndimage
except ImportError:
    ndimage = None


def random_edge(rng, image):
    """Return a mode of --edge, and the options that select it."""
    edge = str(rng.choice(["replicate", "reflect", "mirror", "constant"]))
    if edge == "constant":
        value = rng.choice([0, 1, top(image), int(rng.integers(0, top(image) + 1))])
        edge += ":%d" % value if image.dtype != F32 or rng.random() < 0.5 else ":-2.5"
    return edge, [] if edge == "mirror" and rng.random() < 0.5 else ["--edge", edge]


def random_sigma(rng):
    """Return the sigma of x and y, and the options that select them."""
    texts = [str(rng.choice(["0.2", "0.7", "1", "2", "5", "%.3g" % rng.uniform(0.3, 9)])) for _ in range(2)]
    if rng.random() < 0.5:
        texts[1] = texts[0]
    elif rng.random() < 0.4:
        texts[rng.integers(2)] = "0"
    options = ["--sigma", ",".join(texts) if texts[0] != texts[1] else texts[0]]
    return [float(text) for text in texts], [] if texts == ["1", "1"] else options


def scipy_agrees(image, made, edge, sigma=None, truncate=None, size=None):
    """Return whether the integers of a blur are within 0.6 of the result of SciPy in binary64; True without SciPy. SciPy
    mirrors an image of one pixel in its own way."""
    if not ndimage or image.dtype == F32 or 1 in image.shape[:2]:
        return True
    name, _, value = edge.partition(":")
    how = {"mode": {"replicate": "nearest"}.get(name, name), "cval": float(value or 0)}
    for c in range(colours(image)):
        plane = image[:, :, c].astype(float)
        want = (ndimage.uniform_filter(plane, size[::-1], **how) if size else
                ndimage.gaussian_filter(plane, sigma[::-1], truncate=truncate, **how))
        if np.abs(want - made[:, :, c]).max() > 0.6:
            return False
    return True
