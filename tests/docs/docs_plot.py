#!/usr/bin/env python3
"""Check that a plot shows the given numbers: docs_plot.py PLOT.svg NUMBERS.csv [log]

Some path of the SVG must draw each column of numbers, to less than a point. The path's extent defines the axes:
the first and the last row are at its left and right end; the largest and the smallest value define the scale.
Text, ticks and colours are ignored, because fonts and the path syntax of cairo vary.
"""
import csv
import math
import re
import sys

X_TOLERANCE = 0.6  # horizontal tolerance in points: points closer than 0.5 are merged
Y_TOLERANCE = 0.1  # vertical tolerance in points


def paths(svg):
    """Yield lists of strokes, which are lists of points, without glyphs."""
    for text in re.findall(r'<path\b[^>]*?\sd="([^"]*)"', re.sub(r"<defs>.*?</defs>", "", svg, flags=re.S)):
        strokes = []
        for mark, x, y in re.findall(r"([MLZ]) *(?:(-?[\d.]+)[ ,]+(-?[\d.]+))?", text):
            if mark == "M":
                strokes.append([])
            if strokes and mark != "Z":
                strokes[-1].append((float(x), float(y)))
            elif strokes:
                strokes[-1].append(strokes[-1][0])
        yield [stroke for stroke in strokes if len(stroke) > 1]


def by_column(strokes):
    """Return {integer x: segments near it}, so that few segments are examined per point."""
    columns = {}
    for stroke in strokes:
        for (x0, y0), (x1, y1) in zip(stroke, stroke[1:]):
            for column in range(math.floor(min(x0, x1) - X_TOLERANCE), math.floor(max(x0, x1) + X_TOLERANCE) + 1):
                columns.setdefault(column, []).append((x0, y0, x1, y1))
    return columns


def heights(columns, x, near):
    """Return the lowest and the highest y of the segments between x - near and x + near; y grows downwards."""
    found = []
    for x0, y0, x1, y1 in columns.get(math.floor(x), []):
        left, right = max(min(x0, x1), x - near), min(max(x0, x1), x + near)
        if left <= right:
            found += [y0, y1] if x0 == x1 else [y0 + (y1 - y0) * (at - x0) / (x1 - x0) for at in (left, right)]
    return (max(found), min(found)) if found else None


def shows(strokes, positions, values, bars):
    """Return whether the lines pass through these points. Positions are from 0 to 1 along the axis."""
    everywhere = [x for stroke in strokes for x, _ in stroke]
    if not everywhere:
        return False
    left, width = min(everywhere), max(everywhere) - min(everywhere)
    columns = by_column(strokes)
    seen = [heights(columns, left + width * position, 0.1 if bars else X_TOLERANCE) for position in positions]
    if None in seen:
        return False
    highest, lowest = max(range(len(values)), key=values.__getitem__), min(range(len(values)), key=values.__getitem__)
    low = seen[lowest][1 if bars else 0]
    scale = (low - seen[highest][1]) / (values[highest] - values[lowest])
    expected = [low - scale * (value - values[lowest]) for value in values]
    for i, (bottom, top) in enumerate(seen):
        if bars:
            if abs(expected[i] - top) > Y_TOLERANCE:
                return False
            continue
        # The line passes this point, and stays within the range of its neighbours.
        reach = 1 + math.ceil(2 * X_TOLERANCE / width * len(positions))
        around = expected[max(i - reach, 0):i + reach + 1]
        if not (top - Y_TOLERANCE < expected[i] < bottom + Y_TOLERANCE and
                min(around) - Y_TOLERANCE < top and bottom < max(around) + Y_TOLERANCE):
            return False
    return scale > 0


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        drawn = list(paths(file.read()))
    with open(sys.argv[2], encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    log = "log" in sys.argv[3:]
    bars = "from" in head
    for column, name in enumerate(head):
        if name in ("bin", "from", "to", "first", "last", "x", "y"):
            continue
        last = len(rows) if bars else len(rows) - 1
        points = [((i + 0.5 if bars else i) / last, float(row[column])) for i, row in enumerate(rows)]
        if log:
            points = [(position, math.log10(value)) for position, value in points if value > 0]
        if not any(shows(strokes, *zip(*points), bars) for strokes in drawn):
            sys.exit("%s: no curve shows the %d numbers of column %s" % (sys.argv[1], len(points), name))


main()
