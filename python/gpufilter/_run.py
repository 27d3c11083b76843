"""Run filters on arrays. Each thread has its own engines, and a plan for each recent call."""

from __future__ import annotations

import operator
import os
import threading
import warnings
from ctypes import POINTER, byref, c_void_p, cast, pointer
from dataclasses import replace
from typing import Any, Dict, Hashable, List, NamedTuple, Optional, Tuple

import numpy as np

from . import _library as c
from ._arrays import (
    DTYPES, VIEW, Kind, Layout, TorchKind, View, contiguous_layout, dtype_advice, kind_of,
    stream_handle, view_of,
)
from ._library import ClippingWarning, Error, Filter, UsageError, check, error_of, lib, on_delete
from ._results import Tables, class_of
from ._settings import Settings, plain

MAX_THREADS = 1024
MAX_PLANS = 16  # per thread; a plan of a device may hold copies of the images
BACKENDS = c.texts(lib.gf_names(c.NAMES_BACKEND))


class Spec:
    """A filter as a Python function, and the order of its keywords."""

    def __init__(self, name: str, *keywords: str) -> None:
        self.filter: Filter = c.FILTERS[name]
        self.keywords = keywords
        self.names = ["image"] if self.filter.info.inputs == 1 else ["a", "b"]


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


# ---- clipping -----------------------------------------------------------------------------------

_warned = False


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


class Job:
    """A gf_job of one filter, and a writer if it produces an image; and what it reports."""

    def __init__(self, found: Filter, settings: Settings, memory: int, count: int = 1) -> None:
        self.settings, self.count = settings, count
        self.steps = (c.gf_step * 2)()
        self.steps[0].filter, self.steps[0].settings = found.handle, settings.handle
        writes = found.info.makes_image
        self.last = self.steps[1 if writes else 0]
        self.struct = c.gf_job(steps=self.steps, step_count=2 if writes else 1, memory=memory,
                               count=count)
        self.reports = (c.gf_step_report * 2)()
        self.results = (c_void_p * (2 * count))()
        self.outcome = c.gf_outcome(steps=self.reports, results=self.results)

    def inspect(self, form: c.gf_format) -> c.gf_format:
        """Set the format of the images, and return that of the output."""
        info = (c.gf_step_info * 2)()
        self.struct.format = form
        check(lib.gf_job_inspect, byref(self.struct), info)
        lib.gf_settings_free(info[0].effective)
        out: c.gf_format = info[0].out
        return out

    def taken(self) -> List[Optional[int]]:
        """Return the results, which the caller frees."""
        return [self.results[i] for i in range(self.count)]


def output_of(steps: Any, makes_image: bool) -> c.gf_step_report:
    """Return the report of the step with the output, with the brightness of the filter."""
    made = c.gf_step_report.from_buffer_copy(steps[1 if makes_image else 0])
    made.brightness, made.advice = steps[0].brightness, steps[0].advice
    return made


