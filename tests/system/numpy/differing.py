"""Compare the program's results with the expected ones. Each function returns the first difference or None."""

import itertools
import json
import math

import numpy as np

from arithmetic import F32


class Nearly(float):
    """A logarithm, the only function here that IEEE 754 does not define exactly: its last digit may differ."""


class Number(str):
    """A number in JSON text, as written."""


def read_json(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


def differing_pixels(want, got):
    if want.shape != got.shape or want.dtype != got.dtype:
        return "want %s %s, got %s %s" % (want.shape, want.dtype, got.shape, got.dtype)
    bits = {F32: np.uint32}.get(want.dtype.type, want.dtype)
    wrong = np.argwhere(np.ascontiguousarray(want).view(bits) != np.ascontiguousarray(got).view(bits))
    if len(wrong) == 0:
        return None
    y, x, c = wrong[0]
    return "%d samples; first at x %d, y %d, channel %d: want %r, got %r" % (
        len(wrong), x, y, c, want[y, x, c], got[y, x, c])


def differing_samples(want, got):
    if want.dtype != got.dtype or want.shape != got.shape:
        return "want %d samples of %s, got %d of %s" % (len(want), want.dtype, len(got), got.dtype)
    if want.tobytes() == got.tobytes():
        return None
    i = next(i for i in range(len(want)) if want[i].tobytes() != got[i].tobytes())
    return "sample %d: want %s, got %s" % (i, want[i], got[i])


def same_number(want, got):
    """Return whether this JSON text is the number. Integers above 2^53, NaN and infinities are strings in JSON."""
    if isinstance(want, int):
        return got == str(want) and isinstance(got, Number) == (want <= 2**53)
    if not math.isfinite(want) or not isinstance(got, Number):
        return got == str(want) and not isinstance(got, Number)
    if isinstance(want, Nearly):
        return abs(float(got) - want) <= 1e-12 * abs(want)
    number = F32(got) if isinstance(want, F32) else float(got)
    return number == want and math.copysign(1, number) == math.copysign(1, want)


def differing_value(want, got):
    if isinstance(want, dict):
        if not isinstance(got, dict) or sorted(want) != sorted(got):
            return ": want keys %s, got %.200s" % (list(want), got)
        pairs = [(".%s" % key, want[key], got[key]) for key in want]
    elif isinstance(want, list):
        if not isinstance(got, list) or len(want) != len(got):
            return ": want %d values, got %.200s" % (len(want), got)
        pairs = zip(itertools.count(), want, got)
    else:
        plain = want is None or isinstance(want, str)
        same = want == got if plain else same_number(want, got)
        return None if same else ": want %r, got %r" % (want, got)
    for place, w, g in pairs:
        text = differing_value(w, g)
        if text:
            return (place if isinstance(place, str) else "[%d]" % place) + text
    return None
