"""Histogram: how often each magnitude occurs in a tensor, as one record of integers."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec

BIN_BITS = 11
BINS = 1 << BIN_BITS
"""Bins of each sign."""

LEAST_EXPONENT = -115
"""Bins are at least 2^-126 wide, so that the inverse of the width is a binary32 number and denormals lie in bin 0."""

NO_EXPONENT = -(1 << 15)
"""The exponent of a sign that no value has."""

POSITIVE_EXPONENT, NEGATIVE_EXPONENT, MINIMUM, MAXIMUM, ZEROS, NAN, INFINITE, VALUES = range(8)
"""Words at the beginning of a record."""
HEAD_WORDS = 8
RECORD_WORDS = HEAD_WORDS + 2 * BINS


@layer_kind("histogram")
class HistogramLayer(Layer):
    """The histogram of the input's values, which calibration takes beside the layers that compute them.

    The result is a record, `INT64[4104]`: the exponents of the positive and of the negative values, the least and the
    largest value (as the bits of binary64), how many values are zero, NaN, infinite, and how many there are; then 2048
    counts of the finite positive values and as many of the finite negative ones. A magnitude m lies in bin
    `floor(m * 2^(11 - exponent))`, where `2^exponent`, at least 2^-115, is the least power of two above the largest
    magnitude of its sign. What does not exist is `NO_EXPONENT`, infinity for the minimum, minus infinity for the
    maximum.

    Source: our choice, because bins whose width is a power of two merge exactly.
    """

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`INT64[4104]`."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point:
            raise self.problem("A histogram is taken of floating-point values", found=x.dtype.name)
        return [TensorSpec((RECORD_WORDS,), DataType.INT64)]


class AddHistogram:
    """The builder method of histograms."""

    def add_histogram(self: LayerOwner, input: Tensor) -> HistogramLayer:
        """Add a layer that gives the histogram of a tensor's values."""
        return self.add_layer(HistogramLayer(), [input])
