"""Expected results: calls of the second implementation with the keywords of gpufilter."""

import numpy as np
from arithmetic import NAMES
from filters import normalize, smooth

NAMES[2][-1] = "data"  # of arrays, only the last of four channels is alpha

FORMATS = [(dtype, channels) for dtype in ("u1", "u2", "f4") for channels in (1, 2, 3, 4)]


def random_image(rng, dtype, channels, shape=(23, 37)):
    unit = rng.random(shape + (channels,))
    top = {"u1": 255, "u2": 65535, "f4": 1}[dtype]
    return (unit * top).astype(dtype)


def cube(image):
    return image.reshape(image.shape[:2] + (-1,))


def smoothed(image, gain=None, radius=2, weight=0.6, stages="enhance,blur,smooth", axis="x", tile=0,
             keep_brightness=False):
    gain = (1 if keep_brightness else 1.1) if gain is None else gain
    made = smooth.smooth(cube(image), np.float32(gain), radius, np.float32(weight), stages, axis,
                         tile, keep_brightness)
    return made.reshape(image.shape)


def normalized(image):
    return normalize.normalize(cube(image)).reshape(image.shape)


def same(got, want):
    """Return whether arrays have the same shape, type and bits."""
    return got.shape == want.shape and got.dtype == want.dtype and got.tobytes() == want.tobytes()


def same_tables(tables, want):
    """Return whether the tables of a result have these values."""
    assert sorted(tables) == sorted(want)
    for name, columns in want.items():
        assert list(tables[name]) == list(columns)
        for column, values in columns.items():
            np.testing.assert_array_equal(tables[name][column], values, "%s.%s" % (name, column))
    return True
