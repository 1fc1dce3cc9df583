"""Serialization of a network to plain data and named arrays, and back from untrusted files.

Reading evaluates nothing and calls no plugin: the output specs of plugin layers, and of layers whose bodies contain
plugin layers, are stored in the data. The shapes of all other layers are inferred again and must match the stored
shapes. Writing asks a layer plugin which fields to keep.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from dryfit.errors import DryfitError, NetworkError
from dryfit.network.data_types import EXCHANGED_TYPES, STAND_IN_TYPES, DataType
from dryfit.network.layer import LAYER_KINDS, Graph, Layer, with_bodies
from dryfit.network.layers.bodies import DEEPEST_BODIES
from dryfit.network.layers.control_flow import ConditionalLayer, LoopLayer
from dryfit.network.layers.plugin import Plugin
from dryfit.network.network import Network
from dryfit.network.parameter_values import ArrayNames, from_plain, to_plain
from dryfit.network.tensor import Array, Tensor, TensorLocation, TensorSpec

Plain = dict[str, Any]

_LARGEST_EXTENT = 2**63 - 1
_LONGEST_PLACE = 200
_NETWORK_KEYS: dict[str, Any] = {
    "name": str,
    "flags": int,
    "metadata": dict[str, str],
    "quantize_method": str,
    "inputs": list,
    "layers": list,
    "outputs": tuple[str, ...],
    "io_types": dict[str, DataType],
}
_DEBUG = "debug"
"""Key of the debug marks; absent without any."""
_DEBUG_KEYS: dict[str, Any] = {"tensors": tuple[str, ...], "unfused": bool}
_LAYER_KEYS: dict[str, Any] = {
    "kind": str,
    "name": str,
    "metadata": str,
    "onnx_nodes": tuple[str, ...],
    "precision": DataType | None,
    "output_types": dict[str, DataType],
    "quantize_method": str,
    "parameters": dict,
    "inputs": tuple[str | None, ...],
    "outputs": list,
}
_TENSOR_KEYS: dict[str, Any] = {
    "name": str,
    "dtype": DataType,
    "shape": tuple[int, ...],
    "dynamic_range": tuple[float, float] | None,
    "allowed_formats": tuple[str, ...] | None,
    "location": TensorLocation,
    "dimension_names": dict[str, str],
}


def network_to_dict(network: Network) -> tuple[Plain, dict[str, Array]]:
    """Return the network as JSON-compatible data, and its arrays by name.

    The arrays are shared with the network, not copied. They are named after layers and parameters.

    Raises:
        NetworkError: Shapes cannot be inferred, or a parameter cannot be stored in a file.
    """
    arrays = ArrayNames()
    return _network_to_dict(network, arrays), arrays.arrays


def _network_to_dict(network: Network, arrays: ArrayNames) -> Plain:
    network.refresh_shapes()
    data: Plain = {
        "name": network.name,
        "flags": network.flags,
        "metadata": dict(network.metadata),
        "quantize_method": network.quantize_method,
        "inputs": [_tensor_to_dict(tensor) for tensor in network.inputs],
        "layers": [_layer_to_dict(layer, arrays) for layer in network.layers],
        "outputs": [tensor.name for tensor in network.outputs],
        "io_types": {
            tensor.name: tensor.io_dtype.name for tensor in (*network.inputs, *network.outputs) if tensor.io_dtype
        },
    }
    if network.debug_tensors or network.has_unfused_debug_tensors:
        data[_DEBUG] = {
            "tensors": [tensor.name for tensor in network.debug_tensors],
            "unfused": network.has_unfused_debug_tensors,
        }
    return data


def network_from_dict(data: Mapping[str, Any], arrays: Mapping[str, Array]) -> Network:
    """Return the network that `network_to_dict` wrote. The network shares the arrays.

    Raises:
        NetworkError: The data does not describe a valid network: a kind, parameter, array or tensor does not exist, or
            a value has the wrong type or is inconsistent. The message names the location.
    """
    return _read_network(data, arrays, "network", 0)


def _read_network(data: Any, arrays: Mapping[str, Array], where: str, depth: int) -> Network:
    marks = data.get(_DEBUG) if depth == 0 and isinstance(data, Mapping) else None
    plain = {key: value for key, value in data.items() if key != _DEBUG} if marks is not None else data
    fields = _fields(plain, _NETWORK_KEYS, where)
    inside = "" if depth == 0 else f"{where}."
    network = Network(fields["name"], fields["flags"])
    network.metadata.update(fields["metadata"])
    network.quantize_method = fields["quantize_method"]
    for index, item in enumerate(fields["inputs"]):
        _read_input(network, item, f"{inside}inputs[{index}]")
    for index, item in enumerate(fields["layers"]):
        _read_layer(network, item, arrays, f"{inside}layers[{index}]", depth)
    for index, name in enumerate(fields["outputs"]):
        tensor = _tensor(network, name, f"{inside}outputs[{index}]")
        if tensor.is_network_output:
            raise NetworkError(
                "An output must be listed once",
                where=f"{inside}outputs[{index}]",
                found=name[:100],
                remedy="Build the engine again",
            )
        network.mark_output(tensor)
    _read_io_types(network, fields)
    if marks is not None:
        _read_debug_marks(network, marks)
    return network


# Writing ----------------------------------------------------------------------------------------------------------


def _layer_to_dict(layer: Layer, arrays: ArrayNames) -> Plain:
    parameters = {
        field.name: _parameter_to_plain(_saved(layer, field.name), arrays, f"{layer.name}.{field.name}")
        for field in layer.parameters()
    }
    return {
        "kind": layer.kind,
        "name": layer.name,
        "metadata": layer.metadata,
        "onnx_nodes": list(layer.onnx_nodes),
        "precision": layer.precision and layer.precision.name,
        "output_types": {str(index): dtype.name for index, dtype in layer.output_types.items()},
        "quantize_method": layer.quantize_method,
        "parameters": parameters,
        "inputs": [tensor and tensor.name for tensor in layer.inputs],
        "outputs": [_tensor_to_dict(tensor) for tensor in layer.outputs],
    }


def _parameter_to_plain(value: Any, arrays: ArrayNames, name: str) -> Any:
    return _network_to_dict(value, arrays) if isinstance(value, Network) else to_plain(value, arrays, name)


def _saved(layer: Layer, name: str) -> Any:
    """A parameter as files keep it."""
    if isinstance(layer, Plugin) and name == "fields":
        return layer.fields_to_save()
    return getattr(layer, name)


def _tensor_to_dict(tensor: Tensor) -> Plain:
    return {
        "name": tensor.name,
        "dtype": tensor.spec.dtype.name,
        "shape": [int(extent) for extent in tensor.shape],
        "dynamic_range": tensor.dynamic_range and [float(bound) for bound in tensor.dynamic_range],
        "allowed_formats": None if tensor.allowed_formats is None else sorted(tensor.allowed_formats),
        "location": tensor.location.name,
        "dimension_names": {str(axis): name for axis, name in sorted(tensor.dimension_names.items())},
    }


# Reading ----------------------------------------------------------------------------------------------------------


def _read_input(network: Network, data: Any, where: str) -> None:
    fields = _tensor_fields(data, where)
    _describe(network.add_input(fields["name"], fields["dtype"], fields["shape"]), fields, where)


def _read_io_types(network: Network, fields: Plain) -> None:
    """The types on the caller's side, which stand for those of the network."""
    inputs = {tensor.name: tensor for tensor in network.inputs if tensor.spec.dtype in EXCHANGED_TYPES}
    border = {tensor.name: tensor for tensor in network.outputs} | inputs
    for name, dtype in fields["io_types"].items():
        if name not in border or dtype not in STAND_IN_TYPES:
            raise NetworkError(
                "This type is not supported for an input or output of the caller",
                where=f"io_types, {name[:100]!r}",
                found=dtype.name,
                allowed=f"{', '.join(one.name for one in STAND_IN_TYPES)} for {', '.join(border) or 'none'}"[:1000],
                remedy="Build the engine again",
            )
        border[name].io_dtype = dtype


