"""Run filters on files; read and write images."""

from __future__ import annotations

import os
import threading
import warnings
from ctypes import byref, c_char_p, c_void_p, memmove
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._arrays import DTYPES, NUMPY, kind_of
from ._library import DamageWarning, Error, UsageError, bytes_of, check, error_of, free, lib
from ._results import Result, Tables, class_of
from ._run import Spec, encode_backend, engine_of, rows_of
from ._settings import Settings, Use, file_options, uses_of

Path = Union[str, "os.PathLike[str]"]


def _warn(path: Path, report: c.gf_report) -> None:
    """Warn of what the report of a file says about its pixels."""
    if report.remarks.damage:
        text = "%s: %s" % (os.fspath(path), report.remarks.damage.decode(errors="replace"))
        warnings.warn(text, DamageWarning, stacklevel=4)


def read_file(path: Path, options: Dict[str, Any], return_alpha: bool) -> Any:
    """Read an image, and whether its last channel is alpha."""
    chosen = file_options(Use.READ, options)
    form, pixels, report = c.gf_format(), c_void_p(), c.gf_report()
    check(lib.gf_load_file, bytes_of("path", path), byref(chosen), byref(form), byref(pixels),
          byref(report))
    _warn(path, report)
    dtype = np.dtype(DTYPES[form.type])
    shape = (form.height, form.width, form.channels)[: 3 if form.channels > 1 else 2]
    try:
        size = form.height * form.width * form.channels * dtype.itemsize
        image = np.empty(shape, dtype)
        memmove(image.ctypes.data, pixels, size)
        return (image, form.alpha) if return_alpha else image
    finally:
        free(pixels)


def write_file(path: Path, image: npt.NDArray[Any], alpha: Optional[bool],
               options: Dict[str, Any]) -> None:
    """Write an image."""
    if kind_of("image", image) is not NUMPY:
        raise UsageError("image: expected a NumPy array, got %s" % type(image).__name__)
    if image.ndim == 4:
        raise UsageError("image: expected one image, got a batch of shape %s" % (image.shape,))
    rows = rows_of("image", NUMPY.layout(image), alpha)
    if not rows.stride:
        image = np.ascontiguousarray(image)
        rows = rows_of("image", NUMPY.layout(image), alpha)
    pixels = c.gf_pixels(image.ctypes.data, rows.stride)
    check(lib.gf_save_file, bytes_of("path", path), byref(rows.format), byref(pixels),
          byref(file_options(Use.WRITE, options)))


def run_file(spec: Spec, paths: Tuple[Path, ...], out: Optional[Path], values: Dict[str, Any],
             options: Dict[str, Any], backend: str) -> Any:
    """Run a filter on files; the common part of all functions of filters. Return its result."""
    found = spec.filter
    settings = Settings(found, values, files=True)
    draws = any(values[p.keyword] is not None for p in found.params if p.type == c.IMAGE)
    chosen = file_options(uses_of(found, draws), options)
    names = (c_char_p * len(paths))(*[bytes_of("path", path) for path in paths])
    handle, report = c_void_p(), c.gf_report()
    check(lib.gf_run_file, engine_of(backend).handle, found.handle, settings.handle, names,
          None if out is None else bytes_of("out", out), byref(chosen), byref(handle),
          byref(report))
    _warn(paths[0], report)
    return _outcome_of(found.name, handle.value, report)


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
                _warn(self.items[done.item][0], done.report.contents)
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


def run_batch(paths: Iterable[Path], out_dir: Optional[Path], filter: str,
              settings: Dict[str, Any], options: Dict[str, Any], backend: str,
              progress: bool) -> List[Outcome]:
    """Run a filter with one input on many files, in parallel."""
    found = next((f for f in c.FILTERS.values() if filter in (f.function, f.name)), None)
    if found is None or found.info.inputs != 1:
        raise UsageError("'%s' is not a filter with one input" % filter)
    if found.info.makes_image == (out_dir is None):
        raise UsageError("out_dir: %s" % (
            "%s needs a directory" % filter if out_dir is None else
            "%s produces no image" % filter))
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise UsageError("paths: expected a list of paths, got one path")
    values = Settings(found, settings, files=True)
    chosen = file_options(uses_of(found, draws=False), options)
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
    batch = c.gf_batch_options(engine, chosen, done=callback)
    failures: List[Error] = []

    def work() -> None:
        try:
            check(lib.gf_run_batch, found.handle, values.handle, handles, len(items),
                  byref(batch))
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
