"""Threads: concurrent calls, the GIL, fork."""

import concurrent.futures
import gc
import multiprocessing
import subprocess
import sys
import textwrap
import threading
import time

import gpufilter
import numpy as np
import pytest
from gpufilter import _run
from support import same, smoothed


def test_concurrent_calls(rng):
    images = [rng.integers(0, 256, (40, 50 + i, 3), dtype=np.uint8) for i in range(8)]
    wants = [smoothed(image, axis="xy") for image in images]

    def work(seed):
        order = np.random.default_rng(seed).permutation(len(images))
        return all(same(gpufilter.smooth(images[i], axis="xy"), wants[i]) for i in order)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))


def test_number_of_threads(image, tmp_path, monkeypatch):
    def shown(**keywords):
        return gpufilter.smooth_file(path, tmp_path / "b.ppm", backend="cpu", force=True, **keywords).device

    path = tmp_path / "a.png"
    gpufilter.write(path, image)
    gpufilter.clear()
    assert shown(threads=1).startswith("1 thread,") and shown(threads=3).startswith("3 threads,")
    monkeypatch.setenv("GPUFILTER_THREADS", "2")
    assert shown().startswith("2 threads,") and shown(threads=4).startswith("4 threads,")
    assert same(gpufilter.smooth(image, threads=3), gpufilter.smooth(image))
    monkeypatch.setenv("GPUFILTER_THREADS", "many")
    with pytest.raises(gpufilter.UsageError, match="GPUFILTER_THREADS: expected an integer from 0 to 1024, got 'many'"):
        shown()
    monkeypatch.setenv("GPUFILTER_THREADS", "")
    shown()


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


# ---- nested calls, exit -------------------------------------------------------------------------


class Nested(np.ndarray):
    """An array that calls gpufilter when a call looks at it, as a signal handler may."""

    other = None

    @property
    def ctypes(self):
        if self.other is not None:
            image, self.other = self.other, None
            gpufilter.smooth(image)
            gpufilter.smooth(image, out=np.empty_like(image))
        return super().ctypes


@pytest.mark.parametrize("give_out", [False, True])
def test_nested_calls(image, give_out):
    """A call during a call of the same layout has pointers of its own."""
    want = smoothed(image)
    for _ in range(3):
        first, out = image.view(Nested), np.empty_like(image).view(Nested)
        (out if give_out else first).other = np.zeros_like(image)
        made = gpufilter.smooth(first, out=out if give_out else None)
        assert same(np.asarray(made), want)


def run_script(text):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], timeout=60,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and done.stderr == ""


def test_exit_while_a_thread_works():
    for _ in range(5):
        run_script("""
            import gpufilter, numpy, threading, time
            image = numpy.zeros((300, 300), numpy.uint8)
            def work():
                while True:
                    gpufilter.hist(gpufilter.smooth(image, axis="xy", radius=20)).tables["bins"]
            threading.Thread(target=work, daemon=True).start()
            time.sleep(0.2)
            """)


def test_calls_at_exit():
    run_script("""
        import atexit
        @atexit.register
        def last():
            assert gpufilter.axis_sum(gpufilter.smooth(image)).totals[0] == 0
            assert len(result.tables["bins"]["bin"]) == 256
        import gpufilter, numpy
        image = numpy.zeros((30, 30), numpy.uint8)
        result = gpufilter.hist(gpufilter.smooth(image))
        """)


# ---- plans --------------------------------------------------------------------------------------


def test_plans_used_last_are_kept(image):
    gpufilter.clear()
    assert not _run._local.plans and not _run._local.engines
    for radius in range(1, 40):
        gpufilter.smooth(image)
        gpufilter.smooth(image, radius=radius, gain=1)
    plans = _run._local.plans
    assert len(plans) == _run.MAX_PLANS
    radii = sorted(key[2][1] for key in plans)
    assert radii == [2] + list(range(41 - _run.MAX_PLANS, 40))
    with pytest.raises(gpufilter.UsageError):
        gpufilter.smooth(image, radius=1000)
    assert len(plans) == _run.MAX_PLANS
    gpufilter.clear()
    assert same(gpufilter.smooth(image), smoothed(image))
