"""Non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.nms import BoundingBoxFormat, Nms
from dryfit.reference.precision import widened
from dryfit.reference.registry import Array, reference


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
