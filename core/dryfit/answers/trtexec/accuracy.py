"""The accuracy check of trtexec 11.1: outputs compared with reference outputs in raw files.

Source: what trtexec 11.1 prints and documents: l0 is the fraction of values outside of the tolerances, l1 the mean
absolute error, l2 the mean squared error, lInf the largest absolute error, cos 1 minus the cosine similarity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dryfit.answers.trtexec.inference import Arrays
from dryfit.attrs_classes import frozen
from dryfit.engine.engine import Engine
from dryfit.errors import ExecutionError, UnknownNameError

Array = np.ndarray[Any, Any]


@frozen
class Tolerances:
    """How outputs are compared.

    Attributes:
        algorithm: measure of the difference.
        atol: absolute tolerance of l0.
        rtol: relative tolerance of l0.
        threshold: largest loss that is accepted.
    """

    algorithm: str = "l0"
    atol: float = 1e-5
    rtol: float = 1e-5
    threshold: float = 0.0

    def loss(self, output: Array, reference: Array) -> float:
        """Return the loss of an output."""
        ours, theirs = output.astype(np.float64).reshape(-1), reference.astype(np.float64).reshape(-1)
        if not ours.size:
            return 0.0
        error = np.abs(ours - theirs)
        losses: Mapping[str, Callable[[], float]] = {
            "l0": lambda: float(np.mean(~(error <= self.atol + self.rtol * np.abs(theirs)))),
            "l1": lambda: float(np.mean(error)),
            "l2": lambda: float(np.mean(error**2)),
            "lInf": lambda: float(np.max(error)),
            "cos": lambda: _cosine_distance(ours, theirs),
        }
        return losses[self.algorithm]()


def _cosine_distance(ours: Array, theirs: Array) -> float:
    norms = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
    if not norms:
        return 0.0 if np.array_equal(ours, theirs) else 1.0
    return 1.0 - float(ours @ theirs) / norms


def accuracy_lines(engine: Engine, outputs: Arrays, files: Mapping[str, Path], tolerances: Tolerances) -> Iterator[str]:
    """Compare outputs with reference outputs, and return a line for each.

    Raises:
        UnknownNameError: An output does not exist.
        ExecutionError: A file cannot be read or has another size, or a loss is larger than the threshold.
    """
    failed = []
    for name, file in files.items():
        if name not in outputs:
            raise UnknownNameError("output", name, outputs, where="--loadRefOutputs")
        loss = tolerances.loss(outputs[name], _reference(engine, name, file, outputs[name]))
        yield f"Accuracy loss ({tolerances.algorithm}) for tensor {name}: {loss:.6f}"
        if not loss <= tolerances.threshold:
            failed.append(f"{name}: {loss:.6g}")
    if failed:
        raise ExecutionError(
            "The accuracy loss is too large",
            where="--loadRefOutputs",
            found=", ".join(failed),
            allowed=f"{tolerances.threshold:g} at most ({tolerances.algorithm})",
            remedy="Check the reference outputs and the precision, or raise --accuracyThreshold",
        )


def _reference(engine: Engine, name: str, file: Path, output: Array) -> Array:
    try:
        data = np.fromfile(file, np.uint8)
    except OSError as error:
        raise ExecutionError(
            "The reference output cannot be read",
            where=f"--loadRefOutputs={name}:{file}",
            found=error.strerror or error,
            remedy="Check the path",
        ) from error
    expected = engine.tensor_bytes(name, output.shape)
    if data.size != expected:
        raise ExecutionError(
            "The file does not have the size of the output",
            where=f"--loadRefOutputs={name}:{file}",
            found=f"{data.size} bytes",
            allowed=f"{expected} bytes",
            remedy="Write the raw bytes of the output in its type: array.tofile(path)",
        )
    return engine.unpack_tensor(name, data, output.shape)
