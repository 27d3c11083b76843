"""Run filters on arrays. Each thread has its own engines, and a plan for each recent call."""

from __future__ import annotations

import operator
import os
import threading
import warnings
from ctypes import POINTER, byref, c_void_p, cast, pointer
from dataclasses import replace
from typing import Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import _library as c
from ._arrays import (
    DTYPES, VIEW, Kind, Layout, TorchKind, View, contiguous_layout, dtype_advice, kind_of,
    stream_handle, view_of,
)
from ._library import (ClippingWarning, DamageWarning, Error, Filter, UsageError, check, error_of,
                       lib, on_delete)
from ._results import PipelineResult, Result, Tables, class_of
from ._settings import Settings, file_options, plain, uses_of

MAX_THREADS = 1024
MAX_PLANS = 16  # per thread; a plan of a device may hold copies of the images
BACKENDS = c.texts(lib.gf_names(c.NAMES_BACKEND))


# ---- jobs ---------------------------------------------------------------------------------------


class Job:
    """A gf_job, and what it reports. Steps are numbered from 0.

    keep: owner of what the steps point to. measures: steps that measure. seconds: steps that read
    a second image. writers: steps that write the image, and the step that made it, or their own.
    last: the step whose image `out` receives: the writer of the last image or, without writers,
    the last step, which may draw one. unwritten: the last image has no writer.
    """

    def __init__(self, steps: Sequence[c.gf_step], keep: Any, memory: int, count: int = 1) -> None:
        number = len(steps)
        self.steps, self.keep, self.count = (c.gf_step * number)(*steps), keep, count
        infos = [lib.gf_filter_describe(step.filter).contents if step.filter else None
                 for step in steps]
        self.names = [info.name.decode() if info else "write" for info in infos]
        self.measures = [i for i, info in enumerate(infos) if info and not info.makes_image]
        self.seconds = [i for i, info in enumerate(infos) if info and info.inputs == 2]
        self.writers: Dict[int, int] = {}
        self.last: Optional[int] = None
        maker = None
        for i, step in enumerate(steps):
            if step.from_:
                self.last = maker = None
            if not step.filter:
                self.last, self.writers[i] = i, i if maker is None else maker
            elif i not in self.measures:
                self.last, maker = None, i
        self.unwritten = maker is not None and self.last is None
        self.last = self.last if self.writers else number - 1
        self.struct = c.gf_job(steps=self.steps, step_count=number, memory=memory, count=count)
        self.reports = (c.gf_step_report * number)()
        self.results = (c_void_p * (number * count))()
        self.outcome = c.gf_outcome(steps=self.reports, results=self.results)

    def inspect(self, form: c.gf_format) -> Any:
        """Set the format of the images, and return the gf_step_info of each step."""
        infos = (c.gf_step_info * len(self.steps))()
        self.struct.format = form
        check(lib.gf_job_inspect, byref(self.struct), infos)
        for info in infos:
            lib.gf_settings_free(info.effective)
        return infos

    def take(self, results: Any, borrowed: bool = False) -> Dict[int, List[Tables]]:
        """Return the results of each step that measures, one per image. Free those of others:
        conversions count what they clip."""
        taken = [Tables(handle, borrowed) if handle else None
                 for handle in results[:len(self.steps) * self.count]]
        return {i: [tables for tables in taken[i * self.count:(i + 1) * self.count] if tables]
                for i in self.measures}

    def output(self, steps: Any, writer: int) -> c.gf_step_report:
        """Return the report of a writer, with the brightness of the filter before it."""
        made, maker = c.gf_step_report.from_buffer_copy(steps[writer]), steps[self.writers[writer]]
        made.brightness, made.advice = maker.brightness, maker.advice
        return made


class Work:
    """What runs on arrays and on files: a filter or a pipeline.

    names: of the inputs. make_job(values, memory, count, format) returns a Job for arrays, and its
    gf_step_info. make_file_job(values, out, options) returns a Job for files, and its
    gf_file_options. combine(job, images, results) returns what a call returns; images: by writers,
    results: by steps that measure.
    """

    names: List[str]
    keywords: Tuple[str, ...] = ()
    make_job: Callable[..., Tuple[Job, Any]]
    make_file_job: Callable[..., Tuple[Job, c.gf_file_options]]
    combine: Callable[..., Any]


