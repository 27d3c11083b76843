"""Example of libgpufilter in Python with ctypes and NumPy: library.py IN. Install the library first.

Reads IN, smooths its centre (a NumPy view with gaps between rows), and prints a histogram of the result.
Declares only the functions and structures used here; src/gpufilter.h declares all of them."""

import ctypes
import sys
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p

import numpy as np

VERSION = 100  # GF_VERSION of the header that defines the structures below: 0.1.0
MAX_COLUMNS = 12
TYPES = [np.uint8, np.uint16, np.float32]  # indexed by gf_type


class gf_error(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", c_char * 1024), ("cause", c_int)]


class gf_format(ctypes.Structure):
    _fields_ = [("width", c_uint64), ("height", c_uint64), ("channels", c_uint32), ("type", c_int)]


class gf_pixels(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("stride", c_size_t)]


class gf_filter_info(ctypes.Structure):
    _fields_ = [(name, c_char_p) for name in ("name", "summary", "operands", "details", "examples")]
    _fields_ += [("params", c_void_p), ("param_count", c_size_t), ("inputs", c_uint32)]
    _fields_ += [("makes_image", c_bool), ("has_chart", c_bool), ("is_test", c_bool), ("cases", c_void_p)]


class gf_column(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_int)]


class gf_table(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("columns", gf_column * MAX_COLUMNS)]
    _fields_ += [("column_count", c_size_t), ("row_count", c_uint64), ("brief", c_uint64)]
    _fields_ += [("single", c_bool), ("in_text", c_bool)]
    _fields_ += [("chart", c_int), ("curves", c_size_t), ("x_label", c_char_p), ("y_label", c_char_p)]


class gf_value(ctypes.Structure):
    _fields_ = [("type", c_int), ("low", c_uint64), ("high", c_uint64), ("real", c_double), ("text", c_char_p)]


def load():
    """Load the library and declare its functions. ctypes treats undeclared arguments as int."""
    gf = ctypes.CDLL("libgpufilter.so.0")
    error = POINTER(gf_error)
    pointer = c_void_p  # opaque: gf_engine, gf_filter, gf_settings, gf_result
    for name, result, *arguments in [
        ("gf_version", c_char_p),
        ("gf_version_fits", c_bool, c_int),
        ("gf_engine_open", c_int, pointer, POINTER(pointer), error),
        ("gf_engine_close", None, pointer),
        ("gf_load_file", c_int, c_char_p, pointer, POINTER(gf_format), POINTER(pointer), error),
        ("gf_filter_find", pointer, c_char_p),
        ("gf_filter_describe", POINTER(gf_filter_info), pointer),
        ("gf_settings_new", pointer, pointer, c_size_t),
        ("gf_settings_set", c_int, pointer, c_char_p, c_char_p, error),
        ("gf_settings_free", None, pointer),
        ("gf_filter_output", c_int, pointer, pointer, POINTER(gf_format), POINTER(gf_format), error),
        ("gf_run_memory", c_int, pointer, pointer, pointer, POINTER(gf_format), POINTER(gf_pixels), pointer,
         c_size_t, POINTER(pointer), pointer, error),
        ("gf_result_table_count", c_size_t, pointer),
        ("gf_result_table", POINTER(gf_table), pointer, c_size_t),
        ("gf_result_cell", gf_value, pointer, c_size_t, c_uint64, c_size_t),
        ("gf_result_free", None, pointer),
    ]:
        function = getattr(gf, name)
        function.restype, function.argtypes = result, arguments
    if not gf.gf_version_fits(VERSION):
        raise OSError("libgpufilter %s does not match the structures in this file" % gf.gf_version().decode())
    return gf


gf = load()
free = ctypes.CDLL(None).free
free.argtypes = [c_void_p]


def check(call, *arguments):
    """Call a function whose last argument is a gf_error. Raise its message on failure."""
    error = gf_error()
    if call(*arguments, byref(error)):
        raise RuntimeError(error.message.decode(errors="replace"))


