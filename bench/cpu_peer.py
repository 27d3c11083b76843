"""OpenCV peer of bench-cpu: reads images and operations from standard input and prints times.

    image INDEX TYPE HEIGHT WIDTH CHANNELS BYTES\\n, then the bytes    -> ok
    time OPERATION\\n                                                 -> milliseconds, one thread
"""
import sys
import time

import cv2
import numpy as np

cv2.setNumThreads(1)
TYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32}
# The default chain of smooth without its roundings.
TAPS = np.array([[3, 6, 11, 11, 11, 8, 5]], np.float32) * 33 / 1250
TAPS_Y = np.ascontiguousarray(TAPS.T)
ONE = np.ones((1, 1), np.float32)
images = [None, None]
means = None
result = gray = None


def top(image):
    return {np.uint8: 256, np.uint16: 65536, np.float32: 1}[image.dtype.type]


def hist(image, bins, channels):
    for c in channels:
        cv2.calcHist([image], [c], None, [bins], [0, top(image)])


def luma(image):
    """Convert to grey, reusing the memory of the warm-up round."""
    global gray
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY, gray)
    return gray


def output_for(image):
    """Return an output image, reused across rounds, as our outputs are."""
    global result
    if result is None or result.shape != image.shape or result.dtype != image.dtype:
        result = np.zeros_like(image)
    return result


def gaussian(image, sigma):
    cv2.GaussianBlur(image, (0, 0), sigma, output_for(image))


def box(image, radius):
    cv2.blur(image, (2 * radius + 1, 2 * radius + 1), output_for(image))


def median(image, radius):
    cv2.medianBlur(image, 2 * radius + 1, output_for(image))


def erode(image, radius):
    cv2.erode(image, np.ones((2 * radius + 1, 2 * radius + 1), np.uint8), output_for(image))


def sharpen(image):
    """Add the difference to the blurred image."""
    global gray
    gray = cv2.GaussianBlur(image, (0, 0), 1, gray)
    cv2.addWeighted(image, 2, gray, -1, 0, output_for(image))


def channels(image):
    return range(1 if image.ndim == 2 else image.shape[2])


OPERATIONS = {
    "filter2D": lambda a, b: cv2.filter2D(a, -1, TAPS, output_for(a), borderType=cv2.BORDER_REPLICATE),
    # Faster than filter2D for u16, slower for the other types.
    "sepFilter2D-x": lambda a, b: cv2.sepFilter2D(a, -1, TAPS, ONE, output_for(a), borderType=cv2.BORDER_REPLICATE),
    "filter2D-y": lambda a, b: cv2.filter2D(a, -1, TAPS_Y, output_for(a), borderType=cv2.BORDER_REPLICATE),
    "sepFilter2D": lambda a, b: cv2.sepFilter2D(a, -1, TAPS, TAPS_Y, output_for(a), borderType=cv2.BORDER_REPLICATE),
    "GaussianBlur-1": lambda a, b: gaussian(a, 1),
    "GaussianBlur-2": lambda a, b: gaussian(a, 2),
    "GaussianBlur-5": lambda a, b: gaussian(a, 5),
    "blur-2": lambda a, b: box(a, 2),
    "blur-20": lambda a, b: box(a, 20),
    "blur-200": lambda a, b: box(a, 200),
    "sharpen": lambda a, b: sharpen(a),
    "medianBlur-1": lambda a, b: median(a, 1),
    "medianBlur-2": lambda a, b: median(a, 2),
    "medianBlur-7": lambda a, b: median(a, 7),
    "medianBlur-25": lambda a, b: median(a, 25),
    "erode-1": lambda a, b: erode(a, 1),
    "erode-7": lambda a, b: erode(a, 7),
    "reduce-x": lambda a, b: cv2.reduce(a, 1, cv2.REDUCE_SUM, dtype=cv2.CV_32S if a.dtype == np.uint8 else cv2.CV_64F),
    "reduce-y": lambda a, b: cv2.reduce(a, 0, cv2.REDUCE_SUM, dtype=cv2.CV_32S if a.dtype == np.uint8 else cv2.CV_64F),
    "calcHist-256": lambda a, b: hist(a, 256, channels(a)),
    "calcHist-8": lambda a, b: hist(a, 8, channels(a)),
    "gray+calcHist-256": lambda a, b: hist(luma(a), 256, [0]),
    "gray+calcHist-8": lambda a, b: hist(luma(a), 8, [0]),
    "3 norms": lambda a, b: (cv2.norm(a, cv2.NORM_L2SQR), cv2.norm(b, cv2.NORM_L2SQR), cv2.norm(a, b, cv2.NORM_L2SQR)),
    "norm-inf": lambda a, b: cv2.norm(a, b, cv2.NORM_INF),
    # Computing the means is not timed, as in our time.
    "multiply": lambda a, b: cv2.multiply(a, means, output_for(a)),
}


def answer(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


answer(cv2.__version__)
for line in iter(sys.stdin.buffer.readline, b""):
    words = line.decode().rstrip("\n").split(" ", 1)
    if words[0] == "image":
        index, kind, height, width, samples, size = words[1].split()
        shape = (int(height), int(width)) + ((int(samples),) if int(samples) > 1 else ())
        images[int(index)] = None
        image = np.empty(shape, TYPES[kind])
        view = memoryview(image).cast("B")
        offset = 0
        while offset < int(size):
            offset += sys.stdin.buffer.readinto(view[offset:])
        images[int(index)] = image
        result = gray = None
        means = tuple(128 / max(m, 1) for m in cv2.mean(image))
        answer("ok")
    else:
        try:
            start = time.perf_counter()
            OPERATIONS[words[1]](*images)
            answer("%.6f" % ((time.perf_counter() - start) * 1000))
        except cv2.error as error:
            answer("-1 " + str(error).replace("\n", " "))
