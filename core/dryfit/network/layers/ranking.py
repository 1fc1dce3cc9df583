"""Layers that select by value: top-k, non-maximum suppression, and histograms."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import checked_axes
from dryfit.network.tensor import Tensor, TensorSpec


class TopKOperation(enum.Enum):
    """TensorRT's `TopKOperation`."""

    MAX = "max"
    MIN = "min"


@layer_kind("top_k", "TOPK")
class TopK(Layer):
    """The k largest (MAX, in descending order) or smallest (MIN, ascending) elements, and their indices.

    Ties are resolved in favor of the lower index. A NaN is larger than every number.

    Attributes:
        op: MAX or MIN.
        k: number of elements, at least 1. If connected, input 1, an integer scalar of at least 0, overrides it.
        axes: bit mask with exactly one bit set.
        indices_type: type of the second output, INT32 or INT64.

    Source: TensorRT `ITopKLayer`; the order of ties is ONNX's.
    """

    needs_real_numbers = True

    op: TopKOperation
    k: int
    axes: int
    indices_type: DataType = DataType.INT32

    @property
    def axis(self) -> int:
        """Axis selected by `axes`."""
        return self.axes.bit_length() - 1

    @property
    def output_count(self) -> int:
        """Number of outputs: 2."""
        return 2

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return values (in the input's type) and indices, with k elements along the axis; -1 if k is unknown."""
        x = self.required(inputs, 0)
        if len(checked_axes(self, self.axes, x.rank)) != 1:
            raise self.problem(
                "`axes` must select exactly one axis",
                found=bin(self.axes),
                allowed="one bit",
                remedy="Set one bit in `axes`",
            )
        if self.indices_type not in (DataType.INT32, DataType.INT64):
            raise self.problem(
                "`indices_type` must be INT32 or INT64",
                found=self.indices_type.text,
                remedy="Set `indices_type` to INT32 or INT64",
            )
        k, least = self.k, 1
        if len(inputs) > 1 and inputs[1] is not None:
            value = inputs[1].value
            if value is not None and value.size != 1:
                raise self.problem(
                    "Input 1 (k) must be a scalar",
                    found=f"{value.size} numbers",
                    remedy="Connect a tensor with one element",
                )
            # A k that is computed may come out as 0: the result is empty then.
            k, least = (-1, -1) if value is None else (int(value.item()), 0)
        extent = x.shape[self.axis]
        if k < least or (extent >= 0 and k > extent):
            raise self.problem(
                f"k must be between {least} and the extent of the axis",
                found=k,
                allowed=f"{least} to {extent}" if extent >= 0 else f"{least} or more",
                remedy="Set `k`, or connect another input 1",
            )
        shape = (*x.shape[: self.axis], k, *x.shape[self.axis + 1 :])
        return [TensorSpec(shape, x.dtype), TensorSpec(shape, self.indices_type)]


class BoundingBoxFormat(enum.Enum):
    """TensorRT's `BoundingBoxFormat`: (x1, y1, x2, y2) of any two opposite corners, or (x, y, width, height)."""

    CORNER_PAIRS = "corner_pairs"
    CENTER_SIZES = "center_sizes"


@layer_kind("nms")
class Nms(Layer):
    """The boxes selected per batch and class, by descending score, without boxes that overlap a selected one.

    Inputs: boxes `[batch, boxes, 4]` or `[batch, boxes, classes, 4]`; scores `[batch, boxes, classes]`; the maximum
    number of boxes per class (integer scalar); optionally the overlap threshold (intersection over union, default 0)
    and the score threshold (default 0). A box is selected if its score is greater than the score threshold, unless its
    overlap with a selected box is greater than the overlap threshold. Ties are resolved in favor of the lower index.

    Outputs: `[selected, 3]` rows of (batch, class, box), sorted by batch, class and descending score; and their number.

    Attributes:
        bounding_box_format: meaning of the four numbers of a box.
        topk_box_limit: number of highest-scoring boxes considered per batch and class. None: all boxes (host only).
        indices_type: type of the first output, INT32 or INT64.

    Source: TensorRT `INMSLayer`; ONNX `NonMaxSuppression` (whose scores have classes before boxes).
    """

    has_fixed_types = True
    inputs_of_one_type = (0, 1)

    bounding_box_format: BoundingBoxFormat = BoundingBoxFormat.CORNER_PAIRS
    topk_box_limit: int | None = 5000
    indices_type: DataType = DataType.INT32

    @property
    def is_host_only(self) -> bool:
        """Whether the number of boxes is unlimited, which TensorRT does not support."""
        return self.topk_box_limit is None

    @property
    def output_count(self) -> int:
        """Number of outputs: 2."""
        return 2

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `[-1, 3]`, as the number of selected boxes depends on the data, and a scalar."""
        boxes, scores = self.required(inputs, 0), self.required(inputs, 1)
        self.required(inputs, 2)
        fits = scores.rank == 3 and boxes.rank in (3, 4) and boxes.shape[-1] in (-1, 4)
        if fits:
            classes = (1, -1, scores.shape[2])
            fits = boxes.rank == 3 or scores.shape[2] == -1 or boxes.shape[2] in classes
            fits &= all(-1 in (b, s) or b == s for b, s in zip(boxes.shape[:2], scores.shape[:2], strict=False))
        if not fits:
            raise self.problem(
                "The shapes of boxes and scores must match",
                found=f"boxes {boxes.shape}, scores {scores.shape}",
                allowed="boxes [batch, boxes, 4] or [batch, boxes, classes, 4], scores [batch, boxes, classes]",
                remedy="Reshape boxes or scores",
            )
        if self.indices_type not in (DataType.INT32, DataType.INT64):
            raise self.problem(
                "`indices_type` must be INT32 or INT64",
                found=self.indices_type.text,
                remedy="Set `indices_type` to INT32 or INT64",
            )
        for index, name in ((2, "number of boxes"), (3, "overlap threshold"), (4, "score threshold")):
            spec = inputs[index] if index < len(inputs) else None
            if spec is not None and spec.shape not in ((), (1,), (-1,)):
                raise self.problem(
                    f"Input {index} ({name}) must be a scalar",
                    found=spec.shape,
                    remedy="Connect a tensor with one element",
                )
        return [TensorSpec((-1, 3), self.indices_type), TensorSpec((), DataType.INT32)]

    def largest_outputs(self, inputs: Inputs, outputs: Sequence[TensorSpec]) -> Sequence[TensorSpec]:
        """Return as many boxes as batches, classes and the limits of boxes allow."""
        scores, limit = self.required(inputs, 1), self.required(inputs, 2).value
        if not scores.is_static:
            return outputs
        batches, boxes, classes = scores.shape
        per_class = min([boxes, *([] if limit is None else [max(int(limit.item()), 0)])])
        if self.topk_box_limit is not None:
            per_class = min(per_class, self.topk_box_limit)
        return [TensorSpec((batches * classes * per_class, 3), self.indices_type), outputs[1]]


class AddRanking:
    """The builder methods of top-k and non-maximum suppression."""

    def add_topk(
        self: LayerOwner,
        input: Tensor,
        op: TopKOperation,
        k: int,
        axes: int,
        indices_type: DataType = DataType.INT32,
    ) -> TopK:
        """Add a top-k along the axis of a bit mask; TensorRT's `add_topk`. Connect input 1 for a k set at run time."""
        return self.add_layer(TopK(op=op, k=k, axes=axes, indices_type=indices_type), [input])

    def add_nms(
        self: LayerOwner,
        boxes: Tensor,
        scores: Tensor,
        max_output_boxes_per_class: Tensor,
        indices_type: DataType = DataType.INT32,
    ) -> Nms:
        """Add non-maximum suppression; TensorRT's `add_nms`. Connect inputs 3 and 4 for the thresholds."""
        return self.add_layer(Nms(indices_type=indices_type), [boxes, scores, max_output_boxes_per_class])


# Histograms -----------------------------------------------------------------------------------------------------------


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
    """The histogram of the input's values, which calibration adds to a network.

    The result is a record, `INT64[4104]`: the exponents of the positive and of the negative values, the minimum and the
    maximum (as the bits of binary64), the numbers of zeros, NaNs, infinities and all values; then 2048 counts of the
    finite positive values and 2048 of the finite negative values. A magnitude m falls into bin `floor(m * 2^(11 -
    exponent))`, where `2^exponent`, at least 2^-115, is the smallest power of two above the largest magnitude of its
    sign. Missing entries are `NO_EXPONENT`, infinity for the minimum and minus infinity for the maximum.

    Source: our choice, because bins whose width is a power of two merge exactly.
    """

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `INT64[4104]`."""
        x = self.required(inputs, 0)
        if not x.dtype.is_floating_point:
            raise self.problem(
                "The input of a histogram must be floating point",
                found=x.dtype.text,
                remedy="Add a cast layer before it",
            )
        return [TensorSpec((RECORD_WORDS,), DataType.INT64)]


class AddHistogram:
    """The builder method of histograms."""

    def add_histogram(self: LayerOwner, input: Tensor) -> HistogramLayer:
        """Add a layer that computes the histogram of a tensor's values."""
        return self.add_layer(HistogramLayer(), [input])