class Spec(Work):
    """A filter as a Python function, and the order of its keywords."""

    def __init__(self, name: str, *keywords: str) -> None:
        self.filter: Filter = c.FILTERS[name]
        self.keywords = keywords
        self.names = ["image"] if self.filter.info.inputs == 1 else ["a", "b"]

    def _make(self, settings: Settings, memory: int, count: int = 1) -> Job:
        step = c.gf_step(filter=self.filter.handle, settings=settings.handle)
        steps = [step, c.gf_step()] if self.filter.info.makes_image else [step]
        return Job(steps, settings, memory, count)

    def make_job(self, values: Tuple[Any, ...], memory: int, count: int, form: c.gf_format
                 ) -> Tuple[Job, Any]:
        """Keep extracted samples, if any."""
        given: Dict[str, Any] = dict(zip(self.keywords, values))
        for param in self.filter.params:
            if param.type == c.SAMPLES:
                try:
                    job = self._make(Settings(self.filter, {**given, param.keyword: True}),
                                     memory, count)
                    return job, job.inspect(form)
                except UsageError:  # nothing is extracted, or the settings are invalid
                    pass
        job = self._make(Settings(self.filter, given), memory, count)
        return job, job.inspect(form)

    def make_file_job(self, values: Dict[str, Any], out: Optional[bytes], options: Dict[str, Any]
                      ) -> Tuple[Job, c.gf_file_options]:
        params = self.filter.params
        draws = any(values.get(p.keyword) is not None for p in params if p.type == c.IMAGE)
        job = self._make(Settings(self.filter, values, files=True), c.FILES)
        job.steps[job.last or 0].out_path = out
        return job, file_options(uses_of(self.filter, draws), options)

    def combine(self, job: Job, images: Dict[int, Any], results: Dict[int, Any]) -> Any:
        return results[0] if results else images[1]


# ---- engines ------------------------------------------------------------------------------------


def encode_backend(backend: Any) -> bytes:
    if backend not in BACKENDS:
        raise UsageError("backend '%s': expected %s" % (backend, ", ".join(BACKENDS)))
    return str(backend).encode()


def threads_of(value: Any) -> int:
    """Return a number of threads: None is that of $GPUFILTER_THREADS, or 0, one per core."""
    name, text = "threads", value
    if value is None:
        name, text = "GPUFILTER_THREADS", os.environ.get("GPUFILTER_THREADS") or 0
    try:
        threads = int(text) if isinstance(text, str) else operator.index(text)
    except (TypeError, ValueError):
        threads = -1
    if not 0 <= threads <= MAX_THREADS:
        raise UsageError("%s: expected an integer from 0 to %d, got %r" % (name, MAX_THREADS, text))
    return threads


class Engine:
    """A gf_engine, for one thread."""

    def __init__(self, backend: str, device: Optional[int], threads: int) -> None:
        devices = None if device is None else b"%d" % device
        options = c.gf_engine_options(
            backend=encode_backend(backend), devices=devices, threads=threads)
        self._options = options  # its strings must outlive the engine
        self.handle = c_void_p()
        check(lib.gf_engine_open, byref(options), byref(self.handle))
        on_delete(self, _release, lib.gf_engine_close, self.handle, os.getpid())


def _release(call: Any, handle: c_void_p, pid: int) -> None:
    if os.getpid() == pid:  # a child process has neither the threads nor the devices
        call(handle)


class _Local(threading.local):
    def __init__(self) -> None:
        self.engines: Dict[Tuple[str, Optional[int], int], Engine] = {}
        self.plans: Dict[Hashable, Plan] = {}


_local = _Local()
_captured: List[Any] = []  # plans that a CUDA graph may replay at any time


def _after_fork() -> None:
    global _local
    _local = _Local()


os.register_at_fork(after_in_child=_after_fork)


def engine_of(backend: str, device: Optional[int] = None, threads: Any = None) -> Engine:
    """Return this thread's engine."""
    key = backend, device, threads_of(threads)
    if key not in _local.engines:
        _local.engines[key] = Engine(*key)
    return _local.engines[key]


# ---- warnings -----------------------------------------------------------------------------------

_warned = False


def warn_remarks(remarks: c.gf_remarks, level: int, *sources: Any) -> None:
    """Warn of what a report says about pixels."""
    name = ", ".join(os.fspath(source) if isinstance(source, (str, os.PathLike)) else "image"
                     for source in sources)
    if remarks.damage:
        text = "%s: %s" % (name, remarks.damage.decode(errors="replace"))
        warnings.warn(text, DamageWarning, stacklevel=level + 1)
    if remarks.outside:
        text = "%s: depth: %d float32 samples outside 0..1 are clipped" % (name, remarks.outside)
        warnings.warn(text, ClippingWarning, stacklevel=level + 1)


