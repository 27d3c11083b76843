"""Threads: concurrent calls, the GIL, fork."""

import concurrent.futures
import gc
import multiprocessing
import threading
import time

import gpufilter
import numpy as np
from support import same, smoothed


def test_concurrent_calls(rng):
    images = [rng.integers(0, 256, (40, 50 + i, 3), dtype=np.uint8) for i in range(8)]
    wants = [smoothed(image, axis="xy") for image in images]

    def work(seed):
        order = np.random.default_rng(seed).permutation(len(images))
        return all(same(gpufilter.smooth(images[i], axis="xy"), wants[i]) for i in order)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))


def test_calls_release_the_gil():
    """While one thread is in a long call, this one continues."""
    image = np.zeros((1500, 1500), np.float32)
    ended = []
    thread = threading.Thread(target=lambda: (
        gpufilter.smooth(image, axis="xy", radius=100, backend="golden"), ended.append(True)))
    thread.start()
    turns = 0
    while not ended and turns < 5:
        time.sleep(0.01)
        turns += not ended
    thread.join()
    assert turns == 5


def test_threads_free_their_engines(image):
    def thread_count():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Threads:"))

    gpufilter.smooth(image)
    before = thread_count()
    for _ in range(10):
        thread = threading.Thread(target=gpufilter.smooth, args=(image,))
        thread.start()
        thread.join()
    gc.collect()
    assert thread_count() <= before + 2


def _child(image, queue):
    queue.put(gpufilter.smooth(image, axis="xy"))


def test_fork(image):
    """A child opens its own engine: that of the parent has no threads there."""
    want = gpufilter.smooth(image, axis="xy")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(image, queue))
    child.start()
    assert same(queue.get(timeout=30), want)
    child.join(30)
    assert child.exitcode == 0
    assert same(gpufilter.smooth(image, axis="xy"), want)


def test_results_are_freed(image):
    def memory():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def measure(times):
        for _ in range(times):
            gpufilter.hist(image, bins=65536)

    measure(20)
    before = memory()
    measure(200)  # 200 results of 1.5 MB
    assert memory() - before < 100e6