class Plan:
    """A filter with its settings and all structures of a call, for arrays of one layout."""

    def __init__(self, spec: Spec, backend: str, values: Tuple[Any, ...], kind: Kind,
                 images: Tuple[Any, ...], out: Any, alpha: Optional[bool], threads: Any) -> None:
        layouts = [kind.layout(image) for image in images]
        arrays = [rows_of(name, layout, alpha) for name, layout in zip(spec.names, layouts)]
        for layout in layouts[1:]:
            if (layout.shape, layout.dtype, layout.device) != (
                    layouts[0].shape, layouts[0].dtype, layouts[0].device):
                raise UsageError("%s differ in shape, dtype or device: %s" % (
                    " and ".join(spec.names),
                    ", ".join("%s %s" % (layout.shape, layout.dtype) for layout in layouts)))
        device = layouts[0].device
        if kind.on_device and backend not in ("auto", "cuda"):
            raise UsageError("backend '%s': an array in the memory of a device needs auto or cuda"
                             % backend)
        self.filter, self.dtype = spec.filter, layouts[0].dtype
        self.batch, self.count = len(layouts[0].shape) == 4, arrays[0].images
        self.engine = engine_of("cuda" if kind.on_device else backend, device, threads)
        self.format, self.error = arrays[0].format, c.gf_error()
        memory = c.DEVICE if kind.on_device else c.HOST
        self.job, made = self._make_job(dict(zip(spec.keywords, values)), memory)
        self.out_shape = self._out_shape(made, layouts[0].shape) if made.width else None
        self.out_dtype = DTYPES[made.type]
        self.copies = [rows.stride == 0 for rows in arrays]
        for i, layout in enumerate(layouts):
            if self.copies[i]:
                arrays[i] = rows_of("", contiguous_layout(layout.shape, layout.dtype))
        self.inputs = [Pixels(rows) for rows in arrays]
        self.outputs: Optional[Pixels] = None
        if self.out_shape is not None:
            layout = contiguous_layout(self.out_shape, self.out_dtype)
            self.same = layout == layouts[0]._replace(device=None)
            if out is not None:
                layout = self._check_out(spec.names[0], kind.layout(out), device)
            self.outputs = Pixels(rows_of("out", layout))
        elif out is not None:
            draws = [param.keyword for param in spec.filter.params if param.type == c.IMAGE]
            raise UsageError("out: %s produces no image%s" % (
                spec.filter.function, " without %s=True" % draws[0] if draws else ""))
        self.job.struct.in_ = self.inputs[0].pointer
        if len(self.inputs) > 1:
            self.job.steps[0].in_ = self.inputs[1].pointer
        if self.outputs is not None:
            self.job.last.out = self.outputs.pointer
        self.measures = not self.filter.info.makes_image
        self.on_device = kind.on_device
        if self.on_device:
            self._prepare()

    def _make_job(self, values: Dict[str, Any], memory: int) -> Tuple[Job, c.gf_format]:
        """Return the job, and the format of its output. Keep extracted samples, if any."""
        for param in self.filter.params:
            if param.type == c.IMAGE:
                values[param.keyword] = bool(values[param.keyword])
        samples = [param.keyword for param in self.filter.params if param.type == c.SAMPLES]
        if samples:
            try:
                return self._try_job({**values, **dict.fromkeys(samples, True)}, memory)
            except UsageError:  # nothing is extracted, or the settings are invalid
                pass
        return self._try_job(values, memory)

    def _try_job(self, values: Dict[str, Any], memory: int) -> Tuple[Job, c.gf_format]:
        job = Job(self.filter, Settings(self.filter, values), memory, self.count)
        return job, job.inspect(self.format)

    def _out_shape(self, made: c.gf_format, shape: Tuple[int, ...]) -> Tuple[int, ...]:
        pixels: Tuple[int, ...] = (made.height, made.width)
        if len(shape) > 2 or made.channels > 1:
            pixels += (made.channels,)
        return (self.count,) + pixels if self.batch else pixels

    def _check_out(self, name: str, layout: Layout, device: Optional[int]) -> Layout:
        if (layout.shape, layout.dtype, layout.device) != (self.out_shape, self.out_dtype, device):
            raise UsageError(
                "out: expected shape %s and dtype %s on the device of %s, got %s and %s" % (
                    self.out_shape, self.out_dtype, name, layout.shape, layout.dtype))
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
        second, out = self.inputs[-1].pointer, self.outputs.pointer if self.outputs else None
        self.images = c.gf_device_images(
            self.count, self.inputs[0].pointer, pointer(second), pointer(out) if out else None)
        self.run_job = lib["gf_device_job_run"]  # no argtypes: nothing is converted
        self.job_arguments = (
            self.prepared, byref(self.images), self.stream,
            byref(self.waiting) if self.measures else None, byref(self.error))

    def run(self, kind: Kind, images: Tuple[Any, ...], out: Any, stream: Optional[int],
            returned: Any) -> Any:
        """Run on arrays of the plan's layout; return the image (returned, or a new array) or the
        results."""
        for i, image in enumerate(images):
            if self.copies[i]:
                image = kind.contiguous(image)
                images = images[:i] + (image,) + images[i + 1:]  # keep the copy
            self.inputs[i].point(kind.pointer(image))
        if self.outputs is not None:
            if out is None:
                out = returned = kind.empty(self.out_shape or (), self.out_dtype, images[0],
                                            self.same)
            self.outputs.point(kind.pointer(out))
        if self.on_device:
            status = self._run_job(kind, images[0], stream)
        else:
            status = self._run_memory(images, out)
        if status:
            raise error_of(status, self.error)
        return self._make_results(returned) if self.measures else returned

    def _run_memory(self, images: Tuple[Any, ...], out: Any) -> int:
        if out is not None:
            if not out.flags.writeable:
                raise UsageError("out: the array is read-only")
            for image in images:
                if np.may_share_memory(image, out) and np.shares_memory(image, out):
                    raise UsageError("out: the array overlaps an input")
        job = self.job
        status = lib.gf_run(self.engine.handle, byref(job.struct), byref(job.outcome),
                            byref(self.error))
        if (not status and not self.measures and not _warned and job.reports[0].brightness > 1
                and out.dtype.kind == "u"):
            colours = out[..., :-1] if self.format.alpha else out
            warn_clipping(self.filter.function, job.reports[0],
                          bool(colours.max() == np.iinfo(out.dtype).max), 6)
        return int(status)

    def _run_job(self, kind: Kind, image: Any, stream: Optional[int]) -> int:
        self.stream.value = kind.current_stream(image) if stream is None else stream
        if not self.captured and kind.is_capturing():
            self.captured = True
            _captured.append(self)
        status: int = self.run_job(*self.job_arguments)
        if not status and self.measures:
            status = lib.gf_device_results_wait(self.waiting, self.job.results, byref(self.error))
        elif not status and kind is VIEW:  # its package does not know about the work
            status = lib.gf_device_wait(self.engine.handle, self.stream, byref(self.error))
        return status

    def _make_results(self, out: Any) -> Any:
        kept = [Tables(handle) for handle in self.job.taken() if handle]
        made = [
            class_of(self.filter.name).make(
                tables, out[i] if self.batch and out is not None else out, self.dtype,
                self.format.channels)
            for i, tables in enumerate(kept)]
        return made if self.batch else made[0]


