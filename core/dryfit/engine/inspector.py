"""The layers of an engine, for people and tools: TensorRT's `IEngineInspector`.

The JSON uses the keys of TensorRT 10 where they exist (`Name`, `LayerType`, `Inputs`, `Format/Datatype`, `Metadata`,
...), so that tools for those files also read ours, and additional keys for what TensorRT does not report: `Device`,
`Segment`, `Precision`, `MultiplyAccumulates`, `SourceLayers`. `TacticName` is the host's kernel. It is always detailed,
regardless of the engine's `profiling_verbosity`: our choice, because here it costs nothing.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dryfit.engine.device_tensors import format_description
from dryfit.engine.plan import Operation
from dryfit.engine.segment_program import operation_group
from dryfit.engine.tensorrt_layers import engine_information, engine_lines, shown_names
from dryfit.errors import ExecutionError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor, TensorSpec

if TYPE_CHECKING:
    from dryfit.engine.engine import Engine
    from dryfit.engine.execution_context import ExecutionContext

_NODE_SEPARATOR = "\x1e"
"""Between the names of ONNX nodes in `Metadata`, as in TensorRT."""

_PARAMETER_NAMES = {
    "num_output_maps": "OutMaps",
    "kernel_size_nd": "Kernel",
    "stride_nd": "Stride",
    "dilation_nd": "Dilation",
    "num_groups": "Groups",
    "window_size_nd": "WindowSize",
    "reshape_dims": "Reshape",
}
"""TensorRT's keys where they are not the parameter's name in capitals."""


class LayerInformationFormat(enum.IntEnum):
    """The output format of the inspector; TensorRT's `LayerInformationFormat`."""

    ONELINE = 0
    JSON = 1


class EngineInspector(KnownAttributes):
    """Reports an engine and its layers. Create it with `Engine.create_engine_inspector`.

    Attributes:
        execution_context: if set, dynamic shapes are those of the context.

    Example:
        >>> import json
        >>> information = json.loads(engine.create_engine_inspector().get_engine_information("json"))
        >>> sorted(information)
        ['Bindings', 'Layers']
    """

    execution_context: ExecutionContext | None

    def __init__(self, engine: Engine) -> None:
        self.execution_context = None
        self._engine = engine

    def get_layer_information(self, index: int, format: LayerInformationFormat | str = "json") -> str:
        """Return one engine layer, as a line of text or a JSON object.

        Raises:
            ExecutionError: The layer or format does not exist.
        """
        count = self._engine.num_layers
        if not 0 <= index < count:
            raise ExecutionError(
                "The engine layer index is out of range",
                where=f"engine {self._engine.name!r}",
                found=index,
                allowed=f"0 to {count - 1}",
                remedy="Use an index below the engine's num_layers",
            )
        layer = self._layer(self._engine.plan.operations[index])
        return _line(layer) if _format(format) is LayerInformationFormat.ONELINE else _json(layer)

    def get_engine_information(self, format: LayerInformationFormat | str = "json") -> str:
        """Return all engine layers, as lines of text or one JSON object."""
        plan = self._engine.plan
        layers = [self._layer(operation) for operation in plan.operations]
        if _format(format) is LayerInformationFormat.ONELINE:
            return "\n".join(map(_line, layers))
        io_names = [self._engine.get_tensor_name(index) for index in range(self._engine.num_io_tensors)]
        return _json({"Layers": layers, "Bindings": io_names})

    def tensorrt_information(self, major: int = 10) -> dict[str, Any]:
        """Return all engine layers, and the inputs and outputs, as the JSON of TensorRT's inspector has them.

        A DLA loadable is one layer. Layers are objects only if the engine was built with detailed
        `profiling_verbosity`; otherwise they are names, which are empty with NONE.

        Args:
            major: major version of TensorRT, which decides on the form.
        """
        return engine_information(self._engine, self.execution_context, major=major)

    def tensorrt_lines(self) -> list[str]:
        """Return all engine layers, and the inputs and outputs, as the lines of TensorRT's inspector."""
        return engine_lines(self._engine, self.execution_context)

    def tensorrt_names(self) -> dict[str, str]:
        """Return the name under which TensorRT reports each engine layer that is part of a DLA loadable."""
        return shown_names(self._engine)

    def _layer(self, operation: Operation) -> dict[str, Any]:
        network = self._engine.plan.network
        layers = [network.layer(name) for name in operation.layers]
        group = operation_group(operation, {layer.name: layer for layer in layers})
        facts: dict[str, Any] = {
            "Name": operation.name,
            "LayerType": "ForeignNode" if operation.is_compiled else group.main.layer_type.title().replace("_", ""),
            "Inputs": [self._tensor(tensor) for tensor in group.inputs],
            "Outputs": [self._tensor(tensor) for tensor in group.outputs],
            "ParameterType": "ForeignNode" if operation.is_compiled else group.main.type,
            **({} if operation.is_compiled else _parameters(group.main)),
            "Fused": [layer.type for layer in layers if operation.is_compiled or layer is not group.main],
            "TacticName": operation.kernel,
            "StreamId": 0,
            "Metadata": _NODE_SEPARATOR.join(f"[ONNX Layer: {node}]" for node in operation.onnx_nodes),
            "Device": operation.device,
            "Segment": operation.segment,
            "Precision": operation.precision.name,
            "MultiplyAccumulates": sum(layer.multiply_accumulates(self._specs(layer)) for layer in layers),
            "SourceLayers": list(operation.source_layers),
            "Weights": {name: _weights(array) for name, array in operation.weights.items()},
        }
        return facts

    def _specs(self, layer: Layer) -> Mapping[str, TensorSpec]:
        """Return the specs of a layer's tensors, with the shapes in use."""
        tensors = [tensor for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]
        return {tensor.name: attrs.evolve(tensor.spec, shape=self._shape(tensor)) for tensor in tensors}

    def _tensor(self, tensor: Tensor) -> dict[str, Any]:
        plan = self._engine.plan
        placement = plan.placements.get(tensor.name)
        return {
            "Name": tensor.name,
            "Location": "Host" if tensor.is_shape_tensor else "Device",
            "Dimensions": list(self._shape(tensor)),
            "Format/Datatype": format_description(plan, tensor.name, tensor.dtype),
            **(
                {}
                if placement is None
                else {"Pool": placement.pool, "Offset": placement.offset, "Bytes": placement.size}
            ),
        }

    def _shape(self, tensor: Tensor) -> tuple[int, ...]:
        if self.execution_context is None:
            return tensor.shape
        return self.execution_context.tensor_spec(tensor.name).shape


