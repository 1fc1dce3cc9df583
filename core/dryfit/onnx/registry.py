"""The table of ONNX operators that can be imported, filled by the files of `dryfit.onnx.operators`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence

import attrs

from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand

Result = Operand | Sequence[Operand]
OperatorFunction = Callable[[Node], Result]

OLDEST_OPSET, NEWEST_OPSET = 7, 28
"""The versions of ONNX's own operator set that can be imported. Up to 6, broadcasting was another."""


@attrs.frozen
class Importer:
    """How one operator is imported from one version of its operator set on.

    Attributes:
        op_type: the operator.
        domain: its operator set; empty for ONNX's own.
        since: the first version that has these semantics.
        function: adds the layers of a node and returns its outputs.
    """

    op_type: str
    domain: str
    since: int
    function: OperatorFunction


_IMPORTERS: dict[tuple[str, str], list[Importer]] = {}


def operator(*op_types: str, since: int = 1, domain: str = "") -> Callable[[OperatorFunction], OperatorFunction]:
    """Register a function for operators, from a version of their operator set on."""

    def register(function: OperatorFunction) -> OperatorFunction:
        for op_type in op_types:
            versions = _IMPORTERS.setdefault((domain, op_type), [])
            versions.append(Importer(op_type, domain, since, function))
            versions.sort(key=lambda importer: importer.since)
        return function

    return register


def find_importer(op_type: str, domain: str, opset: int) -> Importer | None:
    """The newest importer of an operator that is not newer than the model's operator set."""
    _load()
    fitting = [importer for importer in _IMPORTERS.get((domain, op_type), ()) if importer.since <= opset]
    return fitting[-1] if fitting else None


def all_importers() -> list[Importer]:
    """Every importer, by domain, operator and version."""
    _load()
    return [importer for key in sorted(_IMPORTERS) for importer in _IMPORTERS[key]]


@functools.cache
def _load() -> None:
    package = importlib.import_module("dryfit.onnx.operators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
