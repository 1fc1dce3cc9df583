"""The best detection in a picture by the two shared detectors: what their many outputs come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from measuring.accuracy import Answers
from measuring.accuracy_cases import SHARED


def best_object(answers: Answers, index: int) -> tuple[str, float]:
    """The class and the score of the surest of YOLOX's boxes `[N, 3549, 5 + 80]` in a picture: object times class."""
    names = (SHARED / "images" / "coco80_labels.txt").read_text().split("\n")
    boxes = next(iter(answers.values()))[index].astype(np.float64)
    scores = boxes[:, 4:5] * boxes[:, 5:]
    best = int(scores.argmax())
    return names[best % scores.shape[1]], float(scores.max())


def best_face(answers: Answers, index: int) -> tuple[str, float]:
    """The score of the surest of YuNet's faces in a picture: the root of face times object."""
    scores = [
        np.sqrt(answers[f"cls_{stride}"][index].astype(np.float64) * answers[f"obj_{stride}"][index]).max()
        for stride in (8, 16, 32)
    ]
    return "face", float(max(scores))


DETECTORS: Mapping[str, Callable[[Answers, int], tuple[str, float]]] = {
    "yolox_nano_416.onnx": best_object,
    "yunet_n_320.onnx": best_face,
}
"""Model to what it detects best in a picture."""