def warn_clipping(name: str, report: c.gf_step_report, clipped: bool, level: int) -> None:
    """Warn, once per process, that a filter made an image brighter and that samples clipped."""
    global _warned
    if _warned or not clipped or report.brightness <= 1:
        return
    _warned = True
    advice = report.advice.decode()
    for option, keyword in (("--keep-brightness", "keep_brightness=True"), ("--gain 1", "gain=1"),
                            ("--gain", "gain")):
        advice = advice.replace(option, keyword)
    warnings.warn("%s: brightness x%.4g, and samples are clipped; %s" % (
        name, report.brightness, advice), ClippingWarning, stacklevel=level + 1)


# ---- layouts ------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Images in an array: their format, and where their rows are."""

    format: c.gf_format
    images: int
    stride: int  # bytes from row to row; 0: rows are not acceptable
    step: int  # bytes from image to image


def rows_of(name: str, layout: Layout, alpha: Optional[bool] = None) -> Rows:
    """Return the images of an array (H, W), (H, W, C) or (N, H, W, C). alpha None: C = 4 has it."""
    shape, strides = layout.shape, layout.strides
    if len(shape) == 2:
        shape, strides = shape + (1,), strides + (0,)
    if len(shape) == 3:
        shape, strides = (1,) + shape, (0,) + strides
    if len(shape) != 4 or 0 in shape or shape[3] > 4:
        raise UsageError("%s: expected shape (H, W), (H, W, C) or (N, H, W, C) without 0, with 1 to"
                         " 4 channels, got %s" % (name, layout.shape))
    if layout.dtype not in DTYPES:
        raise UsageError(
            "%s: expected dtype uint8, uint16 or float32 in native byte order, got %s%s"
            % (name, layout.dtype, dtype_advice(name, layout.dtype)))
    count, height, width, channels = shape
    size = np.dtype(layout.dtype).itemsize
    row = width * channels * size
    stride = strides[1] if height > 1 else row
    packed = ((channels == 1 or strides[3] == size) and
              (width == 1 or strides[2] == channels * size) and stride >= row)
    if alpha not in (None, True, False):
        raise UsageError("alpha: expected True or False, got %r" % (alpha,))
    if alpha and channels not in (2, 4):
        raise UsageError("alpha: the last of 2 or 4 channels can be alpha, and %s has %d"
                         % (name, channels))
    form = c.gf_format(width, height, channels, DTYPES.index(layout.dtype),
                       channels == 4 if alpha is None else alpha)
    return Rows(form, count, stride if packed else 0, strides[0])


# ---- plans --------------------------------------------------------------------------------------


class Pixels:
    """An array of gf_pixels or gf_out_pixels: the images of an array at equal distances."""

    def __init__(self, rows: Rows) -> None:
        self.structs = (c.gf_pixels * rows.images)()
        table: Any = np.frombuffer(memoryview(self.structs).cast("B"), np.uint64)
        self.table = table.reshape(rows.images, 2)
        self.table[:, 1] = rows.stride
        self.offsets = (None if rows.images == 1
                        else np.arange(rows.images, dtype=np.int64) * rows.step)
        self.pointer = cast(self.structs, POINTER(c.gf_pixels))

    def point(self, pointer: int) -> None:
        """Set the addresses of the images."""
        if self.offsets is None:
            self.structs[0].data = pointer
        else:
            self.table[:, 0] = self.offsets + pointer


class Output(NamedTuple):
    """An image that a step writes or draws."""

    step: int
    shape: Tuple[int, ...]
    dtype: str
    pixels: Pixels
    same: bool  # as Kind.empty


