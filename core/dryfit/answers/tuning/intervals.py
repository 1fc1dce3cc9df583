"""What the channels of an ONNX model's tensors can hold at most: interval arithmetic over its weights.

A channel in front of a ReLU6 that cannot reach 6 for any input can be scaled up without the bound being felt: the edit
is exact, where a bound that was only not reached on some samples changes other samples. Measured on MobileNetV2, bounds
moved to 1.3 and 2 times the largest value of 64 pictures: 22 and 27 dB SQNR in FP32 on 131 others.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, attribute
from dryfit.onnx.editing.parts import one_value
from dryfit.onnx.external_data import ExternalData

Interval = tuple[Array, Array]
"""Smallest and largest value of each channel, float64[C]; infinite where nothing is known."""

MARGIN = 1e-3
"""Share that an interval is widened by: FP32 rounds sums of products."""


def intervals(model: ModelProto, external: ExternalData, inputs: Mapping[str, float]) -> dict[str, Interval]:
    """Return what the channels of each tensor `[N, C, ...]` can hold; tensors that nothing is known of are missing.

    Args:
        model: the model.
        external: location of its external data.
        inputs: largest magnitude of each input that INT8 stores: its range cuts off what is beyond.
    """
    graph = ModelGraph(model, external)
    found: dict[str, Interval] = {}
    for name, end in inputs.items():
        shape = graph.shape(name)
        if shape is not None and len(shape) > 1 and shape[1]:
            found[name] = np.full(shape[1], -end), np.full(shape[1], end)
    for node in graph.nodes:
        one = _interval(graph, node, found)
        if one is not None:
            slack = MARGIN * np.maximum(np.abs(one[0]), np.abs(one[1]))
            # What an activation cuts off is cut off exactly.
            found[node.output[0]] = one if node.op_type in ("Relu", "Clip") else (one[0] - slack, one[1] + slack)
    return found


def _interval(graph: ModelGraph, node: NodeProto, found: Mapping[str, Interval]) -> Interval | None:
    source = found.get(node.input[0]) if node.input else None
    if source is None and node.op_type not in ("Clip", "Relu"):
        return None
    if node.op_type in ("Relu", "Clip"):
        return _limited(graph, node, source)
    assert source is not None  # noqa: S101  returned above
    if node.op_type == "Conv":
        return _of_products(graph, node, source)
    if node.op_type == "Add" and len(node.input) == 2:
        other = found.get(node.input[1])
        is_alike = graph.shape(node.input[0]) == graph.shape(node.input[1])
        return (source[0] + other[0], source[1] + other[1]) if other is not None and is_alike else None
    if node.op_type == "Concat":
        parts = [found.get(name) for name in node.input]
        shape = graph.shape(node.output[0])
        if shape is None or attribute(node, "axis") not in (1, 1 - len(shape)):
            return None
        known = [part for part in parts if part is not None]
        is_known = len(known) == len(parts)
        return (np.concatenate([a for a, _ in known]), np.concatenate([b for _, b in known])) if is_known else None
    if node.op_type in ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Identity", "Dropout"):
        return np.minimum(source[0], 0.0), np.maximum(source[1], 0.0)  # padding may bring zeros
    return None


def _of_products(graph: ModelGraph, node: NodeProto, source: Interval) -> Interval | None:
    weights = graph.constant(node.input[1])
    bias = graph.bias(node)
    if weights is None or bias is None:
        return None
    low, high = source
    if any(attribute(node, "pads", [0])) or attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    K, groups = weights.shape[0], attribute(node, "group", 1)
    wide = weights.astype(np.float64).reshape(K, weights.shape[1], -1)
    rising, falling = np.maximum(wide, 0).sum(axis=2), np.minimum(wide, 0).sum(axis=2)
    lows, highs = (np.repeat(one.reshape(groups, -1), K // groups, axis=0) for one in (low, high))
    with np.errstate(invalid="ignore"):  # 0 times infinity: a weight of zero takes nothing
        least = np.nan_to_num(rising * lows, nan=0.0, posinf=np.inf, neginf=-np.inf)
        least += np.nan_to_num(falling * highs, nan=0.0, posinf=np.inf, neginf=-np.inf)
        most = np.nan_to_num(rising * highs, nan=0.0, posinf=np.inf, neginf=-np.inf)
        most += np.nan_to_num(falling * lows, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return least.sum(axis=1) + bias, most.sum(axis=1) + bias


def _limited(graph: ModelGraph, node: NodeProto, source: Interval | None) -> Interval | None:
    low, high = clip_bounds(graph, node)
    if source is None:
        shape = graph.shape(node.output[0])
        if shape is None or len(shape) < 2 or not shape[1]:
            return None
        source = np.full(shape[1], -np.inf), np.full(shape[1], np.inf)
    return np.clip(source[0], low, high), np.clip(source[1], low, high)


def clip_bounds(graph: ModelGraph, node: NodeProto) -> tuple[float, float]:
    """Return the bounds of a Clip or ReLU; an infinite one where it is not given or not known."""
    if node.op_type == "Relu":
        return 0.0, np.inf
    if graph.opset < 11:
        return float(attribute(node, "min", -np.inf)), float(attribute(node, "max", np.inf))
    found = []
    for index, absent in ((1, -np.inf), (2, np.inf)):
        given = len(node.input) > index and bool(node.input[index])
        bound = one_value(graph.constant(node.input[index])) if given else None
        found.append(absent if bound is None else float(bound))
    return found[0], found[1]
