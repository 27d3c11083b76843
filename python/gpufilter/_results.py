"""Results of measurements: tables of exact numbers as NumPy arrays."""

from __future__ import annotations

import reprlib
from ctypes import c_void_p, string_at
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Type, Union

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._library import lib, on_delete

Array = npt.NDArray[Any]
REAL = (c.VALUE_FLOAT, c.VALUE_DOUBLE)
COLOURS = {"r": "tab:red", "g": "tab:green", "b": "tab:blue"}


class Layout(NamedTuple):
    """Layout of a table. curves: index of the first column that its chart draws."""

    names: List[str]
    types: List[int]
    rows: int
    single: bool
    chart: int
    curves: int
    x_label: str
    y_label: str

    @classmethod
    def of(cls, table: c.gf_table) -> Layout:
        columns = table.columns[: table.column_count]
        return cls([column.name.decode() for column in columns], [x.type for x in columns],
                   table.row_count, table.single, table.chart, table.curves,
                   (table.x_label or b"").decode(), (table.y_label or b"").decode())


class Tables(Mapping[str, Mapping[str, Any]]):
    """The tables of a result: {table: {column: values}}. Read when first used, then kept.

    Columns are NumPy arrays: uint64 (object for integers of more than 64 bits), float64, or text.
    A table of named values has plain Python values instead; None: no value.
    """

    def __init__(self, handle: int, borrowed: bool = False) -> None:
        """Take over a gf_result; or read all tables of one that another object will free."""
        self._handle: Optional[int] = handle
        if not borrowed:
            on_delete(self, lib.gf_result_free, c_void_p(handle))
        self.passed = bool(lib.gf_result_passed(handle))
        self.text = lib.gf_result_text(handle).decode()
        tables = [lib.gf_result_table(handle, t).contents
                  for t in range(lib.gf_result_table_count(handle))]
        self.layouts = {table.name.decode(): Layout.of(table) for table in tables}
        self._index = {name: t for t, name in enumerate(self.layouts)}
        self._read: Dict[str, Mapping[str, Any]] = {}
        if borrowed:
            vars(self).update(self.__getstate__())

    def __getstate__(self) -> Dict[str, Any]:
        """Return a copy that does not need the gf_result."""
        for name in self:
            self[name]
        return {**vars(self), "_handle": None}

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        if name not in self._read:
            names = self.layouts[name].names
            self._read[name] = {column: self.read(name, column) for column in names}
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._index  # without reading the table

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return repr({name: layout.names for name, layout in self.layouts.items()})

    def read(self, name: str, column: str) -> Any:
        """Return one column, and do not keep it."""
        if name in self._read:
            return self._read[name][column]
        table, layout = self._index[name], self.layouts[name]
        x = layout.names.index(column)
        kind = layout.types[x]
        if layout.single:
            return self._cell(table, 0, x)
        values: Array = np.empty(layout.rows, np.float64 if kind in REAL else np.uint64)
        if not lib.gf_result_column(self._handle, table, x, values.ctypes.data):
            return np.array([self._cell(table, row, x) for row in range(layout.rows)], object)
        if kind == c.VALUE_TEXT:
            pointers, index = np.unique(values, return_inverse=True)
            return np.array([string_at(int(p)).decode() for p in pointers], str)[index]
        return values

    def _cell(self, table: int, row: int, column: int) -> Union[int, float, str, None]:
        cell = lib.gf_result_cell(self._handle, table, row, column)
        if cell.type == c.VALUE_UINT:
            return int(cell.low | cell.high << 64)
        if cell.type == c.VALUE_TEXT:
            return str(cell.text.decode())
        return None if cell.type == c.VALUE_NONE else float(cell.real)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a filter measured.

    `tables` holds every table: `result.tables["bins"]["from"]` is a NumPy array. `text` complements
    them. `image` is the image that the filter drew, an array of the kind of the input, or None.
    Result classes of filters have the same values as attributes. Arrays have an axis for channels
    only if several channels were measured.
    """

    tables: Tables
    text: str
    image: Any

    @classmethod
    def make(cls, tables: Tables, image: Any, dtype: Any, channels: int) -> "Result":
        """Make a result from its tables; dtype and channels are those of the image measured."""
        return cls(tables, tables.text, image, **cls._fields(tables, dtype, channels))

    @classmethod
    def _fields(cls, tables: Tables, dtype: Any, channels: int) -> Dict[str, Any]:
        return {}

    def __repr__(self) -> str:
        """Return the values in short: arrays of more than four numbers by dtype and shape."""
        shown = ["%s=%s" % (field.name, _short(getattr(self, field.name)))
                 for field in fields(self) if field.name not in ("tables", "text", "image")]
        return "%s(%s)" % (type(self).__name__, ", ".join(shown) or repr(self.tables))

    def plot(self, ax: Any = None) -> Any:
        """Draw the first table that has a chart with matplotlib.

        ax: axes to draw into; default: those of a new figure. Returns the axes. Raises Error if no
        table has a chart, and ImportError without matplotlib.
        """
        charts = [name for name in self.tables if self.tables.layouts[name].chart != c.CHART_NONE]
        if not charts:
            raise c.Error("this result has no chart")
        if ax is None:
            pyplot: Any = import_module("matplotlib.pyplot")
            ax = pyplot.subplots()[1]
        layout, table = self.tables.layouts[charts[0]], self.tables[charts[0]]
        curves = layout.names[layout.curves:]
        for curve in curves:
            style = {"label": curve, "color": COLOURS.get(curve)}
            if layout.chart == c.CHART_BARS:
                edges = _edges(table)
                if table["to"].dtype == np.uint64:  # the last bin ends at the next integer
                    edges[-1] += 1
                ax.stairs(table[curve], edges, **style)
            else:
                ax.plot(table[layout.names[0]], table[curve], **style)
        ax.set_xlabel(layout.x_label)
        ax.set_ylabel(layout.y_label)
        if len(curves) > 1:
            ax.legend()
        return ax


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size <= 4 and value.dtype.names is None:
        return repr(value.tolist())
    if isinstance(value, np.ndarray):
        return "<%s %s>" % ("record" if value.dtype.names else value.dtype, value.shape)
    if isinstance(value, Mapping):
        return "{%s}" % ", ".join("%r: %s" % (key, _short(one)) for key, one in value.items())
    return reprlib.repr(value)


def _edges(bins: Mapping[str, Any]) -> Array:
    return np.append(bins["from"], bins["to"][-1:]).astype(np.float64)


def _squeeze(columns: List[Any]) -> Array:
    """Return one column, or all of them as the last axis."""
    return columns[0] if len(columns) == 1 else np.stack(columns, -1)


@dataclass(frozen=True, eq=False, repr=False)
class HistResult(Result):
    """Counts of samples.

    counts: uint64 of shape (bins,), or (bins, channels) for channel="all".
    edges: float64 of shape (bins + 1,), in sample values. Bin k contains edges[k] <= v <
    edges[k + 1], the last bin also its upper edge. Without range, the first and the last bin of
    float32 images also contain all samples outside of 0..1.
    range: (edges[0], edges[-1]), the range used; with range="data", that of the finite samples.
    channels: names of the measured channels.
    nan: NaN and nodata samples, in no bin, for each channel.
    below, above: samples outside of the edges, for each channel: in no bin with range, in the first
    and the last one without.
    statistics: arrays `count`, `min`, `max`, `mean`, `std`, `median`, `p1` and `p99` with one entry
    per channel. None only without statistics=True where a bin holds several values.
    row_counts: with per_row, the counts of each row, of shape (H, bins[, channels]); else None.
    extracted: with extract, a structured array of the samples in the chosen bins, in image order
    and bin by bin: [bin if several,] x, y, channel (index in the pixel; 255: luma), value.
    """

    counts: Array
    edges: Array
    channels: Tuple[str, ...]
    nan: Array
    below: Array
    above: Array
    statistics: Optional[Mapping[str, Any]]
    row_counts: Optional[Array]
    extracted: Optional[Array]

    @property
    def range(self) -> Tuple[float, float]:
        """Return the lowest and the highest edge."""
        return float(self.edges[0]), float(self.edges[-1])

    @classmethod
    def _fields(cls, tables: Tables, dtype: Any, channels: int) -> Dict[str, Any]:
        bins, totals = tables["bins"], tables["totals"]
        names = tuple(str(name) for name in totals["channel"])
        none = np.zeros(len(names), np.uint64)
        fields = {
            "counts": _squeeze([bins[name] for name in names]),
            "edges": _edges(bins),
            "channels": names,
            "nan": totals["nan"],
            "below": totals.get("below", none),
            "above": totals.get("above", none),
            "statistics": tables.get("statistics"),
            "row_counts": None,
            "extracted": None,
        }
        if "rows" in tables:
            rows = tables.read("rows", "count")
            rows = rows.reshape(-1, len(names), len(bins["bin"]))
            fields["row_counts"] = _squeeze([rows[:, i] for i in range(len(names))])
        if "samples" in tables:
            fields["extracted"] = _extracted(tables, names, dtype, channels)
        return fields


def _extracted(tables: Tables, names: Tuple[str, ...], dtype: Any, channels: int) -> Array:
    last = channels - 1
    index = {"grey": 0, "r": 0, "g": 1, "b": 2, "a": last, "data": last, "luma": 255}
    kinds = [("bin", np.uint32), ("x", np.uint64), ("y", np.uint64), ("channel", np.uint8),
             ("value", dtype)]
    several = tables.layouts["extracted"].rows > 1
    found: Array = np.empty(tables.layouts["samples"].rows, kinds[0 if several else 1:])
    for name in found.dtype.names or ():
        if name != "channel":
            found[name] = tables.read("samples", name)
        else:
            text = tables.read("samples", name)
            for channel in np.unique(text):
                found[name][text == channel] = index[channel]
    return found


@dataclass(frozen=True, eq=False, repr=False)
class AxisSumResult(Result):
    """Sums of rows or columns.

    sums: uint64, or float64 for float32 images, of shape (rows or columns,[ channels]). With
    mean=True, the sums divided by their lengths, float64.
    channels: names of the summed channels.
    totals: sum of each channel; object for integers of more than 64 bits. means: float64.
    """

    sums: Array
    channels: Tuple[str, ...]
    totals: Array
    means: Array

    @classmethod
    def _fields(cls, tables: Tables, dtype: Any, channels: int) -> Dict[str, Any]:
        totals = tables["totals"]
        sums = tables["means" if "means" in tables else "sums"]
        names = tuple(str(name) for name in totals["channel"])
        return {
            "sums": _squeeze([sums[name] for name in names]),
            "channels": names,
            "totals": totals["sum"],
            "means": totals["mean"],
        }


@dataclass(frozen=True, eq=False, repr=False)
class DotResult(Result):
    """Products of two images, over all measured channels; `tables["products"]` has each channel.

    ab, aa, bb: sums of products; exact int, or float for float32 images.
    cosine, mse, psnr: similarity; psnr in dB, infinite for equal images.
    """

    ab: Union[int, float]
    aa: Union[int, float]
    bb: Union[int, float]
    cosine: float
    mse: float
    psnr: float

    @classmethod
    def _fields(cls, tables: Tables, dtype: Any, channels: int) -> Dict[str, Any]:
        last = {name.replace(".", ""): column[-1] for name, column in tables["products"].items()
                if name != "channel"}
        return {name: value.item() if isinstance(value, np.generic) else value
                for name, value in last.items()}


@dataclass(frozen=True)
class Difference:
    """The first differing sample, in the order y, x, channel: its value in `a` and in `b`."""

    x: int
    y: int
    channel: str
    a: Union[int, float]
    b: Union[int, float]


@dataclass(frozen=True, eq=False, repr=False)
class CompareResult(Result):
    """Differences of two images. True in a condition if they are equal.

    equal: whether all samples have the same bits, or differ by at most `tolerance`.
    samples: number of samples compared. differing: number of samples that differ (by more).
    largest: largest difference of all samples. first: first Difference that counts, or None.
    """

    equal: bool
    samples: int
    differing: int
    largest: Union[int, float]
    first: Optional[Difference]

    @classmethod
    def _fields(cls, tables: Tables, dtype: Any, channels: int) -> Dict[str, Any]:
        found = tables["comparison"]
        first = None
        if found["differing"]:
            first = Difference(found["x"], found["y"], found["channel"], found["first"],
                               found["second"])
        fields = {name: found[name] for name in ("samples", "differing", "largest")}
        return {"equal": tables.passed, **fields, "first": first}

    def __bool__(self) -> bool:
        return self.equal


@dataclass(frozen=True, eq=False)
class PipelineResult:
    """What a pipeline with steps that measure, or with several writers, returns.

    image: the image after the last step; None if that is the input. results: those of the steps
    that measure, in their order; for a batch, a list of one per image each. written: images of
    the writers, by their names. With files, a Report stands for each image.
    """

    image: Any
    results: List[Any]
    written: Dict[str, Any]


# Result classes of filters; any other filter that measures returns a Result.
CLASSES: Dict[str, Type[Result]] = {
    "hist": HistResult,
    "axis-sum": AxisSumResult,
    "dot": DotResult,
    "compare": CompareResult,
}


def class_of(name: str) -> Type[Result]:
    """Return the result class of a filter that measures."""
    return CLASSES.get(name, Result)
