"""Run filters on files; read and write images."""

from __future__ import annotations

import os
import threading
from ctypes import addressof, byref, c_char_p, c_void_p, memmove
from dataclasses import dataclass
from importlib import import_module
from operator import index
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._arrays import DTYPES, NUMPY, kind_of
from ._library import Error, UsageError, bytes_of, check, error_of, free, lib
from ._results import Result, Tables, class_of
from ._run import Settings, Spec, encode_backend, engine_of, rows_of, text_of

Path = Union[str, "os.PathLike[str]"]


def file_options(force: bool, compression: Optional[str],
                 tiff_compression: Optional[str]) -> c.gf_file_options:
    effort = None if compression is None else text_of("compression", compression).encode()
    codec = (None if tiff_compression is None else
             text_of("tiff_compression", tiff_compression).encode())
    return c.gf_file_options(force=force, compression=effort, tiff_compression=codec)


DEPTHS = (None, "8", "16", "f32")  # in the order of gf_depth


def read(path: Path, *, depth: Optional[str] = None,
         crop: Optional[Tuple[int, int, int, int]] = None,
         autorotate: bool = False) -> npt.NDArray[Any]:
    """Read an image file.

    depth: "8", "16" or "f32": convert the samples as --depth of the program does.
    crop: (x, y, width, height): read only this rectangle.
    autorotate: turn the image as its EXIF orientation says.

    Returns a new array of shape (H, W) for grey images, else (H, W, C) with C channels (2: grey and
    alpha, 3: RGB, 4: RGBA), of dtype uint8, uint16 or float32. Raises Error if the file is not a
    readable image.
    """
    if depth not in DEPTHS:
        raise UsageError("depth: expected '8', '16' or 'f32', got %r" % (depth,))
    options = c.gf_file_options(depth=DEPTHS.index(depth), autorotate=autorotate)
    if crop is not None:
        try:
            part = [index(number) for number in crop]
        except TypeError:
            part = []
        if len(part) != 4 or min(part) < 0:
            raise UsageError("crop: expected (x, y, width, height), got %r" % (crop,))
        rectangle = c.gf_crop(*part)  # alive until the call returns
        options.crop = addressof(rectangle)
    form, pixels = c.gf_format(), c_void_p()
    check(lib.gf_load_file, bytes_of("path", path), byref(options), byref(form), byref(pixels))
    dtype = np.dtype(DTYPES[form.type])
    shape = (form.height, form.width, form.channels)[: 3 if form.channels > 1 else 2]
    try:
        size = form.height * form.width * form.channels * dtype.itemsize
        image = np.empty(shape, dtype)
        memmove(image.ctypes.data, pixels, size)
        return image
    finally:
        free(pixels)


def write(path: Path, image: npt.NDArray[Any], *, force: bool = False,
          compression: Optional[str] = None, tiff_compression: Optional[str] = None) -> None:
    """Write an image of shape (H, W) or (H, W, C) and dtype uint8, uint16 or float32 to a file.

    The extension of the path selects the format. force: replace an existing file.
    compression: effort for PNG, and tiff_compression: compression of TIFF, as for --compression
    and --tiff-compression of the program. Raises UsageError for an unknown format, and Error if
    the file exists or cannot be written.
    """
    if kind_of("image", image) is not NUMPY:
        raise UsageError("image: expected a NumPy array, got %s" % type(image).__name__)
    if image.ndim == 4:
        raise UsageError("image: expected one image, got a batch of shape %s" % (image.shape,))
    rows = rows_of("image", NUMPY.layout(image))
    if not rows.stride:
        image = np.ascontiguousarray(image)
        rows = rows_of("image", NUMPY.layout(image))
    pixels = c.gf_pixels(image.ctypes.data, rows.stride)
    check(lib.gf_save_file, bytes_of("path", path), byref(rows.format), byref(pixels),
          byref(file_options(force, compression, tiff_compression)))


def run_file(spec: Spec, paths: Tuple[Path, ...], out: Optional[Path], values: Dict[str, Any],
             backend: str, force: bool, compression: Optional[str] = None,
             tiff_compression: Optional[str] = None) -> Any:
    """Run a filter on files; the common part of all functions of filters. Return its result."""
    settings = Settings(spec.filter, values, files=True)
    names = (c_char_p * len(paths))(*[bytes_of("path", path) for path in paths])
    handle, report = c_void_p(), c.gf_report()
    check(lib.gf_run_file, engine_of(backend).handle, spec.filter.handle, settings.handle, names,
          None if out is None else bytes_of("out", out),
          byref(file_options(force, compression, tiff_compression)), byref(handle), byref(report))
    return _outcome_of(spec.filter.name, handle.value, report)


@dataclass(frozen=True)
class Report:
    """How a file was filtered.

    backend, device: what computed it. seconds: wall time. clipped: number of output samples at the
    maximum value (255, 65535), alpha excluded; None if they were not counted.
    """

    backend: str
    device: str
    seconds: float
    clipped: Optional[int]