class Plan:
    """A filter or pipeline and all structures of a call, for arrays of one layout."""

    def __init__(self, work: Work, backend: str, values: Tuple[Any, ...], kind: Kind,
                 images: Tuple[Any, ...], out: Any, alpha: Optional[bool], threads: Any) -> None:
        layouts = [kind.layout(image) for image in images]
        arrays = [rows_of(name, layout, alpha) for name, layout in zip(work.names, layouts)]
        shape, device = layouts[0].shape, layouts[0].device
        if kind.on_device and backend not in ("auto", "cuda"):
            raise UsageError("backend '%s': an array in the memory of a device needs auto or cuda"
                             % backend)
        self.work, self.on_device, self.batch = work, kind.on_device, len(shape) == 4
        self.count, self.format = arrays[0].images, arrays[0].format
        self.engine = engine_of("cuda" if kind.on_device else backend, device, threads)
        self.error = c.gf_error()
        memory = c.DEVICE if kind.on_device else c.HOST
        self.job, infos = work.make_job(values, memory, self.count, self.format)
        self.measured = [(i, class_of(self.job.names[i]), DTYPES[infos[i].in_.type],
                          infos[i].in_.channels) for i in self.job.measures]
        for i, name, layout in zip(self.job.seconds, work.names[1:], layouts[1:]):
            wanted = layouts[0]._replace(shape=self._shape(infos[i].in_, shape),
                                         dtype=DTYPES[infos[i].in_.type])
            if (layout.shape, layout.dtype, layout.device) != (wanted.shape, wanted.dtype, device):
                raise UsageError("%s and %s differ in shape, dtype or device: %s %s, %s %s" % (
                    work.names[0], name, wanted.shape, wanted.dtype, layout.shape, layout.dtype))
        self.copies = [rows.stride == 0 for rows in arrays]
        for i, layout in enumerate(layouts):
            if self.copies[i]:
                arrays[i] = rows_of("", contiguous_layout(layout.shape, layout.dtype))
        self.inputs = [Pixels(rows) for rows in arrays]
        self.has_results = bool(self.measured) or "convert" in self.job.names
        self.outputs: List[Output] = []
        for i, info in enumerate(infos):
            if i in self.job.writers or (i in self.job.measures and info.out.width):
                dtype = DTYPES[info.out.type]
                layout = contiguous_layout(self._shape(info.out, shape), dtype)
                same = layout == layouts[0]._replace(device=None)
                if out is not None and i == self.job.last:
                    layout = self._check_out(work.names[0], kind.layout(out), layout, device)
                pixels = Pixels(rows_of("out", layout))
                self.outputs.append(Output(i, layout.shape, dtype, pixels, same))
        if out is not None and self.job.last not in [output.step for output in self.outputs]:
            found = c.FILTERS[self.job.names[-1]]  # an image would be written
            draws = [param.keyword for param in found.params if param.type == c.IMAGE]
            raise UsageError("out: %s produces no image%s" % (
                found.function, " without %s=True" % draws[0] if draws else ""))
        self.job.struct.in_ = self.inputs[0].pointer
        for i, pixels in zip(self.job.seconds, self.inputs[1:]):
            self.job.steps[i].in_ = pixels.pointer
        for output in self.outputs:
            self.job.steps[output.step].out = output.pixels.pointer
        if self.on_device:
            self._prepare()

    def _shape(self, form: c.gf_format, like: Tuple[int, ...]) -> Tuple[int, ...]:
        """Return the shape of images of a format, with the axes of the input."""
        pixels: Tuple[int, ...] = (form.height, form.width)
        if len(like) > 2 or form.channels > 1:
            pixels += (form.channels,)
        return (self.count,) + pixels if self.batch else pixels

    def _check_out(self, name: str, layout: Layout, made: Layout, device: Optional[int]) -> Layout:
        if (layout.shape, layout.dtype, layout.device) != (made.shape, made.dtype, device):
            raise UsageError(
                "out: expected shape %s and dtype %s on the device of %s, got %s and %s" % (
                    made.shape, made.dtype, name, layout.shape, layout.dtype))
        rows = rows_of("out", layout)
        if not rows.stride:
            raise UsageError("out: the pixels of a row are not contiguous: strides %s"
                             % (layout.strides,))
        if rows.images > 1 and not rows.step:
            raise UsageError("out: all images of the batch are in the same memory")
        return layout

    def _prepare(self) -> None:
        """Prepare a run on a device. Its arguments are made once: a call costs microseconds."""
        self.prepared, self.stream, self.waiting = c_void_p(), c_void_p(), c_void_p()
        check(lib.gf_device_job_new, self.engine.handle, byref(self.job.struct),
              byref(self.prepared))
        on_delete(self, _release, lib.gf_device_job_free, self.prepared, os.getpid())
        self.captured = False
        pixels = POINTER(c.gf_pixels)
        second = [image.pointer for image in self.inputs[1:]]
        out = [output.pixels.pointer for output in self.outputs]
        self.images = c.gf_device_images(
            self.count, self.inputs[0].pointer, (pixels * len(second))(*second),
            (pixels * len(out))(*out))
        self.run_job = lib["gf_device_job_run"]  # no argtypes: nothing is converted
        self.job_arguments = (
            self.prepared, byref(self.images), self.stream,
            byref(self.waiting) if self.measured else None, byref(self.error))

    def run(self, kind: Kind, images: Tuple[Any, ...], out: Any, stream: Optional[int],
            returned: Any) -> Any:
        """Run on arrays of the plan's layout; return what the work makes of new arrays, or of
        `returned` instead of out, and of the results."""
        for i, image in enumerate(images):
            if self.copies[i]:
                image = kind.contiguous(image)
                images = images[:i] + (image,) + images[i + 1:]  # keep the copy
            self.inputs[i].point(kind.pointer(image))
        made: Dict[int, Any] = {}
        for step, shape, dtype, pixels, same in self.outputs:
            array = out if out is not None and step == self.job.last else (
                kind.empty(shape, dtype, images[0], same))
            made[step] = array
            pixels.point(kind.pointer(array))
        if self.on_device:
            status = self._run_job(kind, images[0], stream)
        else:
            status = self._run_memory(images, made, out)
        if status:
            raise error_of(status, self.error)
        if out is not None and self.job.last is not None:
            made[self.job.last] = returned
        results = self._make_results(made) if self.has_results else {}
        return self.work.combine(self.job, made, results)

    def _run_memory(self, images: Tuple[Any, ...], made: Dict[int, Any], out: Any) -> int:
        if out is not None:
            if not out.flags.writeable:
                raise UsageError("out: the array is read-only")
            for image in images:
                if np.may_share_memory(image, out) and np.shares_memory(image, out):
                    raise UsageError("out: the array overlaps an input")
        job = self.job
        status = lib.gf_run(self.engine.handle, byref(job.struct), byref(job.outcome),
                            byref(self.error))
        for step, maker in () if status or _warned else job.writers.items():
            array = made[step]
            if job.reports[maker].brightness > 1 and array.dtype.kind == "u":
                colours = array[..., :-1] if self.format.alpha else array
                warn_clipping(job.names[maker], job.reports[maker],
                              bool(colours.max() == np.iinfo(array.dtype).max), 6)
        if not status and not isinstance(self.work, Spec):  # which converts nothing
            warn_remarks(job.outcome.report.remarks, 6, "image")
        return int(status)

    def _run_job(self, kind: Kind, image: Any, stream: Optional[int]) -> int:
        self.stream.value = kind.current_stream(image) if stream is None else stream
        if not self.captured and kind.is_capturing():
            self.captured = True
            _captured.append(self)
        status: int = self.run_job(*self.job_arguments)
        if not status and self.measured:
            status = lib.gf_device_results_wait(self.waiting, self.job.results, byref(self.error))
        elif not status and kind is VIEW:  # its package does not know about the work
            status = lib.gf_device_wait(self.engine.handle, self.stream, byref(self.error))
        return status

    def _make_results(self, made: Dict[int, Any]) -> Dict[int, Any]:
        """Return the results of each step that measures, with its drawing, taken from made."""
        taken, results = self.job.take(self.job.results), {}
        for i, made_of, dtype, channels in self.measured:
            drawn = made.pop(i, None)
            images = drawn if self.batch and drawn is not None else [drawn] * self.count
            found = [made_of.make(tables, image, dtype, channels)
                     for tables, image in zip(taken[i], images)]
            results[i] = found if self.batch else found[0]
        return results


