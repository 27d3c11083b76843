"""Kinds of arrays: how to read the layout and pointer of an array, and how to make another one.

A kind never imports its package: an array can exist only after its package was imported."""

from __future__ import annotations

import ctypes
import sys
from contextlib import nullcontext
from ctypes import (
    POINTER, Structure, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p,
)
from typing import Any, ContextManager, Dict, Hashable, NamedTuple, Optional, Protocol, Tuple, Union

import numpy as np

from ._library import UsageError

DTYPES = ["uint8", "uint16", "float32"]  # indexed by gf_type
Shape = Tuple[int, ...]


class ArrayLike(Protocol):
    """An array of NumPy, PyTorch, CuPy or another package."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> Any: ...


class TorchStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...


class CupyStream(Protocol):
    @property
    def ptr(self) -> int: ...


Stream = Union[int, TorchStream, CupyStream]


class Layout(NamedTuple):
    """Layout of an array; strides in bytes. device: CUDA device index, None for host memory."""

    shape: Shape
    strides: Tuple[int, ...]
    dtype: str
    device: Optional[int]


class Kind:
    """A kind of array. Each method takes an array of this kind."""

    on_device = True

    def key(self, array: Any) -> Hashable:
        """Return what identifies the layout, as fast as possible."""
        return self.layout(array)

    def layout(self, array: Any) -> Layout:
        raise NotImplementedError

    def pointer(self, array: Any) -> int:
        raise NotImplementedError

    def empty(self, shape: Shape, dtype: str, like: Any, same: bool) -> Any:
        """Return a new array on the device of `like`. same: `like` is contiguous and has the same
        shape and dtype."""
        raise NotImplementedError

    def contiguous(self, array: Any) -> Any:
        raise NotImplementedError

    def current_stream(self, array: Any) -> int:
        return 0

    def on_stream(self, handle: int, arrays: Any) -> ContextManager[Any]:
        """Return a context in which new arrays belong to a stream."""
        return nullcontext()

    def is_capturing(self) -> bool:
        """Return whether the current stream is being captured into a CUDA graph."""
        return False

    def written(self, array: Any) -> None:
        """Tell the package that an array has other values."""


class NumpyKind(Kind):
    on_device = False

    def key(self, array: Any) -> Hashable:
        return array.shape, array.strides, array.dtype

    def layout(self, array: Any) -> Layout:
        native = array.dtype.isnative
        return Layout(array.shape, array.strides, array.dtype.name if native else array.dtype.str,
                      None)

    def pointer(self, array: Any) -> int:
        return int(array.ctypes.data)

    def empty(self, shape: Shape, dtype: str, like: Any, same: bool) -> Any:
        return np.empty(shape, dtype)

    def contiguous(self, array: Any) -> Any:
        return np.ascontiguousarray(array)


class TorchKind(Kind):
    """CUDA tensors of PyTorch."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
            lambda device: torch.cuda.current_stream(device).cuda_stream)
        self.capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None) or (
            torch.cuda.is_current_stream_capturing)
        self.increment = getattr(torch.autograd.graph, "increment_version", lambda tensor: None)

    def key(self, array: Any) -> Hashable:
        return array.shape, array.stride(), array.dtype, array.get_device()

    def layout(self, array: Any) -> Layout:
        size = array.element_size()
        strides = tuple(stride * size for stride in array.stride())
        return Layout(tuple(array.shape), strides, str(array.dtype).replace("torch.", ""),
                      array.get_device())

    def pointer(self, array: Any) -> int:
        return array.data_ptr()  # type: ignore[no-any-return]

    def empty(self, shape: Shape, dtype: str, like: Any, same: bool) -> Any:
        if same:  # takes half the time
            return self.torch.empty_like(like)
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype), device=like.device)

    def contiguous(self, array: Any) -> Any:
        return array.contiguous()

    def current_stream(self, array: Any) -> int:
        return self.raw_stream(array.get_device())  # type: ignore[no-any-return]

    def on_stream(self, handle: int, arrays: Any) -> ContextManager[Any]:
        cuda, device = self.torch.cuda, arrays[0].device
        stream = cuda.ExternalStream(handle, device=device) if handle else (
            cuda.default_stream(device))
        for array in arrays:  # their memory is not reused before the stream has read it
            array.record_stream(stream)
        return cuda.stream(stream)  # type: ignore[no-any-return]

    def is_capturing(self) -> bool:
        return self.capturing()  # type: ignore[no-any-return]

    def written(self, array: Any) -> None:
        if not array.is_inference():  # it has no version
            self.increment(array)


