"""The five most likely classes of each picture, by the scores of a network output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dryfit.answers.json_data import Count
from dryfit.answers.text import Block, Table
from dryfit.attrs_classes import frozen
from dryfit.errors import ExecutionError

Array = np.ndarray[Any, Any]

COUNT = 5
"""How many classes of each sample are shown."""


@frozen
class LikelyClass:
    """A class of a sample, with its score.

    Attributes:
        index: index of the class.
        label: label of the class; None without labels.
        score: score of the class in the output.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {"index": "class", "label": "label", "score": "score"}

    index: Count
    label: str | None
    score: float


@frozen
class SampleClasses:
    """The most likely classes of a sample.

    Attributes:
        sample: name of the sample.
        classes: at most five classes, highest score first.
    """

    sample: str
    classes: Sequence[LikelyClass]


def read_labels(path: Path) -> list[str]:
    """Read the labels of a file, one per line.

    Raises:
        ExecutionError: The file cannot be read.
    """
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        raise ExecutionError(
            "The labels cannot be read",
            where=f"--labels {path}",
            found=error,
            remedy="Check the path; the file must be UTF-8 text with one label per line",
        ) from error


def top_classes(
    outputs: Mapping[str, Array], names: Sequence[str], labels: Sequence[str] | None
) -> list[SampleClasses]:
    """Return the most likely classes of each sample, highest score first.

    Args:
        outputs: outputs of all samples, joined along the first axis.
        names: names of the samples; a sample with several pictures is split into `name[0]`, `name[1]` and so on.
        labels: labels of the classes; None for none.

    Raises:
        ExecutionError: Labels were given, but no output has one score per label.
    """
    scores = _scores(outputs, None if labels is None else len(labels))
    if scores is None:
        return []
    count = len(scores) // len(names)
    rows = [name if count == 1 else f"{name}[{index}]" for name in names for index in range(count)]
    return [
        SampleClasses(row, [_described(int(place), values, labels) for place in _best(values)])
        for row, values in zip(rows, scores, strict=True)
    ]


def classes_blocks(found: Sequence[SampleClasses]) -> Iterator[Block]:
    """Return a table with the classes of each sample; empty without classes."""
    rows = [
        (sample.sample if rank == 0 else "", one.index, one.label or "", f"{one.score:.4g}")
        for sample in found
        for rank, one in enumerate(sample.classes)
    ]
    if rows:
        yield Table(f"Top {COUNT} classes", ["sample", "class", "label", "score"], rows)


def _scores(outputs: Mapping[str, Array], count: int | None) -> Array | None:
    """Return the scores `[samples, classes]` of the first suitable output; None if there is none."""
    matrices = {}
    for name, array in outputs.items():
        if array.ndim > 1 and array.size == array.shape[0] * max(array.shape[1:]) and array.dtype.kind in "fiu":
            matrices[name] = array.reshape(array.shape[0], -1)
    fitting = [one for one in matrices.values() if one.shape[1] > 1 and count in (None, one.shape[1])]
    if not fitting and count is not None:
        told = ", ".join(f"{name!r} with {one.shape[1]} classes" for name, one in matrices.items())
        one_more = any(one.shape[1] == count - 1 for one in matrices.values())
        raise ExecutionError(
            "An output must have one score per label",
            where="--labels",
            found=f"{count} labels; outputs {told or 'without classes'}",
            remedy="If the first label is the background, remove it" if one_more else None,
        )
    return fitting[0] if fitting else None


def _best(values: Array) -> Array:
    """Return the indices of the largest values; ties keep their order."""
    return np.argsort(-values.astype(np.float64), kind="stable")[:COUNT]


def _described(place: int, values: Array, labels: Sequence[str] | None) -> LikelyClass:
    return LikelyClass(place, None if labels is None else labels[place], float(values[place]))