# ---- calls --------------------------------------------------------------------------------------


def run(work: Work, images: Tuple[Any, ...], values: Tuple[Any, ...], out: Any, backend: str,
        stream: Any, alpha: Optional[bool], threads: Any) -> Any:
    """Run a filter or pipeline on arrays; the common part of their functions."""
    image = images[0]
    kind = kind_of(work.names[0], image)
    for name, other in zip(work.names[1:], images[1:]):
        if type(other) is not type(image):
            _check_kind(work, kind, image, name, other)
    if out is not None and type(out) is not type(image):
        _check_kind(work, kind, image, "out", out)
    if isinstance(kind, TorchKind) and not image.is_cuda:
        return _run_on_host(kind, work, images, values, out, backend, stream, alpha, threads)
    if stream is not None:
        if not kind.on_device:
            raise UsageError("stream: the arrays are not in the memory of a device")
        stream = stream_handle(stream)
    returned = out
    if kind is VIEW:
        images = tuple(view_of(image, stream) for image in images)
        out = None if out is None else view_of(out, stream)
        if out is not None and not out.writable:
            raise UsageError("out: the array is read-only")
        if stream is None:
            stream = _stream_of(images if out is None else images + (out,))
    key: Tuple[Hashable, ...] = (
        work, backend, values, alpha, threads, kind.key(images[0]),
        None if len(images) == 1 else tuple(map(kind.key, images[1:])),
        None if out is None else kind.key(out))
    if stream is None or stream == kind.current_stream(images[0]):
        made = _run_plan(key, kind, images, out, stream, returned)
    else:
        with kind.on_stream(stream, images if out is None else images + (out,)):
            made = _run_plan(key, kind, images, out, stream, returned)
    if returned is not None:
        kind.written(returned)
    return made