class StreamHandle(NamedTuple):
    """A cudaStream_t that CuPy accepts."""

    handle: int

    def __cuda_stream__(self) -> Tuple[int, int]:
        return 0, self.handle


class CupyKind(Kind):
    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy

    def key(self, array: Any) -> Hashable:
        return array.shape, array.strides, array.dtype, array.device.id

    def layout(self, array: Any) -> Layout:
        return Layout(array.shape, array.strides, array.dtype.name, array.device.id)

    def pointer(self, array: Any) -> int:
        return array.data.ptr  # type: ignore[no-any-return]

    def empty(self, shape: Shape, dtype: str, like: Any, same: bool) -> Any:
        with like.device:
            return self.cupy.empty(shape, dtype)

    def contiguous(self, array: Any) -> Any:
        with array.device:
            return self.cupy.ascontiguousarray(array)

    def current_stream(self, array: Any) -> int:
        with array.device:
            return self.cupy.cuda.get_current_stream().ptr  # type: ignore[no-any-return]

    def on_stream(self, handle: int, arrays: Any) -> ContextManager[Any]:
        streams = self.cupy.cuda
        make = getattr(streams.Stream, "from_external", None)  # CuPy 14
        stream: ContextManager[Any] = (
            make(StreamHandle(handle)) if make else
            streams.ExternalStream(handle, arrays[0].device.id))
        return stream

    def is_capturing(self) -> bool:
        return bool(self.cupy.cuda.get_current_stream().is_capturing())


# ---- other packages: __cuda_array_interface__ and DLPack ----------------------------------------


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p), ("device_type", c_int), ("device_id", c_int32), ("ndim", c_int32),
        ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]


DL_CUDA = 2
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]


class View(NamedTuple):
    """The memory of an array of an unknown package. owner keeps it valid."""

    layout: Layout
    pointer: int
    stream: int
    writable: bool
    owner: Any


def contiguous_strides(shape: Shape, size: int) -> Tuple[int, ...]:
    """Return the strides of a contiguous array, in bytes."""
    strides = [size]
    for length in shape[:0:-1]:
        strides.insert(0, strides[0] * length)
    return tuple(strides[: len(shape)])


def contiguous_layout(shape: Shape, dtype: str) -> Layout:
    """Return the layout of a contiguous array; its device does not matter."""
    return Layout(shape, contiguous_strides(shape, np.dtype(dtype).itemsize), dtype, None)


def view_of(array: Any, stream: Optional[int]) -> View:
    """Return the memory of an array on a device, ready for use on a stream."""
    if hasattr(array, "__cuda_array_interface__"):
        face = array.__cuda_array_interface__
        dtype = np.dtype(face["typestr"])
        strides = face.get("strides") or contiguous_strides(face["shape"], dtype.itemsize)
        # The interface does not name the device: it is the engine's, or the run reports it.
        device = getattr(getattr(array, "device", None), "id", 0)
        name = dtype.name if dtype.isnative else dtype.str
        return View(Layout(tuple(face["shape"]), tuple(strides), name, device),
                    face["data"][0], face.get("stream") or 0, not face["data"][1], array)
    capsule = array.__dlpack__(stream=stream or 1)  # 1: the default stream
    found = DLTensor.from_address(capsule_pointer(capsule, b"dltensor"))
    dtype_name = "%s%d" % ({0: "int", 1: "uint", 2: "float"}.get(found.code, "code"), found.bits)
    shape = tuple(found.shape[: found.ndim])
    size = found.bits // 8
    strides = (tuple(s * size for s in found.strides[: found.ndim]) if found.strides
               else contiguous_strides(shape, size))
    return View(Layout(shape, strides, dtype_name, found.device_id),
                (found.data or 0) + found.byte_offset, stream or 0, True, (array, capsule))


