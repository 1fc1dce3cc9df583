"""The table of ONNX operators that can be imported, filled by the files of `dryfit.onnx.operators`.

Operators of other sets than ONNX's may also come from installed packages, as `OnnxOperator` records.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, cast

from onnx import GraphProto, TensorProto, ValueInfoProto

from dryfit.attrs_classes import define, frozen
from dryfit.errors import DryfitError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor, TensorSpec
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode, NodeRefusedError
from dryfit.onnx.tensors import DATA_TYPES, NodeInput
from dryfit.plugins import facade
from dryfit.plugins.contributions import OnnxOperator
from dryfit.plugins.discovery import CHOOSE_ONE
from dryfit.plugins.hook_modules import Owned

Result = NodeInput | Sequence[NodeInput]
OperatorFunction = Callable[[Node], Result]

OLDEST_OPSET, NEWEST_OPSET = 7, 28
"""The versions of ONNX's own operator set that can be imported. Up to 6, broadcasting was another."""
TENSORRT_DOMAIN = "trt"
"""The operator set of what TensorRT's parser takes beyond ONNX."""


@frozen
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
        _fitting.cache_clear()
        return function

    return register


def find_importer(op_type: str, domain: str, opset: int) -> Importer | None:
    """The newest importer of an operator that is not newer than the model's operator set.

    What dryfit imports itself nobody replaces; operators of other sets than ONNX's may come from installed packages.

    Raises:
        PluginError: two packages bring it.
    """
    _load()
    own = _fitting(op_type, domain, opset)
    return own if own is not None or not domain else _contributed(op_type, domain, opset)


@functools.lru_cache(maxsize=1024)
def _fitting(op_type: str, domain: str, opset: int) -> Importer | None:
    """The newest importer of dryfit's own that is not newer than the model's operator set."""
    versions = _IMPORTERS.get((domain, op_type), ())
    return next((importer for importer in reversed(versions) if importer.since <= opset), None)


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
            f"More than one package provides the importer of {domain}::{op_type} from version {newest} on",
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
                remedy=f"Report it to the authors of the plugin {owned.plugin}",
            ) from error
        results = [result] if isinstance(result, NodeInput) else result
        if not isinstance(results, Sequence) or not all(isinstance(one, NodeInput) for one in results):
            raise node.refusal(
                "The operator's importer returned an unexpected type",
                code=ErrorCode.INTERNAL_ERROR,
                found=type(result).__name__,
                allowed="an operand, or a list of operands",
                remedy=f"Report it to the authors of the plugin {owned.plugin}",
            )
        return results

    return import_node


# Nodes behind refused ones --------------------------------------------------------------------------------------------


GUESSED_RANKS = (4, 3, 2)
"""Numbers of axes that a value of unknown shape is tried with, to see the attributes that are read after its shape."""


class UnseenValueError(Exception):
    """A node asked for the shape, type or contents of a value that is not known. It never leaves the importer."""


class _UnknownSpec:
    """In the place of the spec of a value that nothing is known of."""

    def __getattr__(self, name: str) -> NoReturn:
        raise UnseenValueError(name)


@define(eq=False)
class UnseenOperand(NodeInput):
    """A value behind a refused node. Its tensor is in no network; asking an unknown one for its spec's facts raises."""


def unseen_operand(name: str, spec: TensorSpec | None) -> UnseenOperand:
    """A value behind a refused node; `spec` is what can be said of it.

    A short list of integers may be a shape or axes, whose contents decide: it stays unknown, whatever its spec.
    """
    decides = spec is not None and spec.value is None and spec.rank < 2 and spec.dtype.is_integer
    return UnseenOperand(name, cast("TensorSpec", _UnknownSpec()) if spec is None or decides else spec)


