"""The shared library: structures of gpufilter.h, prototypes, and errors."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import glob
import itertools
import os
import re
import weakref
from ctypes import (
    CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_int, c_size_t,
    c_uint32, c_uint64, c_void_p,
)
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

VERSION = 100  # GF_VERSION of the header that defines the structures below: 0.1.0
MAX_COLUMNS = 12
DEFAULT_QUALITY = 95
ALL_PAGES = 2**32 - 1
MAX_PAGE = 2**20
OK, FAILED, USAGE, NO_BACKEND = range(4)
FLAG, INT, FLOAT, CHOICE, LIST, SIZE, RANGE, TEXT, IMAGE, SAMPLES, PAIR, INT_PAIR = range(12)
VALUE_UINT, VALUE_FLOAT, VALUE_DOUBLE, VALUE_TEXT, VALUE_NONE = range(5)
CHART_NONE, CHART_BARS, CHART_LINES = range(3)
FILES, HOST, DEVICE = range(3)
(NAMES_BACKEND, NAMES_SIMD, NAMES_STAGE, NAMES_FORMAT, NAMES_COMPRESSION,
 NAMES_TIFF_COMPRESSION) = range(6)


class gf_error(Structure):
    _fields_ = [("status", c_int), ("message", c_char * 1024), ("cause", c_int),
                ("step", c_uint32)]


class gf_format(Structure):
    _fields_ = [("width", c_uint64), ("height", c_uint64), ("channels", c_uint32), ("type", c_int),
        ("alpha", c_bool)]


class gf_pixels(Structure):  # and gf_out_pixels
    _fields_ = [("data", c_void_p), ("stride", c_size_t)]


class gf_buffer(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class gf_param(Structure):
    _fields_ = [
        ("name", c_char_p), ("letter", c_char), ("type", c_int), ("metavar", c_char_p),
        ("help", c_char_p), ("fallback", c_char_p), ("min", c_double), ("max", c_double),
        ("choices", POINTER(c_char_p)), ("group", c_char_p),
    ]


class gf_filter_info(Structure):
    _fields_ = [
        ("name", c_char_p), ("summary", c_char_p), ("operands", c_char_p), ("details", c_char_p),
        ("examples", c_char_p), ("params", POINTER(gf_param)), ("param_count", c_size_t),
        ("inputs", c_uint32), ("makes_image", c_bool), ("has_chart", c_bool), ("is_test", c_bool),
        ("cases", POINTER(c_char_p)),
    ]


class gf_column(Structure):
    _fields_ = [("name", c_char_p), ("type", c_int)]


class gf_table(Structure):
    _fields_ = [
        ("name", c_char_p), ("columns", gf_column * MAX_COLUMNS), ("column_count", c_size_t),
        ("row_count", c_uint64), ("brief", c_uint64), ("single", c_bool), ("in_text", c_bool),
        ("chart", c_int), ("curves", c_size_t), ("x_label", c_char_p), ("y_label", c_char_p),
    ]


class gf_value(Structure):
    _fields_ = [
        ("type", c_int), ("low", c_uint64), ("high", c_uint64), ("real", c_double),
        ("text", c_char_p),
    ]


class gf_engine_options(Structure):
    _fields_ = [
        ("backend", c_char_p), ("devices", c_char_p), ("simd", c_char_p), ("threads", c_uint32),
        ("unthreaded", c_bool), ("rows_per_strip", c_uint64), ("verify", c_bool),
        ("max_memory", c_uint64),
    ]


class gf_crop(Structure):
    _fields_ = [("x", c_uint64), ("y", c_uint64), ("width", c_uint64), ("height", c_uint64)]


class gf_write_options(Structure):
    _fields_ = [
        ("format", c_char_p), ("compression", c_char_p), ("tiff_compression", c_char_p),
        ("quality", c_uint32), ("depth", c_int), ("strip", c_bool),
    ]


class gf_file_options(Structure):
    _fields_ = [
        ("write", gf_write_options), ("sample_format", c_char_p), ("force", c_bool),
        ("sync", c_int), ("dry_run", c_bool), ("linear", c_bool),
        ("max_pixels", c_uint64), ("max_memory", c_uint64), ("max_chunk", c_uint64),
        ("max_seconds", c_uint32), ("no_sandbox", c_bool), ("raw", c_void_p),
        ("page", c_uint32), ("autorotate", c_bool), ("crop", POINTER(gf_crop)), ("ready", c_void_p),
        ("ready_context", c_void_p), ("progress", c_void_p), ("progress_context", c_void_p),
        ("alpha", c_int), ("premultiply", c_int), ("strict", c_bool),
        ("keep_nodata", c_bool), ("as_", c_int), ("channels", c_char_p),
    ]


class gf_busy(Structure):
    _fields_ = [("seconds", c_double), ("workers", c_uint32)]


class gf_remarks(Structure):
    _fields_ = [("damage", c_char * 192), ("notes", c_char * 512), ("outside", c_uint64),
                ("nodata", c_uint64)]


class gf_report(Structure):
    _fields_ = [
        ("backend", c_char * 16), ("device", c_char * 192), ("reason", c_char * 192),
        ("device_failed", c_bool), ("verified", c_bool), ("in_", gf_format),
        ("pixels", c_uint64), ("in_bytes", c_uint64), ("pages", c_uint32),
        ("rows_per_strip", c_uint64), ("strips", c_uint64), ("strip_bytes", c_uint64),
        ("busy", gf_busy * 5), ("processes", c_uint32),
        ("start_seconds", c_double), ("total_seconds", c_double), ("remarks", gf_remarks),
    ]


class gf_step_report(Structure):
    _fields_ = [
        ("in_", gf_format), ("out", gf_format), ("seconds", c_double), ("out_bytes", c_uint64),
        ("clipped", c_uint64), ("counted", c_uint64), ("dropped", c_uint32),
        ("brightness", c_double), ("advice", c_char * 64), ("file", c_char_p),
    ]


class gf_outcome(Structure):
    _fields_ = [("report", gf_report), ("steps", POINTER(gf_step_report)),
                ("results", POINTER(c_void_p))]


class gf_step(Structure):
    _fields_ = [
        ("filter", c_void_p), ("settings", c_void_p), ("from_", c_uint32), ("in_path", c_char_p),
        ("in_", POINTER(gf_pixels)), ("out_path", c_char_p), ("out", POINTER(gf_pixels)),
        ("write", POINTER(gf_write_options)),
    ]


class gf_job(Structure):
    _fields_ = [
        ("steps", POINTER(gf_step)), ("step_count", c_uint32), ("memory", c_int),
        ("in_path", c_char_p), ("in_", POINTER(gf_pixels)), ("count", c_uint64),
        ("format", gf_format), ("stream", c_void_p), ("options", POINTER(gf_file_options)),
    ]


class gf_step_info(Structure):
    _fields_ = [
        ("in_", gf_format), ("out", gf_format), ("effective", c_void_p), ("before", c_uint64),
        ("after", c_uint64), ("result_bytes", c_uint64), ("measures_first", c_void_p),
    ]


class gf_device_images(Structure):
    _fields_ = [("count", c_uint64), ("in_", POINTER(gf_pixels)),
                ("second", POINTER(POINTER(gf_pixels))), ("out", POINTER(POINTER(gf_pixels)))]


class gf_batch_item(Structure):
    _fields_ = [("in_", c_char_p), ("out", POINTER(c_char_p)), ("replace", c_bool)]


class gf_batch_done(Structure):
    _fields_ = [
        ("item", c_uint64), ("status", c_int), ("error", POINTER(gf_error)),
        ("outcome", POINTER(gf_outcome)),
    ]


DONE = CFUNCTYPE(c_bool, c_void_p, POINTER(gf_batch_done))


class gf_batch_options(Structure):
    _fields_ = [
        ("engine", gf_engine_options), ("in_order", c_bool), ("fail_fast", c_bool), ("done", DONE),
        ("context", c_void_p), ("source", c_void_p),
    ]


class Error(Exception):
    """Failure of a file, an image, memory or the system.

    Attributes: `message` is one line that names the file or keyword, the cause and, where there is
    one, the remedy. `status` is the exit code of the program: 1, or 2 and 3 in subclasses.
    """

    status = FAILED

    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = self.status if status is None else status


class DamageWarning(UserWarning):
    """The pixels of a file are damaged and were read all the same."""


class ClippingWarning(UserWarning):
    """Samples clipped: a filter made an image brighter, which is issued once per process, or depth
    stored float32 samples outside of 0..1 as integers."""


class UsageError(Error, ValueError):
    """An option, an array or another argument is invalid. Its status is 2."""

    status = USAGE


class BackendError(Error, RuntimeError):
    """The requested backend or device is not available. Its status is 3."""

    status = NO_BACKEND


class NotFoundError(Error, FileNotFoundError):
    """A file or directory does not exist. Its status is 1."""


class ExistsError(Error, FileExistsError):
    """An output exists, and force is not set. Its status is 1."""


# Keywords of functions, for messages: their names, whether they are flags, and their choices.
KEYWORDS: Dict[str, Tuple[bool, List[str]]] = {
    name: (False, []) for name in ("backend", "threads", "alpha")}
VALUES = {"alpha last": "alpha=True", "alpha none": "alpha=False",  # of other types in Python
          "page all": 'page="all"', "page N": "page=N", "range LO,HI": "range=(LO, HI)",
          "channels 1,2,3": 'channels="1,2,3"'}


def in_python(message: str) -> str:
    """Return a message with keywords instead of options of the program: --max-pixels is
    max_pixels=. Options that no function has are not changed."""
    def keyword(found: "re.Match[str]") -> str:
        name, value = python_name(found[1]), found[2] or ""
        if name not in KEYWORDS:
            return found[0]
        flag, choices = KEYWORDS[name]
        if name + value in VALUES:
            return VALUES[name + value]
        if value.startswith(":"):
            return name + value
        if value.strip() in choices:
            return '%s="%s"' % (name, value.strip())
        if value.startswith(" '"):
            return "%s=%s" % (name, value.strip())
        return name + ("=True" if flag else "=") + value

    return re.sub(r"(?<![\w./-])--([a-z][a-z-]*[a-z])(?![\w./-])(:| '[^']*'| \w+(?:,\w+)*)?",
                  keyword, message)


def error_of(status: int, error: gf_error) -> Error:
    """Return the exception for a status and its gf_error."""
    kind = {USAGE: UsageError, NO_BACKEND: BackendError}.get(status, Error)
    if kind is Error:
        kind = {errno.ENOENT: NotFoundError, errno.EEXIST: ExistsError}.get(error.cause, Error)
    made = kind(in_python(error.message.decode(errors="replace")), status)
    if isinstance(made, OSError):
        made.errno = error.cause
    return made


def check(call: Any, *arguments: Any) -> None:
    """Call a function whose last argument is a gf_error. Raise its message on failure."""
    error = gf_error()
    status = call(*arguments, byref(error))
    if status:
        raise error_of(status, error)


def bytes_of(name: str, path: Any) -> bytes:
    """Return a path as the system stores it. name: of the argument."""
    try:
        stored = os.fsencode(path)
    except TypeError:
        raise UsageError("%s: expected a path, got %s" % (name, type(path).__name__)) from None
    if b"\0" in stored:
        raise UsageError("%s: %r: a path cannot contain a NUL character" % (name, path))
    return stored


# Name, result and arguments of each function. P: an opaque pointer.
P = c_void_p
PROTOTYPES = [
    ("gf_version", c_char_p),
    ("gf_version_fits", c_bool, c_int),
    ("gf_has_cuda", c_bool),
    ("gf_names", POINTER(c_char_p), c_int),
    ("gf_filter_at", P, c_size_t),
    ("gf_filter_describe", POINTER(gf_filter_info), P),
    ("gf_job_inspect", c_int, P, P, P),
    ("gf_pipeline_parse", c_int, c_char_p, c_char_p, P, P, P),
    ("gf_pipeline_steps", POINTER(gf_step), P, P),
    ("gf_pipeline_text", P, P, c_bool),
    ("gf_pipeline_free", None, P),
    ("gf_settings_new", P, P, c_size_t),
    ("gf_settings_set", c_int, P, c_char_p, c_char_p, P),
    ("gf_settings_free", None, P),
    ("gf_engine_open", c_int, P, P, P),
    ("gf_engine_close", None, P),
    ("gf_run", c_int, P, P, P, P),
    ("gf_run_batch", c_int, P, P, c_uint64, P, P),
    ("gf_device_job_new", c_int, P, P, P, P),
    ("gf_device_job_run", c_int, P, P, P, P, P),
    ("gf_device_job_free", None, P),
    ("gf_device_results_wait", c_int, P, P, P),
    ("gf_device_wait", c_int, P, P, P),
    ("gf_encode_png_device", c_int, P, P, c_uint64, P, P, P, P),
    ("gf_png_format", c_int, P, c_size_t, P, P),
    ("gf_decode_png_device", c_int, P, c_uint64, P, P, P, P, P, P),
    ("gf_load_file", c_int, c_char_p, P, P, P, P, P),
    ("gf_save_file", c_int, c_char_p, P, P, P, P),
    ("gf_result_table_count", c_size_t, P),
    ("gf_result_table", POINTER(gf_table), P, c_size_t),
    ("gf_result_cell", gf_value, P, c_size_t, c_uint64, c_size_t),
    ("gf_result_column", c_bool, P, c_size_t, c_size_t, P),
    ("gf_result_text", c_char_p, P),
    ("gf_result_passed", c_bool, P),
    ("gf_result_free", None, P),
]


def find_library() -> str:
    """Return the library in this directory (a wheel), $GPUFILTER_LIBRARY, or the system's."""
    bundled = sorted(glob.glob(os.path.join(os.path.dirname(__file__), "libgpufilter.so*")))
    return (bundled[0] if bundled else os.environ.get("GPUFILTER_LIBRARY")
            or ctypes.util.find_library("gpufilter") or "libgpufilter.so.0")