class ViewKind(Kind):
    """Views of arrays of other packages. Arrays of the same kind cannot be made."""

    def layout(self, array: View) -> Layout:
        return array.layout

    def pointer(self, array: View) -> int:
        return array.pointer

    def empty(self, shape: Shape, dtype: str, like: Any, same: bool) -> Any:
        raise UsageError("out: pass an output of shape %s and dtype %s: cannot make an array of the"
                         " kind of the input" % (shape, dtype))

    def contiguous(self, array: View) -> Any:
        raise UsageError("image: the pixels of a row are not contiguous: pass a copy")

    def current_stream(self, array: View) -> int:
        return array.stream


# ---- finding the kind ---------------------------------------------------------------------------

NUMPY, VIEW = NumpyKind(), ViewKind()
_kinds: Dict[type, Kind] = {np.ndarray: NUMPY}


def _conversion_of(name: str, value: Any) -> str:
    """Return how to make an array of a value that is none."""
    if isinstance(value, (list, tuple)):
        return '; pass numpy.array(%s, "uint8"), "uint16" or "float32"' % name
    if type(value).__module__.startswith("PIL."):
        if value.mode in ("L", "RGB", "RGBA", "LA", "F"):
            return "; pass numpy.asarray(%s)" % name
        if value.mode[:1] == "I":
            return '; pass numpy.asarray(%s).astype("uint16") for values from 0 to 65535' % name
        mode = {"1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}.get(value.mode, "RGB")
        return '; pass numpy.asarray(%s.convert("%s"))' % (name, mode)
    return ""


def dtype_advice(name: str, dtype: str) -> str:
    """Return how to convert an array of a dtype that is not supported."""
    try:
        kind = np.dtype(dtype)
    except TypeError:  # of another package
        return ""
    if kind.kind not in "biuf":
        return ""
    if kind.kind == "b":
        return '; pass %s.astype("uint8") * 255' % name
    if kind.kind == "f":
        return '; pass %s.astype("float32")' % name
    native = kind.newbyteorder("=").name
    if native in DTYPES:
        return '; pass %s.astype("%s")' % (name, native)
    return '; pass %s.astype("uint8") for values from 0 to 255, "uint16" for 0 to 65535' % name


def kind_of(name: str, array: Any) -> Kind:
    """Return the kind of an argument. Tensors of PyTorch have the kind of CUDA tensors."""
    kind = _kinds.get(type(array))
    if kind is not None:
        return kind
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if isinstance(array, np.ma.MaskedArray):
        raise UsageError("%s: the mask of a masked array is not supported; pass"
                         " %s.filled(VALUE), or a part without masked samples" % (name, name))
    if isinstance(array, np.ndarray):
        kind = NUMPY
    elif torch is not None and isinstance(array, torch.Tensor):
        kind = next((k for k in _kinds.values() if isinstance(k, TorchKind)), None) or (
            TorchKind(torch))
    elif cupy is not None and isinstance(array, cupy.ndarray):
        kind = CupyKind(cupy)
    elif hasattr(array, "__cuda_array_interface__") or (
            hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] == DL_CUDA):
        return VIEW
    else:
        raise UsageError("%s: expected a NumPy array, a PyTorch tensor or an array in the memory of"
                         " a CUDA device, got %s%s" % (
                             name, type(array).__name__, _conversion_of(name, array)))
    _kinds[type(array)] = kind
    return kind


def stream_handle(stream: Any) -> int:
    """Return the cudaStream_t of an int, or of a stream of PyTorch or CuPy."""
    for name in ("cuda_stream", "ptr"):
        stream = getattr(stream, name, stream)
    if not isinstance(stream, int):
        raise UsageError("stream: expected an int or a stream of PyTorch or CuPy, got %s"
                         % type(stream).__name__)
    return stream