# ---- calls --------------------------------------------------------------------------------------


def run(spec: Spec, images: Tuple[Any, ...], values: Tuple[Any, ...], out: Any, backend: str,
        stream: Any, alpha: Optional[bool], threads: Any) -> Any:
    """Run a filter on arrays; the common part of all functions of filters."""
    image = images[0]
    kind = kind_of(spec.names[0], image)
    if len(images) > 1 and type(images[1]) is not type(image):
        _check_kind(spec, kind, image, spec.names[1], images[1])
    if out is not None and type(out) is not type(image):
        _check_kind(spec, kind, image, "out", out)
    if isinstance(kind, TorchKind) and not image.is_cuda:
        return _run_on_host(kind, spec, images, values, out, backend, stream, alpha, threads)
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
        spec, backend, values, alpha, threads, kind.key(images[0]),
        None if len(images) == 1 else kind.key(images[1]), None if out is None else kind.key(out))
    if stream is None or stream == kind.current_stream(images[0]):
        made = _run_plan(key, kind, images, out, stream, returned)
    else:
        with kind.on_stream(stream, images if out is None else images + (out,)):
            made = _run_plan(key, kind, images, out, stream, returned)
    if returned is not None:
        kind.written(returned)
    return made


def _check_kind(spec: Spec, kind: Kind, image: Any, name: str, other: Any) -> None:
    if kind_of(name, other) is not kind:
        raise UsageError("%s and %s are arrays of different kinds: %s and %s" % (
            spec.names[0], name, type(image).__name__, type(other).__name__))


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
        spec, backend, values, alpha, threads = key[:5]
        encode_backend(backend)
        values = tuple(plain(name, value) for name, value in zip(spec.keywords, values))
        key = (spec, backend, values, alpha, threads) + key[5:]
        plan = plans.pop(key, None)
    try:
        if plan is None:
            plan = Plan(spec, backend, values, kind, images, out, alpha, threads)
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


def _run_on_host(kind: TorchKind, spec: Spec, images: Tuple[Any, ...], values: Tuple[Any, ...],
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
    made = run(spec, tuple(views[: len(images)]), values, None if out is None else views[-1],
               backend, stream, alpha, threads)
    if out is not None:
        kind.written(out)
    if spec.filter.info.makes_image:
        return out if out is not None else kind.torch.from_numpy(made)
    results = made if isinstance(made, list) else [made]
    drawn = []
    for i, result in enumerate(results):
        if result.image is not None:
            image = kind.torch.from_numpy(result.image) if out is None else (
                out[i] if isinstance(made, list) else out)
            result = replace(result, image=image)
        drawn.append(result)
    return drawn if isinstance(made, list) else drawn[0]
