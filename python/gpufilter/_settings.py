"""Keywords as the library takes them: settings of a filter, and options for files."""

from __future__ import annotations

import operator
import reprlib
from ctypes import c_void_p, pointer
from enum import Flag, auto
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from . import _library as c
from ._library import Filter, UsageError, bytes_of, check, lib, on_delete

# ---- settings of a filter -----------------------------------------------------------------------


PLAIN = {bool, float, int, str, type(None)}


def plain(name: str, value: Any) -> Any:
    """Return a value of a plain type: those in the keys of plans must not change."""
    if hasattr(value, "tolist"):  # NumPy, PyTorch, CuPy
        value = value.tolist()
    return value if type(value) in PLAIN else text_of(name, value)


def text_of(name: str, value: Any) -> str:
    """Return the text of a value, as on a command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        # Equal numbers, which share a plan, have the same text: 2.0 is "2", -0.0 is "0".
        text = repr(value + 0.0)
        return text[:-2] if text.endswith(".0") else text
    if hasattr(value, "__index__"):
        return str(operator.index(value))
    try:
        return ",".join(text_of(name, plain(name, item)) for item in value)
    except TypeError:
        raise UsageError("%s: expected a number, a text or a sequence, got %s"
                         % (name, type(value).__name__)) from None


def given(found: Filter, values: Dict[str, Any], files: bool
          ) -> Iterator[Tuple[str, Optional[bytes]]]:
    """Yield the options of a filter that are not the default, and their texts; None: a flag.

    files: an image or samples go to a path. If not, a bool tells whether they are wanted.
    """
    params = {param.keyword: param for param in found.params}
    for keyword, value in values.items():
        param = params.get(keyword)
        if param is None:
            raise UsageError("%s has no option %s" % (found.function, keyword))
        if value is None:
            continue
        if param.type in (c.IMAGE, c.SAMPLES):
            if files or value:
                yield param.name, bytes_of(keyword, value) if files else b"-"
            continue
        value = plain(keyword, value)
        if param.type == c.FLAG:
            if value:
                yield param.name, None
        else:
            text = text_of(keyword, value)
            if "\0" in text:
                raise UsageError("%s: the text contains a NUL character" % keyword)
            if text != param.fallback:
                yield param.name, text.encode()


class Settings:
    """A gf_settings for a filter. None, and a default, are not set."""

    def __init__(self, found: Filter, values: Dict[str, Any], files: bool = False) -> None:
        info = found.info
        self.handle = lib.gf_settings_new(info.params, info.param_count)
        if not self.handle:
            raise MemoryError
        on_delete(self, lib.gf_settings_free, c_void_p(self.handle))
        for name, text in given(found, values, files):
            check(lib.gf_settings_set, self.handle, name.encode(), text)


# ---- options for files --------------------------------------------------------------------------


class Use(Flag):
    """What a call does with files."""

    READ = auto()  # read an image, without a filter
    MEASURE = auto()  # run a filter that produces a result
    MAKE = auto()  # run a filter that produces an image
    FILTER = MEASURE | MAKE
    WRITE = auto()  # write an image: a given one, or what a filter produces or draws
    COPY = auto()  # copy the metadata of the input to it; a filter with two inputs does not


class Option(NamedTuple):
    """A keyword of the functions for files, and the member of gf_file_options that it sets."""

    name: str
    uses: Use  # a call that does any of this has the keyword
    hint: str
    default: Any
    convert: Callable[[Any], Any]  # to the member; raises TypeError or ValueError
    expected: str
    help: str
    choices: List[str] = []

    def member(self, value: Any) -> Any:
        """Return the value of the member."""
        try:
            return self.convert(value)
        except (TypeError, ValueError):
            shown = " ".join(reprlib.repr(value).split())
            raise UsageError("%s: expected %s, got %s"
                             % (self.name, self.expected, shown)) from None


def _flag(name: str, uses: Use, help: str) -> Option:
    return Option(name, uses, "bool", False, (False, True).index, "True or False", help)


def _choice(name: str, uses: Use, choices: List[str], help: str) -> Option:
    """Return an option that is one of these names; the default is the first."""
    return Option(
        name, uses, "Literal[%s]" % ", ".join('"%s"' % choice for choice in choices), choices[0],
        lambda value: choices[choices.index(value)].encode(),
        "%s or %r" % (", ".join(map(repr, choices[:-1])), choices[-1]), help, choices)


def _integer(value: Any, low: int, high: int) -> int:
    number = operator.index(value)
    if not low <= number <= high:
        raise ValueError
    return number


def _page(value: Any) -> int:
    return _integer(value, 1, c.MAX_PAGE)


def _pages(value: Any) -> int:
    return c.ALL_PAGES if isinstance(value, str) and value == "all" else _page(value)


def _crop(value: Any) -> Any:
    x, y, width, height = (_integer(number, 0, 2**64 - 1) for number in value)
    return pointer(c.gf_crop(x, y, width, height))


DEPTHS = [None, "8", "16", "f32"]  # in the order of gf_depth
FORMATS = c.texts(lib.gf_names(c.NAMES_FORMAT))


def _limit(name: str, help: str) -> Option:
    return Option(name, Use.READ | Use.FILTER, "Optional[int]", None,
                  lambda value: _integer(value, 1, 2**32 - 1 if name == "max_seconds" else 2**63),
                  "an integer from 1", help)


OPTIONS = [
    _flag("autorotate", Use.READ | Use.FILTER, "turn inputs as their EXIF orientation says"),
    Option("alpha", Use.READ | Use.FILTER, "Optional[bool]", None, [None, True, False].index,
           "True or False",
           "the last of 2 or 4 channels is alpha, or data; default: as the file declares, data in "
           "NPY files"),
    _flag("strict", Use.READ | Use.FILTER, "fail for damaged pixels that can be read"),
    _flag("keep_nodata", Use.MEASURE, "measure samples with the nodata value of a GDAL TIFF"),
    Option("crop", Use.READ | Use.FILTER, "Optional[Tuple[int, int, int, int]]", None, _crop,
           "integers x, y, width, height",
           "read only this rectangle of each input, as if it were the image"),
    Option("as_", Use.READ | Use.FILTER, 'Optional[Literal["u16", "f32"]]', None,
           lambda value: 2 + ["u16", "f32"].index(value), "'u16' or 'f32'",
           "read samples as this type and keep their values; for int16, float64 and other types",
           ["u16", "f32"]),
    Option("channels", Use.READ | Use.FILTER, "Optional[str]", None, str.encode,
           "a text such as '1,2,3'", "channels of the inputs to read; they are data, not alpha"),
    Option("page", Use.READ, "int", 1, _page, "an integer from 1",
           "page of TIFF, NPY, PNM, MPO and GIF inputs"),
    Option("page", Use.FILTER, 'Union[int, Literal["all"]]', 1, _pages,
           "an integer from 1 or 'all'",
           "page of TIFF, NPY, PNM, MPO and GIF inputs; all: filter every page, to a TIFF, or "
           "measure all pages as one image, one below the other"),
    _choice("compression", Use.WRITE, c.texts(lib.gf_names(c.NAMES_COMPRESSION)),
            "PNG compression effort"),
    Option("quality", Use.WRITE, "int", c.DEFAULT_QUALITY,
           lambda value: _integer(value, 1, 100), "an integer from 1 to 100", "JPEG quality"),
    _choice("tiff_compression", Use.WRITE, c.texts(lib.gf_names(c.NAMES_TIFF_COMPRESSION)),
            "compression of TIFF outputs"),
    _flag("strip", Use.COPY, "omit the metadata of the input from the output"),
    Option("depth", Use.READ | Use.WRITE, 'Optional[Literal["8", "16", "f32"]]', None,
           DEPTHS.index, "'8', '16' or 'f32'",
           "sample type of the image: bits of integers, or f32; default: unchanged; a filter that "
           "produces an image also computes in a type larger than that of its input"),
    Option("premultiply", Use.MAKE, "Optional[bool]", None,
           [None, True, False].index, "True or False",  # in the order of gf_premultiply
           "weigh colours by alpha, which is filtered, too; default: only resize does"),
    _flag("linear", Use.MAKE, "filter sRGB images in linear light; f32 images are linear already"),
    _flag("force", Use.WRITE | Use.FILTER, "replace existing outputs"),
    Option("format", Use.WRITE, "Optional[str]", None,
           lambda value: FORMATS[FORMATS.index(value)].encode(), ", ".join(map(repr, FORMATS)),
           "format of the image written; default: the extension selects it"),
    _limit("max_pixels", "pixel limit per input"),
    _limit("max_memory", "limit in bytes of what must be held in memory for a file"),
    _limit("max_chunk", "limit in bytes per metadata chunk of an input"),
    _limit("max_seconds", "limit of CPU seconds for decoding an input"),
    _flag("no_sandbox", Use.READ | Use.FILTER,
          "decode without a sandbox; for trusted files only: BMP, TGA, PSD, GIF, HDR, rare TIFFs"),
]
c.KEYWORDS.update((option.name, (option.default is False, option.choices)) for option in OPTIONS)


WRITE_MEMBERS = {field[0] for field in c.gf_write_options._fields_}


def options_of(uses: Use) -> Dict[str, Option]:
    """Return the options of a call by name."""
    return {option.name: option for option in OPTIONS if option.uses & uses}


def uses_of(found: Filter, draws: bool) -> Use:
    """Return what running a filter on files does. draws: it draws an image in addition."""
    uses = Use.MAKE if found.info.makes_image else Use.MEASURE
    if found.info.makes_image or draws:
        uses |= Use.WRITE
        if found.info.inputs == 1:
            uses |= Use.COPY
    return uses


def file_options(uses: Use, values: Dict[str, Any]) -> c.gf_file_options:
    """Return a gf_file_options. None is not set; a call accepts defaults of any option."""
    made, accepted = c.gf_file_options(), options_of(uses)
    for name, value in values.items():
        if value is None:
            continue
        option = accepted.get(name) or next(other for other in OPTIONS if other.name == name)
        member = option.member(value)
        if name in accepted:
            setattr(made.write if name in WRITE_MEMBERS else made, name, member)
        elif value != option.default:
            raise UsageError("%s: no image is written" % name)
    return made
