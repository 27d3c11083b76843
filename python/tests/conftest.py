"""Fixtures: random images, and the second implementation of every filter in tests/system/numpy."""

import pathlib
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/system/numpy"), str(pathlib.Path(__file__).parent)]


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def samples():
    return ROOT / "samples"


@pytest.fixture
def image(rng):
    """A small RGB image."""
    return rng.integers(0, 256, (24, 31, 3), dtype=np.uint8)