def stated_spec(info: ValueInfoProto) -> TensorSpec | None:
    """What a model says of one of its values, or None where it does not say type and number of axes."""
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape") or kind.elem_type not in DATA_TYPES:
        return None
    extents = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    return TensorSpec(tuple(max(extent, -1) for extent in extents), DATA_TYPES[kind.elem_type])


class TrialNetwork:
    """The network that one node behind a refused one is tried in."""

    def __init__(self, read: Callable[[TensorProto], Array]) -> None:
        self.network = Network("trial")
        self._read = read
        self._tensors: dict[int, Tensor] = {}
        self._operands: list[NodeInput] = []

    def array_of(self, tensor: TensorProto) -> Array:
        """The contents of a tensor of the model."""
        return self._read(tensor)

    def tensor_of(self, operand: NodeInput) -> Tensor:
        """A tensor of this network for an operand from anywhere."""
        if operand.tensor is not None and operand.tensor.network is self.network:
            return operand.tensor
        if id(operand) not in self._tensors:
            self._operands.append(operand)  # keeps its identity from being given to another
            if operand.value is not None:
                constant = self.network.add_layer(Constant(weights=operand.value, shape=operand.shape), [])
                self._tensors[id(operand)] = constant.outputs[0]
            else:
                name = self.network.free_tensor_name(operand.name)
                self._tensors[id(operand)] = self.network.add_input(name, operand.dtype, operand.shape)
        return self._tensors[id(operand)]


class _UnseenBodies:
    """In the place of the subgraphs of a node behind a refused one."""

    def body(self, graph: GraphProto, inputs: Sequence[TensorSpec | None]) -> NoReturn:
        """Not looked at."""
        raise UnseenValueError(graph.name, len(inputs))

    def inline(
        self, graph: GraphProto, operands: Mapping[str, NodeInput] | None = None, opset: int | None = None
    ) -> NoReturn:
        """Not looked at."""
        del operands, opset
        raise UnseenValueError(graph.name)


UNSEEN_BODIES = _UnseenBodies()
"""What a node behind a refused one is given; its subgraphs read values that do not exist."""

Trial = Callable[[Sequence[NodeInput | None]], Sequence[NodeInput]]
"""Imports the node with these inputs into a new `TrialNetwork`."""


def looked_at_behind(trial: Trial, inputs: Sequence[NodeInput | None]) -> list[UnseenOperand]:
    """The results of a node some of whose inputs are unseen.

    Raises:
        UnseenValueError: it could not be looked at to the end.
        DryfitError: it cannot be imported, whatever it would have been given.
    """
    unseen = {operand.name for operand in inputs if isinstance(operand, UnseenOperand)}
    try:
        results = trial(inputs)
    except NodeRefusedError as error:
        # What the missing node would have made may be known, and may have no dynamic dimension.
        if error.code is ErrorCode.UNSUPPORTED_NODE_DYNAMIC or error.needs_constants & unseen:
            raise UnseenValueError(str(error)) from error
        raise
    except UnseenValueError:
        _try_guesses(trial, inputs)
        raise
    return [
        operand if isinstance(operand, UnseenOperand) else unseen_operand(operand.name, operand.spec)
        for operand in results
    ]


def _try_guesses(trial: Trial, inputs: Sequence[NodeInput | None]) -> None:
    """Raise what a node refuses of its attributes with made-up values; everything else comes of making them up."""
    for rank in GUESSED_RANKS:
        guess = TensorSpec((-1,) * rank, DataType.FLOAT)
        try:
            trial([_guessed(operand, guess) for operand in inputs])
        except NodeRefusedError as error:
            if error.code is ErrorCode.UNSUPPORTED_NODE_ATTR:
                raise
        except Exception:  # noqa: BLE001, S112  of a value that does not exist, anything may be wrong
            continue


def _guessed(operand: NodeInput | None, guess: TensorSpec) -> NodeInput | None:
    is_unknown = operand is not None and isinstance(operand.spec, _UnknownSpec)
    return NodeInput(operand.name, guess) if operand is not None and is_unknown else operand
