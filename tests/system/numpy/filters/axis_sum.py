"""axis-sum: the sum of every row or column of each channel."""

import numpy as np

from arithmetic import F32, F64, NAMES, ascending, colours, row_sums
from case import Case
from images import random_summands

CASES = 200


def axis_sum(image, axis, mean):
    shown = NAMES[image.shape[2]][: colours(image)]
    sums = {"y" if axis == "x" else "x": list(range(image.shape[0 if axis == "x" else 1]))}
    totals = {"channel": shown, "sum": [], "mean": []}
    for c, name in enumerate(shown):
        v = image[:, :, c]
        if axis == "x":
            sums[name] = row_sums(v)
        elif v.dtype == F32:
            sums[name] = list(ascending(v.astype(F64)))
        else:
            sums[name] = [int(s) for s in v.sum(0, dtype=np.uint64)]
        total = ascending(sums[name])
        totals["sum"].append(total)
        totals["mean"].append(F64(total) / v.size)
        if mean:  # Python divides integers with one rounding
            length = v.shape[1 if axis == "x" else 0]
            sums[name] = [s / length for s in sums[name]]
    return {"means" if mean else "sums": sums, "totals": totals}


def published(rng):
    image = np.arange(24).reshape(4, 6, 1).astype(rng.choice(["u1", "u2", "f4"]))
    result = axis_sum(image, "x", False)
    assert result["sums"]["grey"] == [15, 51, 87, 123]
    return Case("axis-sum", [], [image], result=result)


def random_case(rng):
    image, axis = random_summands(rng), str(rng.choice(["x", "y"]))
    mean = bool(rng.random() < 0.4)
    options = ["--axis", axis] + (["--mean"] if mean else [])
    return Case("axis-sum", options, [image], result=axis_sum(image, axis, mean))
