"""Weights of a Q/DQ model as real numbers, and whether the implicit rule finds their codes again.

An implicit build quantizes weights itself: for each output channel by the largest magnitude over 127. Where a channel
of codes reaches 127, its scale is found again and every code with it. Where it does not, as after training that moved
scales, the finer scale gives other codes, and no real weights could prevent it: the difference is reported. A code of
-128, which implicit INT8 does not have, coarsens the scale of its channel, unless it is clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from onnx import NodeProto, helper
from onnx.reference import ReferenceEvaluator

from dryfit.builder.precision.int8_weights import LARGEST, int8_scales
from dryfit.onnx.editing.model_graph import attribute, node_name

Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class PlainWeights:
    """Dequantized weights.

    Attributes:
        name: of the value that held them, dequantized.
        codes: int8.
        scale: float32, broadcasts against the codes.
    """

    name: str
    codes: Array
    scale: Array

    @property
    def values(self) -> Array:
        """float32: code times scale, rounded once."""
        return (self.codes.astype(np.float32) * self.scale).astype(np.float32)

    def clipped(self) -> PlainWeights:
        """The same with -127 in the place of -128."""
        return attrs.evolve(self, codes=np.maximum(self.codes, -LARGEST).astype(self.codes.dtype))

    def moved(self, node: NodeProto, others: Sequence[Array]) -> PlainWeights:
        """What a node that only moves values makes of them.

        Args:
            node: reads the weights as its first input.
            others: its other inputs, such as a shape.
        """
        names = [f"x{index}" for index in range(1 + len(others))]
        copy = NodeProto()
        copy.CopyFrom(node)
        del copy.input[:], copy.output[:]
        copy.input.extend(names)
        copy.output.append("y")
        evaluator = ReferenceEvaluator(helper.make_graph([copy], "moved", [], []), opsets={"": 21})
        spread = np.broadcast_to(self.scale, self.codes.shape)

        def move(values: Array) -> Array:
            results: Any = evaluator.run(["y"], dict(zip(names, [values, *others], strict=True)))
            return np.asarray(results[0])

        return PlainWeights(node.output[0], move(self.codes), move(spread))


@attrs.frozen
class RequantizedWeights:
    """What becomes of weights when an implicit build quantizes them.

    Attributes:
        node: name of the node that multiplies by them.
        tensor: name of the value that held them, dequantized.
        channels: how many output channels they have.
        same_channels: how many keep every code.
        changed_codes: how many codes change.
        codes: how many there are.
        largest_difference: of a weight's value, as a share of its channel's scale in the Q/DQ model.
    """

    node: str
    tensor: str
    channels: int
    same_channels: int
    changed_codes: int
    codes: int
    largest_difference: float


def requantized(node: NodeProto, weights: PlainWeights) -> RequantizedWeights:
    """Quantize weights as an implicit build does, and compare.

    Args:
        node: multiplies by them.
        weights: as that node has them.
    """
    weights, channel_axes = by_channels(node, weights)
    real = weights.values
    others = tuple(axis for axis in range(real.ndim) if axis not in channel_axes)
    scales = int8_scales(np.abs(real).max(axis=others, keepdims=True, initial=0.0))
    codes = np.clip(np.rint(real / scales), -LARGEST, LARGEST)
    changed = codes != weights.codes
    difference = np.abs(codes * scales.astype(np.float64) - real) / weights.scale
    per_channel = changed.any(axis=others)
    return RequantizedWeights(
        node_name(node),
        weights.name,
        int(per_channel.size),
        int(np.count_nonzero(~per_channel)),
        int(np.count_nonzero(changed)),
        int(changed.size),
        float(difference.max(initial=0.0)),
    )


def by_channels(node: NodeProto, weights: PlainWeights) -> tuple[PlainWeights, tuple[int, ...]]:
    """Weights in a shape that has axes whose indices are the output channels of the node that reads them; the axes."""
    rank = weights.codes.ndim
    groups = attribute(node, "group", 1)
    if node.op_type == "Conv":
        return weights, (0,)
    if node.op_type == "ConvTranspose" and groups > 1:
        inputs, *rest = weights.codes.shape
        scale = np.broadcast_to(weights.scale, weights.codes.shape)
        shape = (groups, inputs // groups, *rest)
        return PlainWeights(weights.name, weights.codes.reshape(shape), scale.reshape(shape)), (0, 2)
    if node.op_type == "ConvTranspose":
        return weights, (1,)
    return weights, (0,) if attribute(node, "transB", 0) else (rank - 1,)