def read(path):
    """Read a file into an array of H x W x C."""
    form, pixels = gf_format(), c_void_p()
    check(gf.gf_load_file, path.encode(), None, byref(form), byref(pixels))
    shape, kind = (form.height, form.width, form.channels), np.dtype(TYPES[form.type])
    try:
        rows = ctypes.string_at(pixels, form.height * form.width * form.channels * kind.itemsize)
        return np.frombuffer(rows, kind).reshape(shape).copy()
    finally:
        free(pixels)


def rows_of(image):
    """Return the format and rows of an array of H x W x C, which may be a view of a larger array.

    Reshape a 2-D grey array: array.reshape(*array.shape, 1)."""
    if image.ndim != 3 or image.dtype not in TYPES:
        raise ValueError("expected an array of H x W x C uint8, uint16 or float32")
    height, width, channels = image.shape
    stride, size = image.strides[0], image.itemsize
    if height == 1:
        stride = width * channels * size
    if image.strides[1:] != (channels * size, size) or stride < width * channels * size:
        raise ValueError("the pixels of a row are not contiguous: pass a copy()")
    return gf_format(width, height, channels, TYPES.index(image.dtype)), gf_pixels(image.ctypes.data, stride)


def value_of(cell):
    """Convert a gf_value to a Python value."""
    return [cell.low | cell.high << 64, cell.real, cell.real, (cell.text or b"").decode(), None][cell.type]


def tables_of(result):
    """Return all tables of a result as {table: {column: [values]}}."""
    found = {}
    for t in range(gf.gf_result_table_count(result)):
        table = gf.gf_result_table(result, t).contents
        found[table.name.decode()] = {
            table.columns[x].name.decode(): [value_of(gf.gf_result_cell(result, t, y, x))
                                             for y in range(table.row_count)]
            for x in range(table.column_count)}
    return found


class Engine:
    """Runs filters on arrays, one at a time. Each thread needs its own engine."""

    def __enter__(self):
        self.engine = c_void_p()
        check(gf.gf_engine_open, None, byref(self.engine))
        return self

    def __exit__(self, *_):
        gf.gf_engine_close(self.engine)

    def run(self, name, image, **options):
        """Run a filter on one image. Return the image it produces, or None, and its tables. Options have
        the names of the program's options, with "_" for "-"; the value of a flag is True."""
        found = gf.gf_filter_find(name.encode())
        info = gf.gf_filter_describe(found).contents if found else None
        if not info or info.inputs != 1:
            raise ValueError(name + ": no filter with one input image")
        form, rows = rows_of(image)
        made, out, result = gf_format(), None, c_void_p()
        settings = gf.gf_settings_new(info.params, info.param_count)
        if not settings:
            raise MemoryError
        try:
            for option, value in options.items():
                text = None if value is True else str(value).encode()
                check(gf.gf_settings_set, settings, option.replace("_", "-").encode(), text)
            check(gf.gf_filter_output, found, settings, byref(form), byref(made))
            if made.width:
                out = np.empty((made.height, made.width, made.channels), TYPES[made.type])
            check(gf.gf_run_memory, self.engine, found, settings, byref(form), byref(rows),
                  out.ctypes.data if out is not None else None, out.strides[0] if out is not None else 0,
                  byref(result), None)
            return out, tables_of(result) if result else {}
        finally:
            gf.gf_result_free(result)
            gf.gf_settings_free(settings)


def main(path):
    image = read(path)
    height, width, channels = image.shape
    middle = image[height // 4 : -(height // 4), width // 4 : -(width // 4)]
    with Engine() as engine:
        smoothed, _ = engine.run("smooth", middle, axis="xy", radius=3, keep_brightness=True)
        _, tables = engine.run("hist", smoothed, bins=8)
    print("%d x %d pixels of %d channels, strides %s" % (*middle.shape[1::-1], channels, middle.strides))
    for name, column in tables["bins"].items():
        print("%5s" % name, *("%7s" % value for value in column))


if __name__ == "__main__":
    main(sys.argv[1])