def _outcome_of(name: str, handle: Optional[int], report: c.gf_report,
                borrowed: bool = False) -> Union[Result, Report]:
    """Return what a filter measured, or the report of a filter that produces an image."""
    if handle:
        return class_of(name).make(
            Tables(handle, borrowed), None, DTYPES[report.in_.type], report.in_.channels)
    return Report(report.backend.decode(), report.device.decode(), report.total_seconds,
                  report.clipped if report.counted else None)


# ---- batches ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcome of one file of a batch.

    path, out: names of input and output; out is None for a filter that measures.
    error: why the file failed; None if it succeeded.
    result: what was measured, or the Report of an image; None if the file failed.
    """

    path: str
    out: Optional[str]
    error: Optional[Error]
    result: Union[Result, Report, None]


class _Collector:
    """Receives the outcomes of a batch, from any thread, one at a time."""

    def __init__(self, name: str, items: List[Tuple[str, Optional[str]]], bar: Any) -> None:
        self.name, self.items, self.bar = name, items, bar
        self.outcomes: Dict[int, Outcome] = {}
        self.failure: Optional[BaseException] = None
        self.stopped = False

    def done(self, context: Any, pointer: Any) -> bool:
        try:
            done = pointer.contents
            error = error_of(done.status, done.error.contents) if done.status else None
            result = None
            if error is None:
                result = _outcome_of(self.name, done.result, done.report.contents, True)
            path, out = self.items[done.item]
            self.outcomes[done.item] = Outcome(path, out, error, result)
            if self.bar is not None:
                self.bar.update(1)
        except BaseException as failure:  # cannot pass through the library
            self.failure, self.stopped = failure, True
        return not self.stopped


def _bar(total: int) -> Any:
    try:
        tqdm: Any = import_module("tqdm")
    except ImportError:
        return None
    return tqdm.tqdm(total=total, unit="file")


def batch(paths: Iterable[Path], out_dir: Optional[Path] = None, filter: str = "smooth", *,
          progress: bool = False, force: bool = False, backend: str = "auto",
          compression: Optional[str] = None, tiff_compression: Optional[str] = None,
          **settings: Any) -> List[Outcome]:
    """Run a filter with one input on many files, in parallel.

    Args:
        paths: input files.
        out_dir: directory of the outputs, which have the names of the inputs; created if needed.
            None for a filter that measures.
        filter: name of a function of this module: "smooth", "normalize", "hist", "axis_sum".
        progress: show a progress bar, if tqdm is installed.
        force: replace existing outputs.
        backend: "auto", "golden", "cpu" or "cuda".
        compression: effort for PNG, as for --compression of the program.
        tiff_compression: compression of TIFF, as for --tiff-compression of the program.
        settings: keywords of the filter, except those that draw an image.

    Returns one Outcome per file, in the order of paths. A failed file does not stop the others.
    Raises UsageError for invalid settings and two inputs of the same name, BackendError if the
    backend is not available. KeyboardInterrupt finishes the files that have begun.
    """
    found = next((f for f in c.FILTERS.values() if filter in (f.function, f.name)), None)
    if found is None or found.info.inputs != 1:
        raise UsageError("'%s' is not a filter with one input" % filter)
    if found.info.makes_image == (out_dir is None):
        raise UsageError("out_dir: %s" % (
            "%s needs a directory" % filter if out_dir is None else
            "%s produces no image" % filter))
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise UsageError("paths: expected a list of paths, got one path")
    chosen = Settings(found, settings, files=True)
    inputs = [os.fsdecode(bytes_of("paths", path)) for path in paths]
    items: List[Tuple[str, Optional[str]]] = [(path, None) for path in inputs]
    if out_dir is not None:
        directory = os.fsdecode(bytes_of("out_dir", out_dir))
        try:
            os.makedirs(directory, exist_ok=True)
        except OSError as failure:
            raise Error("%s: cannot create: %s" % (directory, failure.strerror)) from failure
        items = [(path, os.path.join(directory, os.path.basename(path))) for path in inputs]
        written: Dict[Optional[str], str] = {}
        for path, out in items:
            if out in written:
                raise UsageError("%s and %s have the same output: %s" % (written[out], path, out))
            written[out] = path
    handles = (c.gf_batch_item * len(items))(*[
        c.gf_batch_item(os.fsencode(path), None if out is None else os.fsencode(out), False)
        for path, out in items])
    bar = _bar(len(items)) if progress else None
    collector = _Collector(found.name, items, bar)
    callback = c.DONE(collector.done)
    engine = c.gf_engine_options(backend=encode_backend(backend))
    options = c.gf_batch_options(engine, file_options(force, compression, tiff_compression),
                                 done=callback)
    failures: List[Error] = []

    def work() -> None:
        try:
            check(lib.gf_run_batch, found.handle, chosen.handle, handles, len(items),
                  byref(options))
        except Error as failure:
            failures.append(failure)

    # In a thread: this one can be interrupted while it waits.
    thread = threading.Thread(target=work)
    thread.start()
    try:
        thread.join()
    except BaseException:
        collector.stopped = True
        thread.join()
        raise
    finally:
        if bar is not None:
            bar.close()
    if collector.failure is not None:
        raise collector.failure
    if failures:
        raise failures[0]
    missing = Error("not processed")
    return [collector.outcomes.get(i, Outcome(path, out, missing, None))
            for i, (path, out) in enumerate(items)]