def _read_debug_marks(network: Network, data: Any) -> None:
    fields = _fields(data, _DEBUG_KEYS, _DEBUG)
    for index, name in enumerate(fields["tensors"]):
        network.mark_debug(_tensor(network, name, f"{_DEBUG}.tensors[{index}]"))
    if fields["unfused"]:
        network.mark_unfused_tensors_as_debug_tensors()


def _read_layer(network: Network, data: Any, arrays: Mapping[str, Array], where: str, depth: int) -> None:
    fields = _fields(data, _LAYER_KEYS, where)
    where = f"{where} {fields['name'][:100]!r}"
    layer = _layer(fields, arrays, where, depth)
    inputs = [
        None if name is None else _tensor(network, name, f"{where}.inputs[{index}]")
        for index, name in enumerate(fields["inputs"])
    ]
    outputs = [_tensor_fields(item, f"{where}.outputs[{index}]") for index, item in enumerate(fields["outputs"])]
    recorded = [TensorSpec(output["shape"], output["dtype"]) for output in outputs]
    specs = recorded if layer.kind == "plugin" else _inferred(layer, inputs, recorded, where)
    network.add_layer(layer, inputs, specs)
    if layer.name != fields["name"]:
        raise NetworkError("Layer names must be unique and not empty", where=where, remedy="Build the engine again")
    for tensor, output in zip(layer.outputs, outputs, strict=True):
        network.rename_tensor(tensor, output["name"])
        _describe(tensor, output, where)


