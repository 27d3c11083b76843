#!/usr/bin/env python3
"""Does a plot show these numbers? docs_plot.py PLOT.svg NUMBERS.csv [log]

Every column of numbers must be drawn by some path of the SVG, to less than a point. Axes are found by their ends: the
first and the last row lie at the path's left and right, the largest and the smallest value fix the scale. Text, ticks
and colours are not looked at: which fonts there are and how cairo writes a path must not matter.
"""
import csv
import math
import re
import sys

NEAR = 0.6  # points across: what is closer than 0.5 is drawn in one place
LEVEL = 0.1  # points up or down


def paths(svg):
    """Lists of strokes, of points each; without the shapes of letters."""
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
    """{whole number: the lines that come by there}: few are looked at for each place."""
    columns = {}
    for stroke in strokes:
        for (x0, y0), (x1, y1) in zip(stroke, stroke[1:]):
            for column in range(math.floor(min(x0, x1) - NEAR), math.floor(max(x0, x1) + NEAR) + 1):
                columns.setdefault(column, []).append((x0, y0, x1, y1))
    return columns


def heights(columns, x, near):
    """The lowest and the highest that lines reach between x - near and x + near; y grows downwards."""
    found = []
    for x0, y0, x1, y1 in columns.get(math.floor(x), []):
        left, right = max(min(x0, x1), x - near), min(max(x0, x1), x + near)
        if left <= right:
            found += [y0, y1] if x0 == x1 else [y0 + (y1 - y0) * (at - x0) / (x1 - x0) for at in (left, right)]
    return (max(found), min(found)) if found else None


def shows(strokes, places, values, bars):
    """Do the lines go through these places? Places are from 0 to 1, values from the axis' lowest to its highest."""
    everywhere = [x for stroke in strokes for x, _ in stroke]
    if not everywhere:
        return False
    left, width = min(everywhere), max(everywhere) - min(everywhere)
    columns = by_column(strokes)
    seen = [heights(columns, left + width * place, 0.1 if bars else NEAR) for place in places]
    if None in seen:
        return False
    most, least = max(range(len(values)), key=values.__getitem__), min(range(len(values)), key=values.__getitem__)
    low = seen[least][1 if bars else 0]
    scale = (low - seen[most][1]) / (values[most] - values[least])
    expected = [low - scale * (value - values[least]) for value in values]
    for i, (bottom, top) in enumerate(seen):
        if bars:
            if abs(expected[i] - top) > LEVEL:
                return False
            continue
        # The line passes here, and goes nowhere where its neighbours are not.
        reach = 1 + math.ceil(2 * NEAR / width * len(places))
        around = expected[max(i - reach, 0):i + reach + 1]
        if not (top - LEVEL < expected[i] < bottom + LEVEL and
                min(around) - LEVEL < top and bottom < max(around) + LEVEL):
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
            points = [(place, math.log10(value)) for place, value in points if value > 0]
        if not any(shows(strokes, *zip(*points), bars) for strokes in drawn):
            sys.exit("%s: no curve shows the %d numbers of column %s" % (sys.argv[1], len(points), name))


main()
