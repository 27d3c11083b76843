"""Run filters on files; read and write images."""

from __future__ import annotations

import os
import re
import shutil
import threading
from contextlib import ExitStack, contextmanager, nullcontext
from ctypes import byref, c_char_p, c_void_p, memmove, pointer
from dataclasses import dataclass
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._arrays import DTYPES, NUMPY, kind_of
from ._library import Error, UsageError, bytes_of, check, error_of, free, lib
from ._results import PipelineResult, Result, class_of
from ._run import (
    Job, Spec, Work, encode_backend, engine_of, rows_of, threads_of, warn_clipping, warn_remarks,
)
from ._settings import FORMATS, Use, file_options

Path = Union[str, "os.PathLike[str]"]
Source = Union[Path, bytes, bytearray, memoryview, BinaryIO]  # a path, or the contents of a file


@contextmanager
def _renamed(path: str, name: str) -> Iterator[None]:
    """Replace a path by a name in the message of an error."""
    try:
        yield
    except Error as failure:
        failure.message = failure.message.replace(path, name)
        failure.args = (failure.message,)
        raise


@contextmanager
def _named(name: str, source: Source) -> Iterator[bytes]:
    """Yield a path of a source. name: of the argument, also in messages about contents."""
    read = getattr(source, "read", None)
    if read is None and not isinstance(source, (bytes, bytearray, memoryview)):
        yield bytes_of(name, source)
        return
    data = source if read is None else read()
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise UsageError("%s: expected a file opened with mode 'rb', got %s"
                         % (name, type(source).__name__))
    with open(os.memfd_create(name), "wb") as file:
        file.write(data)
        file.flush()
        path = "/proc/self/fd/%d" % file.fileno()
        with _renamed(path, name):
            yield path.encode()


def read_file(path: Source, options: Dict[str, Any], return_alpha: bool) -> Any:
    """Read an image, and whether its last channel is alpha."""
    chosen = file_options(Use.READ, options)
    form, pixels, report = c.gf_format(), c_void_p(), c.gf_report()
    with _named("path", path) as name:
        check(lib.gf_load_file, name, byref(chosen), byref(form), byref(pixels), byref(report))
    warn_remarks(report.remarks, 3, path)
    dtype = np.dtype(DTYPES[form.type])
    shape = (form.height, form.width, form.channels)[: 3 if form.channels > 1 else 2]
    try:
        size = form.height * form.width * form.channels * dtype.itemsize
        image = np.empty(shape, dtype)
        memmove(image.ctypes.data, pixels, size)
        return (image, form.alpha) if return_alpha else image
    finally:
        free(pixels)