def _parameters(layer: Layer) -> dict[str, Any]:
    """Return the parameters of a layer's kind, with arrays as type and count."""
    facts: dict[str, Any] = {}
    for field in layer.parameters():
        value = getattr(layer, field.name)
        key = _PARAMETER_NAMES.get(field.name, field.name.title().replace("_", ""))
        if isinstance(value, np.ndarray):
            facts[key if key != "Kernel" else "Weights"] = _weights(value)
        elif value is not None:
            facts[key] = _plain(value)
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _weights(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"Type": DataType.from_numpy(array.dtype).name.title(), "Count": int(array.size)}


def _line(layer: Mapping[str, Any]) -> str:
    inputs = ", ".join(f"{one['Name']} {one['Dimensions']}" for one in layer["Inputs"])
    outputs = ", ".join(f"{one['Name']} {one['Dimensions']}" for one in layer["Outputs"])
    fused = f" with {', '.join(layer['Fused'])}" if layer["Fused"] else ""
    return (
        f"[{layer['Device']}] {layer['Name']}: {layer['ParameterType']}{fused} in {layer['Precision']} "
        f"by {layer['TacticName']}: {inputs} -> {outputs}"
    )


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, allow_nan=False)


def _format(asked: LayerInformationFormat | str) -> LayerInformationFormat:
    if isinstance(asked, LayerInformationFormat):
        return asked
    if str(asked).upper() not in LayerInformationFormat.__members__:
        raise ExecutionError(
            "Unknown inspector format",
            found=asked,
            allowed=", ".join(LayerInformationFormat.__members__),
            remedy="Use LayerInformationFormat.ONELINE or LayerInformationFormat.JSON",
        )
    return LayerInformationFormat[str(asked).upper()]
