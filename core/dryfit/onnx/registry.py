"""The table of ONNX operators that can be imported, filled by the files of `dryfit.onnx.operators`.

Operators of other sets than ONNX's may also come from installed packages, as `OnnxOperator` records.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence

import attrs

from dryfit.errors import DryfitError, PluginError
from dryfit.onnx.behind import UnseenValueError
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.problems import ErrorCode
from dryfit.plugins import facade
from dryfit.plugins.contributions import OnnxOperator
from dryfit.plugins.discovery import CHOOSE_ONE
from dryfit.plugins.hook_modules import Owned

Result = Operand | Sequence[Operand]
OperatorFunction = Callable[[Node], Result]

OLDEST_OPSET, NEWEST_OPSET = 7, 28
"""The versions of ONNX's own operator set that can be imported. Up to 6, broadcasting was another."""
TENSORRT_DOMAIN = "trt"
"""The operator set of what TensorRT's parser takes beyond ONNX."""


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
    """The newest importer of an operator that is not newer than the model's operator set.

    What dryfit imports itself nobody replaces; operators of other sets than ONNX's may come from installed packages.

    Raises:
        PluginError: two packages bring it.
    """
    _load()
    fitting = [importer for importer in _IMPORTERS.get((domain, op_type), ()) if importer.since <= opset]
    if fitting:
        return fitting[-1]
    return _contributed(op_type, domain, opset) if domain else None


def all_importers() -> list[Importer]:
    """Every importer, by domain, operator and version."""
    _load()
    return [importer for key in sorted(_IMPORTERS) for importer in _IMPORTERS[key]]


@functools.cache
def _load() -> None:
    package = importlib.import_module("dryfit.onnx.operators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def _contributed(op_type: str, domain: str, opset: int) -> Importer | None:
    """The newest importer that an installed package brings, and that is not newer than the model's operator set.

    Raises:
        PluginError: two packages bring it.
    """
    fitting = [owned for owned in facade.onnx_operators(domain, op_type) if owned.value.since <= opset]
    newest = max((owned.value.since for owned in fitting), default=0)
    owners = [owned for owned in fitting if owned.value.since == newest]
    if len(owners) > 1:
        raise PluginError(
            f"The importer of {domain}::{op_type} from version {newest} on is brought by more than one package",
            found=", ".join(owned.plugin for owned in owners),
            remedy=CHOOSE_ONE,
        )
    return Importer(op_type, domain, newest, _guarded(owners[0])) if owners else None


def _guarded(owned: Owned[OnnxOperator]) -> OperatorFunction:
    """A package's operator function, whose failures become refusals of the node that name the package."""

    def import_node(node: Node) -> Result:
        try:
            result = owned.value.function(node)
        except (DryfitError, UnseenValueError):
            raise
        except Exception as error:  # foreign code: whatever it raises is told with the node's name
            raise node.refusal(
                "The operator's importer failed",
                code=ErrorCode.INTERNAL_ERROR,
                found=f"{type(error).__name__}: {error}",
                remedy=f"It comes from the plugin {owned.plugin}",
            ) from error
        results = [result] if isinstance(result, Operand) else result
        if not isinstance(results, Sequence) or not all(isinstance(one, Operand) for one in results):
            raise node.refusal(
                "The operator's importer returned something else",
                code=ErrorCode.INTERNAL_ERROR,
                found=type(result).__name__,
                allowed="an operand, or a list of operands",
                remedy=f"It comes from the plugin {owned.plugin}",
            )
        return results

    return import_node