def write_file(path: Union[Path, BinaryIO], image: npt.NDArray[Any], alpha: Optional[bool],
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
    chosen = file_options(Use.WRITE, options)
    if hasattr(path, "write") and not options["format"]:
        raise UsageError('format: needed for %s, for example format="png"' % type(path).__name__)
    with TemporaryDirectory() if hasattr(path, "write") else nullcontext() as directory:
        name: Any = os.path.join(directory, "image") if directory else path
        with _renamed(str(name), "path") if directory else nullcontext():
            check(lib.gf_save_file, bytes_of("path", name), byref(rows.format), byref(pixels),
                  byref(chosen))
        if directory:
            with open(name, "rb") as file:
                shutil.copyfileobj(file, path)  # type: ignore[arg-type]
    if options["depth"] in ("8", "16") and image.dtype == np.float32:
        inside = np.count_nonzero((image >= 0) & (image <= 1))
        warn_remarks(c.gf_remarks(outside=image.size - inside), 3, path)


def run_file(work: Work, paths: Tuple[Source, ...], out: Optional[Path], values: Dict[str, Any],
             options: Dict[str, Any], backend: str, threads: Optional[int]) -> Any:
    """Run a filter or pipeline on files; the common part of their functions. Return its result."""
    stored = None if out is None else bytes_of("out", out)
    job, chosen = work.make_file_job(values, stored, options)
    engine = engine_of(backend, None, threads)
    job.struct.options = pointer(chosen)
    arguments = ["image"] if len(paths) == 1 else ["a", "b"]
    with ExitStack() as stack:
        opened = [stack.enter_context(_named(*pair)) for pair in zip(arguments, paths)]
        job.struct.in_path = opened[0]
        for step, path in zip(job.seconds, opened[1:]):
            job.steps[step].in_path = path
        check(lib.gf_run, engine.handle, byref(job.struct), byref(job.outcome))
    warn_remarks(job.outcome.report.remarks, 3, *paths)
    for writer, maker in job.writers.items():
        made = job.output(job.reports, writer)
        warn_clipping(job.names[maker], made, made.clipped > 0, 3)
    return _outcome_of(work, job, job.outcome)


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


def _outcome_of(work: Work, job: Job, outcome: c.gf_outcome, borrowed: bool = False) -> Any:
    """Return what the steps measured, and a report for each image."""
    report, results, images = outcome.report, {}, {}
    for i, tables in job.take(outcome.results, borrowed).items():
        form = outcome.steps[i].in_
        results[i] = class_of(job.names[i]).make(tables[0], None, DTYPES[form.type], form.channels)
    for i in job.writers:
        made = outcome.steps[i]
        images[i] = Report(report.backend.decode(), report.device.decode(), report.total_seconds,
                           made.clipped if made.counted else None)
    return work.combine(job, images, results)


# ---- batches ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcome of one file of a batch.

    path, out: names of input and output, of a pipeline the last one; out is None without an image.
    error: why the file failed; None if it succeeded.
    result: what was measured, or the Report of an image, or what Pipeline.files returns; None if
    the file failed or was skipped.
    skipped: resume is set, and the output is newer than the input.
    """

    path: str
    out: Optional[str]
    error: Optional[Error]
    result: Union[Result, Report, PipelineResult, List[Result], None]
    skipped: bool = False


Item = Tuple[str, List[str]]  # names of an input and of its outputs


def _last(outs: List[str]) -> Optional[str]:
    return outs[-1] if outs else None


class _Collector:
    """Receives the outcomes of a batch, from any thread, one at a time."""

    def __init__(self, work: Work, job: Job, items: List[Item], bar: Any) -> None:
        self.work, self.job, self.items, self.bar = work, job, items, bar
        self.outcomes: Dict[int, Outcome] = {}
        self.failure: Optional[BaseException] = None
        self.clipping: Optional[Tuple[str, c.gf_step_report]] = None  # of an image that clips
        self.stopped = False

    def done(self, context: Any, pointer: Any) -> bool:
        try:
            done = pointer.contents
            error = error_of(done.status, done.error.contents) if done.status else None
            result = None
            if error is None:
                outcome = done.outcome.contents
                warn_remarks(outcome.report.remarks, 3, self.items[done.item][0])
                result = _outcome_of(self.work, self.job, outcome, True)
                for writer, maker in self.job.writers.items():
                    made = self.job.output(outcome.steps, writer)
                    if self.clipping is None and made.clipped and made.brightness > 1:
                        self.clipping = self.job.names[maker], made
            path, outs = self.items[done.item]
            self.outcomes[done.item] = Outcome(path, _last(outs), error, result)
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


def _output_name(template: str, path: str, index: int, format: Optional[str]) -> str:
    """Return the name of an output: as --name of the program, with --format."""
    name = os.path.basename(path)
    stem, ext = os.path.splitext(name)
    if format:
        ext = "." + format
    elif ext[1:].lower() not in FORMATS:
        ext = ".png"
    fields = {"stem": stem, "ext": ext, "name": name}

    def value(found: "re.Match[str]") -> str:
        word, digits = found[1], found[2]
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if word == "index" and (digits is None or digits.isdecimal() and 1 <= int(digits) <= 20):
            return str(index).zfill(int(digits or 0))
        if not word or word not in fields or digits is not None:
            raise UsageError("name: %s: expected {stem}, {ext}, {name}, {index} or {index:DIGITS}, "
                             "and {{ and }} for braces" % found[0])
        return fields[word]

    made = re.sub(r"\{\{|\}\}|\{(\w*)(?::([^{}]*))?\}|[{}]", value, template)
    if not made or "/" in made or made in (".", ".."):
        raise UsageError("name: %r is not the name of a file" % made)
    return made


def _is_newer(path: str, outs: List[str]) -> bool:
    """Return whether all outputs exist, are not empty, and are newer than their input."""
    try:
        then, made = os.stat(path).st_mtime_ns, [os.stat(out) for out in outs]
        return bool(made) and all(out.st_size > 0 and out.st_mtime_ns > then for out in made)
    except OSError:
        return False


def run_batch(paths: Iterable[Path], out_dir: Optional[Path], filter: Union[str, Work],
              settings: Dict[str, Any], options: Dict[str, Any], backend: str,
              threads: Optional[int], progress: bool, name: str, resume: bool) -> List[Outcome]:
    """Run a filter with one input, or a pipeline, on many files, in parallel."""
    found = next((f for f in c.FILTERS.values() if filter in (f.function, f.name)), None)
    work = Spec(found.name) if found and found.info.inputs == 1 else filter
    if not isinstance(work, Work):
        raise UsageError("'%s' is not a filter with one input" % filter)
    what = str(filter)
    job, chosen = work.make_file_job(settings, None if out_dir is None else os.fsencode(name),
                                     options)
    if bool(job.writers) == (out_dir is None):
        raise UsageError("out_dir: %s" % (
            "%s needs a directory" % what if out_dir is None else "%s produces no image" % what))
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise UsageError("paths: expected a list of paths, got one path")
    inputs = [os.fsdecode(bytes_of("paths", path)) for path in paths]
    items: List[Item] = [(path, []) for path in inputs]
    if out_dir is not None:
        directory = os.fsdecode(bytes_of("out_dir", out_dir))
        try:
            os.makedirs(directory, exist_ok=True)
        except OSError as failure:
            raise Error("%s: cannot create: %s" % (directory, failure.strerror)) from failure
        written: Dict[str, str] = {}
        for i, (path, outs) in enumerate(items, 1):
            for step in (job.steps[writer] for writer in job.writers):
                format = (step.write.contents if step.write else chosen.write).format
                outs.append(os.path.join(directory, _output_name(
                    os.fsdecode(step.out_path), path, i, format and format.decode())))
            for out in outs:
                if out in written:
                    raise UsageError("%s and %s have the same output: %s" % (
                        written[out], path, out))
                written[out] = path
    todo = [i for i, (path, outs) in enumerate(items) if not (resume and _is_newer(path, outs))]
    handles = (c.gf_batch_item * len(todo))()
    for item, (path, outs) in zip(handles, (items[i] for i in todo)):
        item.in_, item.replace = os.fsencode(path), resume
        item.out = (c_char_p * len(outs))(*map(os.fsencode, outs)) if outs else None
    bar = _bar(len(todo)) if progress else None
    collector = _Collector(work, job, [items[i] for i in todo], bar)
    callback = c.DONE(collector.done)
    engine = c.gf_engine_options(backend=encode_backend(backend), threads=threads_of(threads))
    batch = c.gf_batch_options(engine, done=callback)
    job.struct.options = pointer(chosen)
    failures: List[Error] = []

    def call() -> None:
        try:
            check(lib.gf_run_batch, byref(job.struct), handles, len(todo), byref(batch))
        except Error as failure:
            failures.append(failure)

    # In a thread: this one can be interrupted while it waits.
    thread = threading.Thread(target=call)
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
    if collector.clipping is not None:
        warn_clipping(*collector.clipping, True, 3)
    missing = Error("not processed")
    outcomes = [Outcome(path, _last(outs), None, None, True) for path, outs in items]
    for i, number in enumerate(todo):
        path, outs = items[number]
        outcomes[number] = collector.outcomes.get(i, Outcome(path, _last(outs), missing, None))
    return outcomes
