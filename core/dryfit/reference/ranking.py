"""What is chosen by its value: top-k, by stable sorting, and non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.ranking import BoundingBoxFormat, Nms, TopK, TopKOperation
from dryfit.reference.precision import widened
from dryfit.reference.registry import Array, compute_type, reference


@reference(TopK)
def top_k(layer: TopK, inputs: Sequence[Any]) -> list[Array]:
    """The k first elements in descending (MAX) or ascending (MIN) order, and their indices.

    Raises:
        NetworkError: k, where it is an input, is not between 0 and the extent of the axis.
    """
    x: Array = inputs[0]
    k = layer.k
    if len(inputs) > 1 and inputs[1] is not None:
        k = int(inputs[1].item())
    axis, extent = layer.axis, x.shape[layer.axis]
    if not 0 <= k <= extent:
        raise layer.problem("k is between 0 and the extent of the axis", found=k, allowed=f"0 to {extent}")
    keys = x.astype(compute_type(x.dtype), copy=False)
    if layer.op is TopKOperation.MIN:
        order = np.argsort(keys, axis=axis, kind="stable")
    elif k == 1:
        order = np.expand_dims(np.argmax(keys, axis=axis), axis)
    else:
        # Sorted from the back, so that turning the order round puts the lower of two equal elements first again.
        order = extent - 1 - np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
    chosen = np.take(order, np.arange(k), axis=axis)
    return [np.take_along_axis(x, chosen, axis=axis), chosen.astype(layer.indices_type.numpy)]


@reference(Nms)
def nms(layer: Nms, inputs: Sequence[Any]) -> list[Array]:
    """Rows of (batch, class, box) and their count, chosen greedily by falling score."""
    boxes, scores, most, overlap, threshold = (*inputs, None, None)[:5]
    limit = int(most.item())
    largest_overlap = 0.0 if overlap is None else float(overlap.item())
    least_score = 0.0 if threshold is None else float(threshold.item())
    corners = _corners(layer, widened(boxes))
    rows: list[tuple[int, int, int]] = []
    for batch, by_class in enumerate(scores.swapaxes(1, 2)):
        for label, score in enumerate(by_class):
            group = corners[batch] if boxes.ndim == 3 else corners[batch][:, min(label, boxes.shape[2] - 1)]
            order = np.argsort(-widened(score), kind="stable")[: layer.topk_box_limit]
            order = order[score[order] > least_score]
            rows += [(batch, label, box) for box in _chosen(group, order, limit, largest_overlap)]
    indices = np.array(rows, dtype=layer.indices_type.numpy).reshape(-1, 3)
    return [indices, np.array(len(rows), dtype=np.int32)]


def _corners(layer: Nms, boxes: Array) -> Array:
    """(x1, y1, x2, y2) with the lower corner first."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if layer.bounding_box_format is BoundingBoxFormat.CENTER_SIZES:
        first, second = first - second / 2, first + second / 2
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _chosen(boxes: Array, order: Array, limit: int, largest_overlap: float) -> list[int]:
    """The boxes that stay, in the order given, at most `limit`."""
    chosen: list[int] = []
    while order.size and len(chosen) < limit:
        best, order = int(order[0]), order[1:]
        chosen.append(best)
        order = order[_overlap(boxes[best], boxes[order]) <= largest_overlap]
    return chosen


def _overlap(box: Array, others: Array) -> Array:
    """Intersection over union; 0 where a box has no area."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.prod(np.maximum(sides, 0), axis=1)
    area, areas = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = area + areas - shared
    return np.where((shared > 0) & (union > 0), shared / union, 0)
