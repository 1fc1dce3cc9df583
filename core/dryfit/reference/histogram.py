"""Histograms of magnitudes whose bins have a power of two as their width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.histogram import (
    BIN_BITS,
    BINS,
    HEAD_WORDS,
    INFINITE,
    LEAST_EXPONENT,
    MAXIMUM,
    MINIMUM,
    NAN,
    NEGATIVE_EXPONENT,
    NO_EXPONENT,
    POSITIVE_EXPONENT,
    RECORD_WORDS,
    VALUES,
    ZEROS,
    HistogramLayer,
)
from dryfit.reference.precision import widened
from dryfit.reference.registry import Array, reference

Counts = np.ndarray[Any, np.dtype[np.int64]]

_CHUNK = 1 << 15
"""Values that are binned at once: their temporaries fit into a core's own cache."""


@reference(HistogramLayer)
def histogram(layer: HistogramLayer, inputs: Sequence[Array]) -> list[Array]:  # noqa: ARG001  it has no parameter
    """The record that `HistogramLayer` describes."""
    return [histogram_record(widened(inputs[0]))]


def histogram_record(values: Array) -> Counts:
    """The record of float32 or float64 values of any shape: `int64[4104]`, as `HistogramLayer` describes it."""
    flat = values.reshape(-1)
    finite = np.isfinite(flat)
    nan = int(np.count_nonzero(np.isnan(flat)))
    infinite = flat.size - int(np.count_nonzero(finite)) - nan
    flat = flat if nan + infinite == 0 else flat[finite]
    # A sum with zero turns -0.0 into 0.0: equal values have to give equal records.
    ends = [float(flat.min()) + 0.0, float(flat.max()) + 0.0] if flat.size else [math.inf, -math.inf]
    exponents = exponent_of(max(ends[1], 0.0)), exponent_of(max(-ends[0], 0.0))
    record = np.zeros(RECORD_WORDS, np.int64)
    sides = record[HEAD_WORDS:].reshape(2, BINS)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        for side, magnitudes in enumerate((part[part > 0], -part[part < 0])):
            sides[side] += _bin_counts(magnitudes, exponents[side])
    head = record[:HEAD_WORDS]
    head[[POSITIVE_EXPONENT, NEGATIVE_EXPONENT]] = exponents
    head[[MINIMUM, MAXIMUM]] = np.array(ends, np.float64).view(np.int64)
    head[[NAN, INFINITE, VALUES]] = nan, infinite, values.size
    head[ZEROS] = flat.size - int(sides.sum())
    return record


def exponent_of(magnitude: float) -> int:
    """The exponent for a largest magnitude; `NO_EXPONENT` for zero."""
    return max(math.frexp(magnitude)[1], LEAST_EXPONENT) if magnitude else NO_EXPONENT


def _bin_counts(magnitudes: Array, exponent: int) -> Counts:
    """How many magnitudes, all above zero and below 2^exponent, lie in each bin."""
    if not magnitudes.size:
        return np.zeros(BINS, np.int64)
    magnitudes *= magnitudes.dtype.type(math.ldexp(1.0, BIN_BITS - exponent))
    return np.bincount(magnitudes.astype(np.intp), minlength=BINS)