def _layer(fields: Plain, arrays: Mapping[str, Array], where: str, depth: int) -> Layer:
    if fields["kind"] not in LAYER_KINDS:
        raise NetworkError(
            "Unknown layer kind",
            where=where,
            found=fields["kind"][:100],
            allowed=", ".join(sorted(LAYER_KINDS)),
            remedy="Install the version of dryfit that wrote the file, or build the engine again",
        )
    cls = LAYER_KINDS[fields["kind"]]
    types = _parameter_types(cls)
    given = fields["parameters"]
    if given.keys() != types.keys():
        found = sorted(str(key)[:100] for key in given.keys() ^ types.keys())
        raise NetworkError(
            "Parameters are missing or unknown",
            where=where,
            found=", ".join(found),
            allowed=list(types),
            remedy="Install the version of dryfit that wrote the file, or build the engine again",
        )
    parameters: dict[str, Any] = {
        name: _body(given[name], arrays, f"{where}.{name}", depth + 1)
        if kind is Graph
        else from_plain(given[name], kind, arrays, f"{where}.{name}")
        for name, kind in types.items()
    }
    layer = cls(
        name=fields["name"],
        metadata=fields["metadata"],
        onnx_nodes=fields["onnx_nodes"],
        precision=fields["precision"],
        output_types={
            _index(key, len(fields["outputs"]), f"{where}.output_types"): dtype
            for key, dtype in fields["output_types"].items()
        },
        quantize_method=fields["quantize_method"],
        **parameters,
    )
    if not layer.name:
        raise NetworkError("Layer names must be unique and not empty", where=where, remedy="Build the engine again")
    return layer


def _body(data: Any, arrays: Mapping[str, Array], where: str, depth: int) -> Network:
    """A network that is a parameter of a layer."""
    if depth > DEEPEST_BODIES:
        raise NetworkError(
            "Loops and conditionals are nested too deeply",
            where=where[-_LONGEST_PLACE:],
            allowed=f"{DEEPEST_BODIES} levels",
            remedy="Build the engine again",
        )
    body = _read_network(data, arrays, where, depth)
    if not body.outputs:
        raise NetworkError("A body must have an output", where=where, remedy="Build the engine again")
    return body