def load(path: str) -> ctypes.CDLL:
    """Load the library and declare its functions. Calls release the GIL."""
    try:
        library = ctypes.CDLL(path)
    except OSError as failure:
        raise ImportError(
            "cannot load libgpufilter: %s; install it, or set GPUFILTER_LIBRARY" % failure
        ) from failure
    for name, result, *arguments in PROTOTYPES:
        function = getattr(library, str(name), None)
        if function is None:  # an older library: the version check reports it
            continue
        function.restype, function.argtypes = result, arguments
    if not library.gf_version_fits(VERSION):
        raise ImportError("%s has version %s, which does not fit this package: %d.%d" % (
            path, library.gf_version().decode(), VERSION // 10000, VERSION // 100 % 100))
    return library


lib = load(find_library())
free = ctypes.CDLL(None).free
free.argtypes, free.restype = [c_void_p], None


def on_delete(owner: Any, call: Any, *arguments: Any) -> None:
    """Call a function when an object is deleted. Not at exit: other threads may still use it."""
    weakref.finalize(owner, call, *arguments).atexit = False


class Param(NamedTuple):
    """A parameter of a filter. `keyword` is its name in Python."""

    name: str
    keyword: str
    type: int
    metavar: str
    help: str
    fallback: Optional[str]
    min: float
    max: float
    choices: List[str]


class Filter(NamedTuple):
    """A filter and its description. `name` is the command, `function` its name in Python."""

    handle: int
    name: str
    function: str
    info: gf_filter_info
    params: List[Param]


def texts(pointer: Any) -> List[str]:
    """Return a NULL-terminated array of texts; [] for NULL."""
    found: List[str] = []
    while pointer and pointer[len(found)] is not None:
        found.append(pointer[len(found)].decode())
    return found


def python_name(name: str) -> str:
    """Return the Python name of an option or a filter: "keep-brightness" is keep_brightness, and
    "as", a word of the language, is as_."""
    return "as_" if name == "as" else name.replace("-", "_")


def _text(value: Optional[bytes]) -> str:
    return (value or b"").decode()


def _all_filters() -> Iterator[Filter]:
    for index in itertools.count():
        handle = lib.gf_filter_at(index)
        if not handle:
            return
        info = lib.gf_filter_describe(handle).contents
        params = [
            Param(_text(p.name), python_name(_text(p.name)), p.type, _text(p.metavar),
                  _text(p.help), None if p.fallback is None else _text(p.fallback), p.min, p.max,
                  texts(p.choices))
            for p in info.params[: info.param_count]
        ]
        yield Filter(handle, _text(info.name), python_name(_text(info.name)), info, params)


FILTERS: Dict[str, Filter] = {found.name: found for found in _all_filters()}
KEYWORDS.update((param.keyword, (param.type == FLAG, param.choices))
                for found in FILTERS.values() for param in found.params)
KEYWORDS["backend"] = False, texts(lib.gf_names(NAMES_BACKEND))
