"""PNG files from and to images in device memory."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from ctypes import byref, c_void_p, string_at
from typing import Any, List, Optional, Sequence, Union

import numpy as np

from . import _library as c
from ._arrays import (
    DTYPES, VIEW, ArrayLike, Stream, TorchKind, contiguous_layout, kind_of, stream_handle, view_of,
)
from ._library import UsageError, check, error_of, lib
from ._run import Pixels, engine_of, rows_of


def encode_png(image: ArrayLike, *, alpha: Optional[bool] = None,
               stream: Optional[Stream] = None) -> Union[bytes, List[bytes]]:
    """Encode an image in device memory as a PNG file.

    image: array (H, W), (H, W, C) or a batch (N, H, W, C) with C from 1 to 4, of uint8 or uint16,
    in the memory of a CUDA device: of PyTorch, CuPy, or with __cuda_array_interface__ or DLPack.
    alpha: the last of 2 or 4 channels is alpha; default: only of 4. PNG stores no other fourth or
    second channel. stream: CUDA stream of the work; default: the current stream of the package of
    the array.

    Returns the bytes of the file, or a list of N files for a batch. They are those that
    gpufilter.write writes with compression "fast". Raises UsageError for any other array,
    BackendError without CUDA, and Error if memory is short.
    """
    kind = kind_of("image", image)
    array: Any = image
    if not kind.on_device or (isinstance(kind, TorchKind) and not array.is_cuda):
        raise UsageError("image: expected an array in the memory of a CUDA device, got host memory:"
                         " copy it to the device, or use gpufilter.write")
    handle = None if stream is None else stream_handle(stream)
    if kind is VIEW:
        array = view_of(image, handle)
    layout = kind.layout(array)
    rows = rows_of("image", layout, alpha)
    if not rows.stride:
        with nullcontext() if handle is None else kind.on_stream(handle, (array,)):
            array = kind.contiguous(array)
        rows = rows_of("image", contiguous_layout(layout.shape, layout.dtype), alpha)
    pixels = Pixels(rows)
    pixels.point(kind.pointer(array))
    files = (c.gf_buffer * rows.images)()
    check(lib.gf_encode_png_device, engine_of("cuda", layout.device).handle, byref(rows.format),
          rows.images, pixels.pointer, files,
          c_void_p(kind.current_stream(array) if handle is None else handle))
    made = [string_at(file.data, file.size) for file in files]
    return made if len(layout.shape) == 4 else made[0]


def decode_png(data: Union[bytes, Sequence[bytes]], device: Any = "cuda") -> Any:
    """Decode PNG files to images in the memory of a CUDA device.

    data: a file as bytes, or a sequence of files; any object with the buffer protocol. All kinds of
    PNG are read. device: a CUDA device, as PyTorch accepts it. The work runs on the current stream
    of PyTorch, and is complete when the call returns.

    Returns a tensor of PyTorch, or a list of them: the arrays of gpufilter.read, of shape (H, W) or
    (H, W, C) and dtype uint8 or uint16. Raises Error for a file that cannot be read, UsageError for
    other data, and BackendError without CUDA.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        raise UsageError("decode_png: returns tensors of PyTorch: import torch before")
    single = isinstance(data, (bytes, bytearray, memoryview))
    files = [_buffer_of(one) for one in ([data] if single else data)]
    count = len(files)
    buffers, formats = (c.gf_buffer * count)(), (c.gf_format * count)()
    outs, errors = (c.gf_pixels * count)(), (c.gf_error * count)()
    for i, file in enumerate(files):
        buffers[i].data, buffers[i].size = file.ctypes.data, file.size
        check(lib.gf_png_format, buffers[i].data, file.size, byref(formats[i]))
    place = torch.device(device)
    if place.type != "cuda":
        raise UsageError("device: expected a CUDA device, got %s" % place)
    images = []
    with torch.cuda.device(place):
        index = torch.cuda.current_device()
        for form, out in zip(formats, outs):
            shape = (form.height, form.width, form.channels)[: 3 if form.channels > 1 else 2]
            image = torch.empty(shape, dtype=getattr(torch, DTYPES[form.type]), device=place)
            out.data, out.stride = image.data_ptr(), image.stride(0) * image.element_size()
            images.append(image)
        check(lib.gf_decode_png_device, engine_of("cuda", index).handle, count, buffers, formats,
              outs, c_void_p(torch.cuda.current_stream().cuda_stream), errors)
    for i, error in enumerate(errors):
        if error.status:
            failure = error_of(error.status, error)
            raise failure if single else type(failure)("file %d: %s" % (i, failure.message))
    return images[0] if single else images


def _buffer_of(data: Any) -> Any:
    """Return the bytes of a file as an array."""
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, ValueError):
        raise UsageError("data: expected bytes or a sequence of bytes, got %s"
                         % type(data).__name__) from None
