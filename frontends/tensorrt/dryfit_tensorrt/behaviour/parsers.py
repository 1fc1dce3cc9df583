"""ONNX parsers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Any

import onnx

import dryfit
from dryfit_tensorrt.behaviour.monitoring import forwarded_log, report
from dryfit_tensorrt.behaviour.objects import Base, Scoped
from dryfit_tensorrt.behaviour.plugin_layers import adopt
from dryfit_tensorrt.behaviour.values import is_narrowed


class ParserError(Base):
    """Why a model was not parsed."""

    def __init__(self) -> None:
        raise TypeError("tensorrt.ParserError: No constructor defined!")

    @classmethod
    def _of(cls, core: Any) -> Any:
        self = cls._blank()
        self._core = core
        return self

    def code(self) -> Any:
        """Return the member of `ErrorCode`."""
        name = self._core.code().name
        known = self._api.ErrorCode.__members__
        return known.get(name, known["UNSUPPORTED_NODE"])

    def desc(self) -> str:
        """Return what is wrong, what is allowed and what to do."""
        return self._core.desc()

    def file(self) -> str:
        """Return "dryfit": there is no source file to name."""
        return "dryfit"

    def line(self) -> int:
        """Return 0: there is no source line to name."""
        return 0

    def func(self) -> str:
        """Return the operator that was imported."""
        return self._core.node_operator()

    def node(self) -> int:
        """Return the index of the node, or -1."""
        return self._core.node()

    def node_name(self) -> str:
        """Return the name of the node."""
        return self._core.node_name()

    def node_operator(self) -> str:
        """Return the operator of the node."""
        return self._core.node_operator()

    def local_function_stack(self) -> list[str]:
        """Return []: functions are expanded before the import."""
        return []

    def local_function_stack_size(self) -> int:
        """Return 0."""
        return 0

    def __str__(self) -> str:
        return str(self._core)

    __repr__ = __str__


class OnnxParser(Base, Scoped):
    """Parses ONNX models into a network."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})

    def __init__(self, network: Any, logger: Any) -> None:
        self._logger, self._network = logger, network
        self._core = dryfit.OnnxParser(network._core)
        self._flags = 1 << int(self._api.OnnxParserFlag.NATIVE_INSTANCENORM)
        self._subgraphs: list[tuple[list[int], bool]] = []
        self._config: Any = None
        self._proto: Any = None

    def parse(self, model: Any, path: str | None = None) -> bool:
        """Parse the bytes of a model."""
        return self._parse(lambda: self._core.parse(bytes(model), path))

    def parse_from_file(self, model: str) -> bool:
        """Parse a model file."""
        return self._parse(lambda: self._core.parse_from_file(os.fspath(model)))

    def parse_with_weight_descriptors(self, model: Any) -> bool:
        """Parse the bytes of a model."""
        return self.parse(model)

    def _parse(self, parse: Any) -> bool:
        if self._network.has_implicit_batch_dimension:
            report(
                self,
                "ERROR",
                "In node -1 (parse): INVALID_GRAPH: This version of the ONNX parser only supports networks with an "
                "explicit batch dimension. Remedy: pass EXPLICIT_BATCH to create_network",
            )
            return False
        before = self._core.num_errors
        with forwarded_log(self):
            fits = parse()
        adopt(self._network)
        for index in range(before, self._core.num_errors):
            report(self, "ERROR", str(self._core.get_error(index)))
        core = self._network._core
        tensors = (*core.inputs, *(tensor for layer in core.layers for tensor in layer.outputs)) if fits else ()
        if any(is_narrowed(self._api, tensor.dtype) for tensor in tensors):
            report(
                self,
                "WARNING",
                "Your ONNX model has been generated with INT64 weights, while TensorRT does not natively support INT64."
                " Attempting to cast down to INT32.",
            )
        return bool(fits)

    @property
    def num_errors(self) -> int:
        """Number of errors."""
        return self._core.num_errors

    def get_error(self, index: int) -> Any:
        """Return an error."""
        return self._api.ParserError._of(self._core.get_error(index))

    def clear_errors(self) -> None:
        """Forget the errors."""
        self._core.clear_errors()

    @property
    def flags(self) -> int:
        """Bit mask of `OnnxParserFlag`."""
        return self._flags

    @flags.setter
    def flags(self, flags: int) -> None:
        self._flags = int(flags)

    def set_flag(self, flag: Any) -> None:
        """Set a flag."""
        self._flags |= 1 << int(flag)

    def clear_flag(self, flag: Any) -> None:
        """Clear a flag."""
        self._flags &= ~(1 << int(flag))

    def get_flag(self, flag: Any) -> bool:
        """Return whether a flag is set."""
        return bool(self._flags >> int(flag) & 1)

    def supports_operator(self, op_name: str) -> bool:
        """Return whether an operator can be imported."""
        return self._core.supports_operator(op_name)

    def set_builder_config(self, builder_config: Any) -> bool:
        """Set the config that says on which device the network is to run."""
        self._config = builder_config
        return True

    def get_used_vc_plugin_libraries(self) -> list[str]:
        """Return []: no library of plugins is needed."""
        return []

    def get_layer_output_tensor(self, name: str, i: int) -> Any:
        """Return output `i` of the layer of a node, or None."""
        found = self._core.get_layer_output_tensor(name, i)
        return None if found is None else self._network._tensor(found)

    # Models that are supported in part ----------------------------------------------------------------------------

    def supports_model(self, model: Any, path: str | None = None) -> Any:
        """Return whether a model is supported, and (nodes, whether they are supported) of each of its subgraphs."""
        supported = self._supports(model, path)
        return supported, [(list(nodes), fits) for nodes, fits in self._subgraphs]

    def supports_model_v2(self, model: Any, path: str | None = None) -> bool:
        """Return whether a model is supported; the subgraphs can be asked for then."""
        return self._supports(model, path)

    def _supports(self, model: Any, path: str | None) -> bool:
        contents = bytes(model)
        proto = onnx.load_model_from_string(contents)
        trial = dryfit.OnnxParser(dryfit.Network())
        supported = trial.parse(contents, path)
        found = {trial.get_error(index).node() for index in range(trial.num_errors)}
        count = len(proto.graph.node)
        wrong = found if found - {-1} or supported else set(range(count))
        self._subgraphs = _subgraphs(count, wrong)
        self._core._errors.extend(trial.get_error(index) for index in range(trial.num_errors))
        return supported

    @property
    def num_subgraphs(self) -> int:
        """Number of subgraphs of the last model that was asked about."""
        return len(self._subgraphs)

    def is_subgraph_supported(self, index: int) -> bool:
        """Return whether a subgraph is supported."""
        return self._subgraphs[index][1]

    def get_subgraph_nodes(self, index: int) -> list[int]:
        """Return the indices of the nodes of a subgraph."""
        return list(self._subgraphs[index][0])

    # Models in parts ----------------------------------------------------------------------------------------------

    def load_model_proto(self, model: Any, path: str | None = None) -> bool:
        """Read a model whose initializers may follow; see `parse_model_proto`."""
        self._proto = (onnx.load_model_from_string(bytes(model)), path)
        return True

    def load_initializer(self, name: str, data: int, size: int) -> bool:
        """Set the values of an initializer from an address of host memory."""
        return loaded_initializer(self, self._proto, name, data, size)

    def parse_model_proto(self) -> bool:
        """Parse the model of `load_model_proto`."""
        if self._proto is None:
            report(self, "ERROR", "parse_model_proto: no model was loaded. Remedy: call load_model_proto first")
            return False
        model, path = self._proto
        return self.parse(model.SerializeToString(), path)


