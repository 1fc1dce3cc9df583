"""The ONNX parser by TensorRT's Python names: it fills a network, returns a bool and keeps the reasons.

`network_from_onnx` is the simple way; this one is for code that was written for `tensorrt.OnnxParser`.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

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
    """TensorRT's `OnnxParserFlag`. They are kept, and change nothing: the importer has one way for each operator.

    UINT8 and asymmetric quantization are imported without their flag; each device says for itself whether it has them.
    """

    NATIVE_INSTANCENORM = 0
    ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1
    REPORT_CAPABILITY_DLA = 2
    ENABLE_PLUGIN_OVERRIDE = 3
    ADJUST_FOR_DLA = 4


@attrs.frozen
class ParserError:
    """One reason why a model was not parsed, with TensorRT's accessors."""

    problem: ImportProblem

    def code(self) -> ErrorCode:
        """The class of the reason."""
        return self.problem.code

    def desc(self) -> str:
        """What was found, what is allowed, what to do."""
        return self.problem.reason

    def node(self) -> int:
        """The node's position in the graph, or -1."""
        return self.problem.node

    def node_name(self) -> str:
        """The node's name."""
        return self.problem.node_name

    def node_operator(self) -> str:
        """The node's operator."""
        return self.problem.node_operator

    def __str__(self) -> str:
        return f"[{self.code().name}] {self.problem}"


class KeepsErrors:
    """Keeps the reasons of calls that returned False and gives them to the logger, as both of TensorRT's parsers do."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._errors: list[ParserError] = []

    @property
    def num_errors(self) -> int:
        """How many reasons the last calls left."""
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        """One reason."""
        return self._errors[index]

    def clear_errors(self) -> None:
        """Forget the reasons."""
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
        network: takes the layers.
        logger: TensorRT passes one. An object with `log(severity, text)` gets each reason too.

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
        """Parse the bytes of a model file; `path` is where it came from, for its external data."""
        return self._parse(bytes(model), Path(path).parent if path is not None else None)

    def parse_from_file(self, path: str | os.PathLike[str]) -> bool:
        """Parse a model file."""
        return self._parse(path, None)

    def supports_operator(self, op_name: str) -> bool:
        """Whether an operator of ONNX's own set, in the newest opset, or of TensorRT's can be parsed.

        So can one that has the name of a layer plugin.
        """
        if not self._network.quantize_method and integer_operator(op_name, "") is not None:
            return False
        found = find_importer(op_name, "", NEWEST_OPSET) or find_importer(op_name, TENSORRT_DOMAIN, 1)
        return found is not None or has_layer_plugin(op_name)

    def set_flag(self, flag: OnnxParserFlag) -> None:
        """Set one flag."""
        self.flags |= 1 << flag

    def clear_flag(self, flag: OnnxParserFlag) -> None:
        """Clear one flag."""
        self.flags &= ~(1 << flag)

    def get_flag(self, flag: OnnxParserFlag) -> bool:
        """Whether a flag is set."""
        return bool(self.flags >> flag & 1)

    def get_layer_output_tensor(self, name: str, index: int) -> Any:
        """The tensor that is output `index` of the layer of a node, or None."""
        for layer in self._network.layers:
            if layer.name == name and index < layer.num_outputs:
                return layer.get_output(index)
        return None

    def _parse(self, source: ModelSource, folder: Path | None) -> bool:
        try:
            model, external = read_model(source, folder)
            problems = GraphImport(self._network, model, external, {}).run()
        except DryfitError as reason:
            problems = [ImportProblem(ErrorCode.MODEL_DESERIALIZE_FAILED, str(reason))]
        return self._has_none(problems)
