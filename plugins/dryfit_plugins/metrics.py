"""Metrics for quantized networks: against the outputs in FP32, and against labels."""

from __future__ import annotations

import contextlib
import importlib
import io
from typing import Any

import numpy as np

from dryfit.errors import ConfigError
from dryfit.network.tensor import Array
from dryfit.quantization.metric import LABELS, Metric, Outputs, worst_sqnr_db


def sqnr(outputs: Outputs, reference: Outputs) -> float:
    """Return the signal-to-quantization-noise ratio of the output that suffers most, in dB."""
    return worst_sqnr_db([reference], [outputs])


def cosine(outputs: Outputs, reference: Outputs) -> float:
    """Return the cosine similarity with FP32 of the output that suffers most, over all its values."""
    found = []
    for name, exact in reference.items():
        first, second = exact.astype(np.float64).reshape(-1), outputs[name].astype(np.float64).reshape(-1)
        length = float(np.linalg.norm(first) * np.linalg.norm(second))
        found.append(float(first @ second) / length if length else float((first == second).all()))
    return min(found)


def agreement(outputs: Outputs, reference: Outputs) -> float:
    """Return the percentage of samples whose largest output is the same one as in FP32."""
    return 100 * float((_classes(outputs, "agreement") == _classes(reference, "agreement")).mean())


def top_1(outputs: Outputs, labels: Any) -> float:
    """Return the percentage of samples whose largest output is that of the label, an index."""
    if labels is None:
        raise ConfigError(
            "The metric requires a label for each sample", where="metric 'top-1'", remedy="Pass --labels FILE"
        )
    classes, right = _classes(outputs, "top-1"), np.asarray(labels).reshape(-1)
    if len(classes) != len(right):
        raise ConfigError(
            "There must be one label for each sample",
            where="metric 'top-1'",
            found=len(right),
            allowed=len(classes),
            remedy="Provide one label per sample, in sample order",
        )
    return 100 * float((classes == right).mean())


def _classes(outputs: Outputs, name: str) -> Array:
    """Return the index of each sample's largest value, of a network with one output `[N, ...]`."""
    if len(outputs) != 1:
        raise ConfigError(
            "The metric requires a network with one output, the scores of its classes",
            where=f"metric {name!r}",
            found=", ".join(outputs),
            remedy="Choose --metric sqnr, or a function of your own: --metric file.py:function",
        )
    (values,) = outputs.values()
    found: Array = values.reshape(len(values), -1).argmax(axis=1)
    return found


def mean_average_precision(outputs: Outputs, labels: Any) -> float:
    """Return the mean average precision in percent: COCO's, the mean over IoU 0.50 to 0.95.

    By pycocotools, or by torchmetrics where only that is installed.

    Args:
        outputs: of a detector with its decoding inside: `boxes` float[N, K, 4] as x1, y1, x2, y2, `scores`
            float[N, K] and `labels` int[N, K].
        labels: for each sample a mapping with `boxes` [M, 4] and `labels` [M].

    Raises:
        ConfigError: Neither package is installed, there are no labels, or the outputs are others.
    """
    missing = [name for name in ("boxes", "scores", "labels") if name not in outputs]
    if missing or labels is None:
        raise ConfigError(
            "The metric requires outputs boxes, scores and labels, and the true boxes of each sample",
            where="metric 'mean-average-precision'",
            found=", ".join(outputs) if missing else "no labels",
            remedy="Pass --labels FILE.json, or decode the outputs yourself: --metric file.py:function",
        )
    if len(labels) != len(outputs["boxes"]):
        raise ConfigError(
            "There must be true boxes for each sample",
            where="metric 'mean-average-precision'",
            found=len(labels),
            allowed=len(outputs["boxes"]),
            remedy="Provide one per sample, in sample order",
        )
    for name, measure in (("pycocotools.coco", _by_pycocotools), ("torchmetrics.detection", _by_torchmetrics)):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return 100 * measure(outputs, labels)
    raise ConfigError(
        "The metric requires pycocotools or torchmetrics",
        where="metric 'mean-average-precision'",
        found="neither is installed",
        remedy="pip install pycocotools",
    )


def _by_pycocotools(outputs: Outputs, labels: Any) -> float:
    coco: Any = importlib.import_module("pycocotools.coco")
    evaluation: Any = importlib.import_module("pycocotools.cocoeval")
    every: list[dict[str, Any]] = [
        {"image_id": index, "category_id": int(kind), "bbox": _corner_and_size(box)}
        for index, one in enumerate(labels)
        for box, kind in zip(one["boxes"], one["labels"], strict=True)
    ]
    found = [
        {"image_id": index, "category_id": int(kind), "bbox": _corner_and_size(box), "score": float(score)}
        for index in range(len(labels))
        for box, score, kind in zip(*(outputs[name][index] for name in ("boxes", "scores", "labels")), strict=True)
    ]
    truth = coco.COCO()
    truth.dataset = {
        "info": {},
        "images": [{"id": index} for index in range(len(labels))],
        "categories": [{"id": kind} for kind in sorted({one["category_id"] for one in every})],
        "annotations": [
            {**one, "id": 1 + index, "area": one["bbox"][2] * one["bbox"][3], "iscrowd": 0}
            for index, one in enumerate(every)
        ],
    }
    with contextlib.redirect_stdout(io.StringIO()):  # it reports its progress there
        truth.createIndex()
        judged = evaluation.COCOeval(truth, truth.loadRes(found), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return float(judged.stats[0])


def _corner_and_size(box: Any) -> list[float]:
    left, top, right, bottom = map(float, box)
    return [left, top, right - left, bottom - top]


def _by_torchmetrics(outputs: Outputs, labels: Any) -> float:
    torch: Any = importlib.import_module("torch")
    detection: Any = importlib.import_module("torchmetrics.detection")
    metric = detection.MeanAveragePrecision()
    for index, truth in enumerate(labels):
        found = {
            "boxes": torch.from_numpy(outputs["boxes"][index].astype(np.float32)),
            "scores": torch.from_numpy(outputs["scores"][index].astype(np.float32)),
            "labels": torch.from_numpy(outputs["labels"][index].astype(np.int64)),
        }
        right = {
            "boxes": torch.tensor(truth["boxes"], dtype=torch.float32).reshape(-1, 4),
            "labels": torch.tensor(truth["labels"], dtype=torch.int64),
        }
        metric.update([found], [right])
    return float(metric.compute()["map"])


SQNR = Metric(name="sqnr", title="SQNR of the worst output against FP32", measure=sqnr, unit="dB")
COSINE = Metric(name="cosine", title="cosine similarity of the worst output with FP32", measure=cosine)
AGREEMENT = Metric(name="agreement", title="samples of the same class as in FP32", measure=agreement, unit="%")
TOP_1 = Metric(name="top-1", title="samples whose class is that of the label", measure=top_1, against=LABELS, unit="%")
MEAN_AVERAGE_PRECISION = Metric(
    name="mean-average-precision",
    title="mean average precision of a detector, by pycocotools or torchmetrics",
    measure=mean_average_precision,
    against=LABELS,
    unit="%",
)
