"""The table from layer kind to the numpy function that says what it computes."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Array

Arrays = Sequence[Array]
Reference = Callable[[Any, Sequence[Any]], Arrays]
"""`(layer, inputs) -> outputs`. Inputs are arrays (None where an optional input is absent); they are never changed."""

_REFERENCES: dict[str, Reference] = {}
FunctionT = TypeVar("FunctionT", bound=Reference)


def reference(kind: type[Layer]) -> Callable[[FunctionT], FunctionT]:
    """Make a function the reference of a layer kind."""

    def register(function: FunctionT) -> FunctionT:
        _REFERENCES[kind.kind] = function
        return function

    return register


@functools.cache
def _load() -> None:
    # At the first evaluation, not at import: the families import every layer kind.
    package = importlib.import_module("dryfit.reference")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"dryfit.reference.{module.name}")


def evaluate(layer: Layer, inputs: Sequence[Array | None]) -> list[Array]:
    """The outputs of a layer for these inputs: what the layer means.

    FP16, BF16 and 8-bit floating-point inputs are computed in FP32 and rounded once, at the end, to nearest even.

    Raises:
        NetworkError: the kind has no reference (a plugin that was not loaded).
    """
    function = reference_of(layer)
    with np.errstate(all="ignore"):
        return [np.asarray(output) for output in function(layer, inputs)]


def reference_of(layer: Layer) -> Reference:
    """The function of a layer's kind.

    Raises:
        NetworkError: the kind has no reference (a plugin that was not loaded).
    """
    _load()
    if layer.kind not in _REFERENCES:
        raise NetworkError(
            "The layer kind has no reference implementation",
            where=f"layer {layer.name!r}",
            found=layer.kind,
            remedy="Register one for this kind",
        )
    return _REFERENCES[layer.kind]


@functools.cache
def compute_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type a reference computes in: FP32 for narrower floating-point types, else the type itself."""
    kind = DataType.from_numpy(dtype)
    return np.dtype(np.float32) if kind.is_floating_point and kind.bits < 32 else np.dtype(dtype)
