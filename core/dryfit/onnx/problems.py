"""Why a model, or one node of it, cannot be imported: records that the parser lists and the importer raises."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from dryfit.attrs_classes import frozen
from dryfit.errors import OnnxImportError
from dryfit.short_text import count_text, grouped, likeness, printable


class ErrorCode(enum.IntEnum):
    """TensorRT's `nvonnxparser::ErrorCode`."""

    SUCCESS = 0
    INTERNAL_ERROR = 1
    MEM_ALLOC_FAILED = 2
    MODEL_DESERIALIZE_FAILED = 3
    INVALID_VALUE = 4
    INVALID_GRAPH = 5
    INVALID_NODE = 6
    UNSUPPORTED_GRAPH = 7
    UNSUPPORTED_NODE = 8
    UNSUPPORTED_NODE_ATTR = 9
    UNSUPPORTED_NODE_INPUT = 10
    UNSUPPORTED_NODE_DATATYPE = 11
    UNSUPPORTED_NODE_DYNAMIC = 12
    UNSUPPORTED_NODE_SHAPE = 13
    REFIT_FAILED = 14


@frozen
class ImportProblem:
    """One reason why a model cannot be imported.

    Attributes:
        code: TensorRT's code for this class of reasons.
        reason: what was found, what is allowed, what to do.
        node: the node's position in the graph; -1 where the reason lies in the model as a whole.
        node_name: the node's name, or a name made from its first output.
        node_operator: its operator, with the domain where it is not ONNX's own.
        needs_constants: names of ONNX values that have to be known when the model is imported, and are not.
    """

    code: ErrorCode
    reason: str
    node: int = -1
    node_name: str = ""
    node_operator: str = ""
    needs_constants: frozenset[str] = frozenset()

    def __str__(self) -> str:
        if self.node < 0:
            return self.reason
        # One line for each node: line ends in names and values of the model must not look like other messages.
        return printable(f"node {self.node_name!r} ({self.node_operator}): {self.reason}", kept="")


class NodeRefusedError(OnnxImportError):
    """An operator function cannot import its node; the importer turns it into an `ImportProblem` and goes on."""

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode = ErrorCode.UNSUPPORTED_NODE,
        found: object = None,
        allowed: object = None,
        remedy: str | None = None,
        needs_constants: Iterable[str] = (),
    ) -> None:
        super().__init__(message, found=found, allowed=allowed, remedy=remedy)
        self.code = code
        self.needs_constants = frozenset(needs_constants)


class ModelRefusedError(OnnxImportError):
    """A model cannot be imported. `problems` has every reason, node by node.

    Attributes:
        problems: the reasons.
        half_seen_nodes: how many nodes behind refused ones could not be looked at to the end.
    """

    def __init__(self, problems: Sequence[ImportProblem], half_seen_nodes: int = 0) -> None:
        self.problems = tuple(problems)
        self.half_seen_nodes = half_seen_nodes
        entries = [((one.code, likeness(one.reason)), one.node_name, str(one)) for one in self.problems]
        lines = "".join(f"\n  {line}" for line in grouped(entries))
        count = len(self.problems)
        nodes = count_text(half_seen_nodes, "node")
        rest = f"\n  {nodes} after rejected ones could not be fully checked" if half_seen_nodes else ""
        super().__init__(f"The model cannot be imported, for {count_text(count, 'reason')}:{lines}{rest}")
