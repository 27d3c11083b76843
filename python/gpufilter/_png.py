"""PNG files of images in device memory."""

from __future__ import annotations

from ctypes import byref, c_void_p, string_at
from typing import Any, List, Optional, Union

from . import _library as c
from ._arrays import VIEW, ArrayLike, Stream, TorchKind, contiguous_layout, kind_of
from ._arrays import stream_handle, view_of
from ._library import UsageError, check, lib
from ._run import Pixels, engine_of, rows_of


def encode_png(image: ArrayLike, *, stream: Optional[Stream] = None) -> Union[bytes, List[bytes]]:
    """Encode an image in device memory as a PNG file.

    image: array (H, W), (H, W, C) or a batch (N, H, W, C) with C from 1 to 4, of uint8 or uint16,
    in the memory of a CUDA device: of PyTorch, CuPy, or with __cuda_array_interface__ or DLPack.
    stream: CUDA stream of the work; default: the current stream of the package of the array.

    Returns the bytes of the file, or a list of N files for a batch. They are those that
    gpufilter.write writes with compression "fast". Raises UsageError for any other array,
    BackendError without CUDA, and Error if memory is short.
    """
    kind = kind_of("image", image)
    if not kind.on_device or (isinstance(kind, TorchKind) and not image.is_cuda):  # type: ignore[attr-defined]
        raise UsageError("image: expected an array in the memory of a CUDA device, got host memory:"
                         " copy it to the device, or use gpufilter.write")
    handle = None if stream is None else stream_handle(stream)
    array: Any = view_of(image, handle) if kind is VIEW else image
    layout = kind.layout(array)
    rows = rows_of("image", layout)
    if not rows.stride:
        array = kind.contiguous(array)
        rows = rows_of("image", contiguous_layout(layout.shape, layout.dtype))
    pixels = Pixels([rows])
    pixels.point(0, kind.pointer(array))
    files = (c.gf_buffer * rows.images)()
    check(lib.gf_encode_png_device, engine_of("cuda", layout.device).handle, byref(rows.format),
          rows.images, pixels.pointer, files,
          c_void_p(kind.current_stream(array) if handle is None else handle))
    made = [string_at(file.data, file.size) for file in files]
    return made if len(layout.shape) == 4 else made[0]
