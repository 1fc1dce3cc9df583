"""The ONNX parser under TensorRT's Python names: it populates a network, returns a bool and keeps the errors.

`network_from_onnx` is the simpler interface; this one supports code written for `tensorrt.OnnxParser`.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.network import Network
from dryfit.onnx.importer import GraphImport, network_from_onnx
from dryfit.onnx.model_file import ModelSource, read_model
from dryfit.onnx.node_meaning import has_layer_plugin, integer_operator
from dryfit.onnx.problems import ErrorCode, ImportProblem
from dryfit.onnx.registry import NEWEST_OPSET, TENSORRT_DOMAIN, find_importer

__all__ = ["OnnxParser", "OnnxParserFlag", "ParserError", "network_from_onnx"]


class OnnxParserFlag(enum.IntEnum):
    """TensorRT's `OnnxParserFlag`. Stored without effect: the importer has one implementation per operator.

    UINT8 and asymmetric quantization are imported without their flag; the rules of each device decide whether it
    supports them.
    """

    NATIVE_INSTANCENORM = 0
    ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1
    REPORT_CAPABILITY_DLA = 2
    ENABLE_PLUGIN_OVERRIDE = 3
    ADJUST_FOR_DLA = 4


@frozen
class ParserError:
    """A reason why a model was not parsed, with TensorRT's accessors."""

    problem: ImportProblem

    def code(self) -> ErrorCode:
        """Return the error code."""
        return self.problem.code

    def desc(self) -> str:
        """Return what was found, what is allowed, and how to fix it."""
        return self.problem.reason

    def node(self) -> int:
        """Return the index of the node in the graph, or -1."""
        return self.problem.node

    def node_name(self) -> str:
        """Return the name of the node."""
        return self.problem.node_name

    def node_operator(self) -> str:
        """Return the operator of the node."""
        return self.problem.node_operator

    def __str__(self) -> str:
        return f"[{self.code().name}] {self.problem}"


class KeepsErrors:
    """Keeps the errors of calls that returned False and logs them, as both of TensorRT's parsers do."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._errors: list[ParserError] = []

    @property
    def num_errors(self) -> int:
        """Number of errors of the last calls."""
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        """Return an error by index."""
        return self._errors[index]

    def clear_errors(self) -> None:
        """Clear the errors."""
        self._errors.clear()

    def _has_none(self, problems: Iterable[ImportProblem]) -> bool:
        """Keep the problems of a call; returns whether it has none."""
        errors = [ParserError(problem) for problem in problems]
        if self._logger is not None:
            for error in errors:
                self._logger.log(1, str(error))  # TensorRT's Severity.ERROR
        self._errors.extend(errors)
        return not errors


class OnnxParser(KeepsErrors, KnownAttributes):
    r"""Parses ONNX models into a network.

    Args:
        network: network to which the layers are added.
        logger: optional logger, as in TensorRT. An object with `log(severity, text)` also receives each error.

    Example:
        >>> network = Network()
        >>> parser = OnnxParser(network)
        >>> if not parser.parse_from_file("model.onnx"):
        ...     print(*(parser.get_error(index) for index in range(parser.num_errors)), sep="\n")
    """

    flags: int

    def __init__(self, network: Network, logger: Any = None) -> None:
        super().__init__(logger)
        self._network = network
        self.flags = 1 << OnnxParserFlag.NATIVE_INSTANCENORM

    def parse(self, model: bytes, path: str | os.PathLike[str] | None = None) -> bool:
        """Parse the bytes of a model file. `path` is the path of that file, used to find external data."""
        return self._parse(bytes(model), Path(path).parent if path is not None else None)

    def parse_from_file(self, path: str | os.PathLike[str]) -> bool:
        """Parse a model file."""
        return self._parse(path, None)

    def supports_operator(self, op_name: str) -> bool:
        """Return whether an operator of the newest ONNX opset, or of TensorRT, is supported.

        Operators with the name of a layer plugin are also supported.
        """
        if not self._network.quantize_method and integer_operator(op_name, "") is not None:
            return False
        found = find_importer(op_name, "", NEWEST_OPSET) or find_importer(op_name, TENSORRT_DOMAIN, 1)
        return found is not None or has_layer_plugin(op_name)

    def set_flag(self, flag: OnnxParserFlag) -> None:
        """Set a flag."""
        self.flags |= 1 << flag

    def clear_flag(self, flag: OnnxParserFlag) -> None:
        """Clear a flag."""
        self.flags &= ~(1 << flag)

    def get_flag(self, flag: OnnxParserFlag) -> bool:
        """Return whether a flag is set."""
        return bool(self.flags >> flag & 1)

    def get_layer_output_tensor(self, name: str, index: int) -> Any:
        """Return the tensor that is output `index` of the layer of a node, or None."""
        for layer in self._network.layers:
            if layer.name == name and index < layer.num_outputs:
                return layer.get_output(index)
        return None

    def _parse(self, source: ModelSource, folder: Path | None) -> bool:
        try:
            model, external = read_model(source, folder)
            problems = GraphImport(self._network, model, external, {}, {}).run()
        except DryfitError as reason:
            problems = [ImportProblem(ErrorCode.MODEL_DESERIALIZE_FAILED, str(reason))]
        return self._has_none(problems)
