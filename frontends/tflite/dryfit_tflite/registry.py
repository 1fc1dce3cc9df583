"""Operators of TFLite to the functions that import them."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping

from dryfit_tflite.operator_view import Operator

OperatorFunction = Callable[[Operator], None]
"""Adds the layers of an operator and gives its outputs."""

_FUNCTIONS: dict[str, OperatorFunction] = {}


def operator(*names: str) -> Callable[[OperatorFunction], OperatorFunction]:
    """Register the function of operators, by the schema's names."""

    def registered(function: OperatorFunction) -> OperatorFunction:
        _FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return registered


def operator_functions() -> Mapping[str, OperatorFunction]:
    """Return the functions of all operators that can be imported, by name, sorted."""
    _load()
    return dict(sorted(_FUNCTIONS.items()))


@functools.cache
def _load() -> None:
    package = importlib.import_module("dryfit_tflite.operators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