def _inferred(
    layer: Layer, inputs: Sequence[Tensor | None], recorded: Sequence[TensorSpec], where: str
) -> Sequence[TensorSpec]:
    given = [None if tensor is None else tensor.spec for tensor in inputs]
    # A plugin inside is not called: as for a plugin layer, the shapes are those of the file.
    has_plugin = any(inner.kind == "plugin" for inner in with_bodies([layer]))
    try:
        if has_plugin and isinstance(layer, ConditionalLayer | LoopLayer):
            specs = layer.stated_outputs(given)
            if [(spec.rank, spec.dtype) for spec in specs] == [(spec.rank, spec.dtype) for spec in recorded]:
                return recorded
        else:
            specs = layer.infer_outputs(given)
    except DryfitError:
        raise
    except Exception as error:  # values that no rule foresaw: the file is wrong, whatever they break
        raise NetworkError(
            "The layer's parameters are inconsistent",
            where=where,
            found=str(error)[:200],
            remedy="Build the engine again",
        ) from error
    if [(spec.shape, spec.dtype) for spec in specs] != [(spec.shape, spec.dtype) for spec in recorded]:
        raise NetworkError(
            "The layer's outputs do not match those in the file",
            where=where,
            found=[(spec.shape, spec.dtype.name) for spec in recorded],
            allowed=[(spec.shape, spec.dtype.name) for spec in specs],
            remedy="Build the engine again",
        )
    return specs


def _describe(tensor: Tensor, fields: Plain, where: str) -> None:
    if fields["dynamic_range"] is not None:
        tensor.set_dynamic_range(*fields["dynamic_range"])
    if fields["allowed_formats"] is not None:
        tensor.copy_allowed_formats(frozenset(fields["allowed_formats"]))
    tensor.location = fields["location"]
    for axis, name in fields["dimension_names"].items():
        tensor.set_dimension_name(_index(axis, len(fields["shape"]), f"{where}.dimension_names"), name)


def _tensor_fields(data: Any, where: str) -> Plain:
    fields = _fields(data, _TENSOR_KEYS, where)
    if not fields["name"]:
        raise NetworkError("A tensor must have a name", where=where, remedy="Build the engine again")
    if any(not -1 <= extent <= _LARGEST_EXTENT for extent in fields["shape"]):
        raise NetworkError(
            "A dimension must be -1 or at least 0",
            where=where,
            found=fields["shape"][:16],
            remedy="Build the engine again",
        )
    return fields


def _fields(data: Any, keys: Mapping[str, Any], where: str) -> Plain:
    if not isinstance(data, Mapping):
        raise NetworkError(
            "The value must be an object", where=where, found=type(data).__name__, remedy="Build the engine again"
        )
    if data.keys() != keys.keys():
        found = ", ".join(sorted(str(key)[:100] for key in data.keys() ^ keys.keys()))
        raise NetworkError(
            "Entries are missing or unknown",
            where=where,
            found=found,
            allowed=", ".join(keys),
            remedy="Build the engine again",
        )
    fields = {}
    for key, kind in keys.items():
        if kind in (list, dict):
            if type(data[key]) is not kind:
                raise NetworkError(
                    "The value has the wrong type",
                    where=f"{where}.{key}",
                    found=type(data[key]).__name__,
                    allowed=kind.__name__,
                    remedy="Build the engine again",
                )
            fields[key] = data[key]
        else:
            fields[key] = from_plain(data[key], kind, {}, f"{where}.{key}")
    return fields


def _tensor(network: Network, name: str, where: str) -> Tensor:
    try:
        return network.tensor(name)
    except DryfitError as error:
        raise NetworkError(
            "No earlier tensor has this name",
            where=where,
            found=name[:100],
            allowed="an input, or an output of an earlier layer",
            remedy="Build the engine again",
        ) from error


def _index(text: str, count: int, where: str) -> int:
    if text not in {str(index) for index in range(count)}:
        raise NetworkError(
            "The index is out of range",
            where=where,
            found=text[:100],
            allowed=f"0 to {count - 1}",
            remedy="Build the engine again",
        )
    return int(text)


@functools.cache
def _parameter_types(cls: type[Layer]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in cls.parameters()}
