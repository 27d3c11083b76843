"""Compare resize of random u8 images with Pillow: tests/system/pillow.py IMAGES SEED. Images are grey or RGB, 1 to 4000
pixels wide or high, and become larger or smaller, with every kernel. --cover is compared with ImageOps.fit."""

import sys

import numpy as np
import PIL
from PIL import Image, ImageOps

import gpufilter

KERNELS = {"box": Image.BOX, "bilinear": Image.BILINEAR, "hamming": Image.HAMMING, "bicubic": Image.BICUBIC,
           "lanczos3": Image.LANCZOS}
Y_FIRST = int(PIL.__version__.split(".")[0]) >= 13  # if the height loses more than twice as many samples
SAMPLES = 1500000  # most samples of an image


def random_side(rng):
    return int(rng.integers(1, rng.choice([4, 20, 100, 500, 4001])))


def random_sizes(rng):
    """Return the size of an image, and a new one."""
    while True:
        w, h, W, H = (random_side(rng) for _ in range(4))
        if rng.random() < 0.1:
            W, H = (w, H) if rng.random() < 0.5 else (W, h)
        if max(w * h, W * h, w * H, W * H) * 3 < SAMPLES:
            return w, h, W, H


def random_pixels(rng, shape):
    content = rng.integers(4)
    if content == 0:
        return rng.choice(np.array([0, 255], np.uint8), shape)
    if content == 1:
        return np.full(shape, rng.integers(256), np.uint8)
    return rng.integers(0, 256, shape, dtype=np.uint8)


def main(images, seed):
    rng = np.random.default_rng([seed, 8])
    samples = failed = skipped = 0
    for number in range(images):
        w, h, W, H = random_sizes(rng)
        if not Y_FIRST and h - H > 0 and h - H > 2 * (w - W):
            skipped += 1
            continue
        x = random_pixels(rng, (h, w) if rng.random() < 0.5 else (h, w, 3))
        kernel = list(KERNELS)[number % 5]
        if rng.random() < 0.2:
            want = ImageOps.fit(Image.fromarray(x), (W, H), KERNELS[kernel])
            got = gpufilter.resize(x, cover="%dx%d" % (W, H), kernel=kernel)
        else:
            want = Image.fromarray(x).resize((W, H), KERNELS[kernel])
            got = gpufilter.resize(x, exact="%dx%d" % (W, H), kernel=kernel)
        want = np.asarray(want)
        samples += want.size
        if want.shape != got.shape or (want != got).any():
            failed += 1
            print("FAIL image %d: %r to %d x %d, %s" % (number, x.shape, W, H, kernel))
    print("Pillow %s: %d samples compared" % (PIL.__version__, samples))
    print("%d passed, %d failed, %d skipped" % (images - failed - skipped, failed, skipped))
    return failed > 0


sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
