"""OpenCV's side of bench-cpu: takes images and the names of works on standard input, answers times.

    image INDEX TYPE HEIGHT WIDTH CHANNELS BYTES\\n, then the bytes    -> ok
    time WORK\\n                                                      -> milliseconds, one thread
"""
import sys
import time

import cv2
import numpy as np

cv2.setNumThreads(1)
TYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32}
# smooth's default chain on integers is this filter, where nothing rounds.
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
    """Into memory that was touched before; the warm-up round makes it."""
    global gray
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY, gray)
    return gray


def keep(image):
    """Outputs go to memory that was touched before, as ours do."""
    global result
    if result is None or result.shape != image.shape or result.dtype != image.dtype:
        result = np.zeros_like(image)
    return result


def channels(image):
    return range(1 if image.ndim == 2 else image.shape[2])


WORKS = {
    "filter2D": lambda a, b: cv2.filter2D(a, -1, TAPS, keep(a), borderType=cv2.BORDER_REPLICATE),
    # For u16 faster than filter2D, for the others slower.
    "sepFilter2D-x": lambda a, b: cv2.sepFilter2D(a, -1, TAPS, ONE, keep(a), borderType=cv2.BORDER_REPLICATE),
    "filter2D-y": lambda a, b: cv2.filter2D(a, -1, TAPS_Y, keep(a), borderType=cv2.BORDER_REPLICATE),
    "sepFilter2D": lambda a, b: cv2.sepFilter2D(a, -1, TAPS, TAPS_Y, keep(a), borderType=cv2.BORDER_REPLICATE),
    "reduce-x": lambda a, b: cv2.reduce(a, 1, cv2.REDUCE_SUM, dtype=cv2.CV_32S if a.dtype == np.uint8 else cv2.CV_64F),
    "reduce-y": lambda a, b: cv2.reduce(a, 0, cv2.REDUCE_SUM, dtype=cv2.CV_32S if a.dtype == np.uint8 else cv2.CV_64F),
    "calcHist-256": lambda a, b: hist(a, 256, channels(a)),
    "calcHist-8": lambda a, b: hist(a, 8, channels(a)),
    "gray+calcHist-256": lambda a, b: hist(luma(a), 256, [0]),
    "gray+calcHist-8": lambda a, b: hist(luma(a), 8, [0]),
    "3 norms": lambda a, b: (cv2.norm(a, cv2.NORM_L2SQR), cv2.norm(b, cv2.NORM_L2SQR), cv2.norm(a, b, cv2.NORM_L2SQR)),
    "norm-inf": lambda a, b: cv2.norm(a, b, cv2.NORM_INF),
    # Our time has no measuring of means in it, either.
    "multiply": lambda a, b: cv2.multiply(a, means, keep(a)),
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
        at = 0
        while at < int(size):
            at += sys.stdin.buffer.readinto(view[at:])
        images[int(index)] = image
        result = gray = None
        means = tuple(128 / max(m, 1) for m in cv2.mean(image))
        answer("ok")
    else:
        try:
            start = time.perf_counter()
            WORKS[words[1]](*images)
            answer("%.6f" % ((time.perf_counter() - start) * 1000))
        except cv2.error as error:
            answer("-1 " + str(error).replace("\n", " "))