def _check_kind(work: Work, kind: Kind, image: Any, name: str, other: Any) -> None:
    if kind_of(name, other) is not kind:
        raise UsageError("%s and %s are arrays of different kinds: %s and %s" % (
            work.names[0], name, type(image).__name__, type(other).__name__))


def _stream_of(views: Tuple[View, ...]) -> int:
    """Return the stream that arrays of unknown packages name; 0 if none does."""
    named = {view.stream for view in views if view.stream}
    if len(named) > 1:
        raise UsageError("stream: the arrays belong to several streams: pass one that is ordered"
                         " after them")
    return named.pop() if named else 0


def _run_plan(key: Tuple[Any, ...], kind: Kind, images: Tuple[Any, ...], out: Any,
              stream: Optional[int], returned: Any) -> Any:
    """Find or make the plan of a call, and run it."""
    plans = _local.plans
    try:
        plan = plans.pop(key, None)  # a call from a signal handler makes another one
    except TypeError:  # a list, or an array
        plan = None
    if plan is None:
        work, backend, values, alpha, threads = key[:5]
        encode_backend(backend)
        values = tuple(plain(name, value) for name, value in zip(work.keywords, values))
        key = (work, backend, values, alpha, threads) + key[5:]
        plan = plans.pop(key, None)
    try:
        if plan is None:
            plan = Plan(work, backend, values, kind, images, out, alpha, threads)
        return plan.run(kind, images, out, stream, returned)
    except Error as failure:
        if failure.status != c.FAILED or not kind.on_device or not plans:
            raise
        plan = None
        plans.clear()  # the memory of other plans may be enough
        return _run_plan(key, kind, images, out, stream, returned)
    finally:
        if plan is not None:
            plans[key] = plan
        if len(plans) > MAX_PLANS:
            del plans[next(iter(plans))]


def clear() -> None:
    """Free the memory and the threads that earlier calls of this thread keep for later ones."""
    _local.plans.clear()
    _local.engines.clear()


def _run_on_host(kind: TorchKind, work: Work, images: Tuple[Any, ...], values: Tuple[Any, ...],
                 out: Any, backend: str, stream: Any, alpha: Optional[bool], threads: Any) -> Any:
    """Run on the memory of tensors of the CPU."""
    tensors = images if out is None else images + (out,)
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise UsageError("expected tensors on one device, cpu or cuda, got cpu and %s"
                             % tensor.device)
    try:
        views = [tensor.detach().numpy() for tensor in tensors]
    except (RuntimeError, TypeError) as failure:
        raise UsageError("a tensor is not an array of NumPy: %s" % failure) from failure
    made = run(work, tuple(views[: len(images)]), values, None if out is None else views[-1],
               backend, stream, alpha, threads)
    if out is not None:
        kind.written(out)
    return _convert(made, lambda array: (
        out if out is not None and array is views[-1] else kind.torch.from_numpy(array)))


def _convert(made: Any, convert: Callable[[Any], Any]) -> Any:
    """Replace the images in what a call returns."""
    if isinstance(made, np.ndarray):
        return convert(made)
    if isinstance(made, list):
        return [_convert(one, convert) for one in made]
    if isinstance(made, PipelineResult):
        written = {name: _convert(image, convert) for name, image in made.written.items()}
        return PipelineResult(_convert(made.image, convert), _convert(made.results, convert),
                              written)
    if isinstance(made, Result) and made.image is not None:
        return replace(made, image=convert(made.image))
    return made
