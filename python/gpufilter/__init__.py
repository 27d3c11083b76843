"""Exact image filters for NumPy arrays, PyTorch tensors and CUDA arrays.

Each filter is a function: `gpufilter.smooth(image, radius=3)`; `gpufilter.pipeline` runs several in
one pass. Every backend produces the same
bits. docs/python.md is the guide; docs/numerics.md defines the result of every filter.
"""

from . import _functions, steps
from ._files import Outcome, Report
from ._functions import *  # noqa: F403 - filters, read, write, batch
from ._library import (
    BackendError, ClippingWarning, DamageWarning, Error, ExistsError, NotFoundError, UsageError,
    lib,
)
from ._pipeline import Pipeline, Step, pipeline
from ._png import decode_png, encode_png
from ._results import (
    AxisSumResult, CompareResult, Difference, DotResult, HistResult, PipelineResult, Result,
)
from ._run import clear

__version__: str = lib.gf_version().decode()
__all__ = [
    "AxisSumResult", "BackendError", "ClippingWarning", "CompareResult", "DamageWarning",
    "Difference", "DotResult", "Error", "ExistsError", "HistResult", "NotFoundError", "Outcome",
    "Pipeline", "PipelineResult", "Report", "Result", "Step", "UsageError", "clear", "decode_png",
    "encode_png", "pipeline", "steps",
]
__all__ += _functions.__all__