def loaded_initializer(owner: Any, loaded: Any, name: str, data: int, size: int) -> bool:
    """Set the values of an initializer of a loaded model; False and a message where that is not possible."""
    if loaded is None:
        report(owner, "ERROR", "load_initializer: no model was loaded. Remedy: call load_model_proto first")
        return False
    for tensor in loaded[0].graph.initializer:
        if tensor.name == name:
            tensor.raw_data = ctypes.string_at(data, size)
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
            return True
    report(owner, "ERROR", f"load_initializer: the model has no initializer {name!r}")
    return False


def _subgraphs(count: int, wrong: Iterable[int]) -> list[tuple[list[int], bool]]:
    """Runs of nodes without an error, as TensorRT lists them, and whether they are known to be supported.

    Nodes with an error are in none. What follows the first error is not known to be supported: its inputs were
    missing. Programs such as Polygraphy ask again about these nodes alone.
    """
    unsupported = set(wrong)
    first = min(unsupported, default=count)
    found: list[tuple[list[int], bool]] = []
    for node in range(count):
        if node in unsupported:
            continue
        if found and found[-1][0][-1] == node - 1:
            found[-1][0].append(node)
        else:
            found.append(([node], node < first))
    return found


class OnnxParserRefitter(Base):
    """Gives the weights of ONNX models to a refitter."""

    def __init__(self, refitter: Any, logger: Any) -> None:
        self._logger = logger
        self._core = dryfit.OnnxParserRefitter(refitter._core)
        self._proto: Any = None

    def refit_from_bytes(self, model: Any, path: str | None = None) -> bool:
        """Read the weights of a model's bytes."""
        return self._logged(self._core.refit_from_bytes(bytes(model), path))

    def refit_from_file(self, model: str) -> bool:
        """Read the weights of a model file."""
        return self._logged(self._core.refit_from_file(os.fspath(model)))

    def _logged(self, fits: bool) -> bool:
        for index in range(0 if fits else self._core.num_errors):
            report(self, "ERROR", str(self._core.get_error(index)))
        return fits

    @property
    def num_errors(self) -> int:
        """Number of errors."""
        return self._core.num_errors

    def get_error(self, index: int) -> Any:
        """Return an error."""
        return self._api.ParserError._of(self._core.get_error(index))

    def clear_errors(self) -> None:
        """Forget the errors."""
        self._core.clear_errors()

    def load_model_proto(self, model: Any, path: str | None = None) -> bool:
        """Read a model whose initializers may follow; see `refit_model_proto`."""
        self._proto = (onnx.load_model_from_string(bytes(model)), path)
        return True

    def load_initializer(self, name: str, data: int, size: int) -> bool:
        """Set the values of an initializer from an address of host memory."""
        return loaded_initializer(self, self._proto, name, data, size)

    def refit_model_proto(self) -> bool:
        """Read the weights of the model of `load_model_proto`."""
        if self._proto is None:
            report(self, "ERROR", "refit_model_proto: no model was loaded. Remedy: call load_model_proto first")
            return False
        model, path = self._proto
        return self.refit_from_bytes(model.SerializeToString(), path)
