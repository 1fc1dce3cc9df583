"""Which layers an implicit build computes in INT8, so that it does what a Q/DQ model says.

A layer of a Q/DQ model is INT8 where all its data come dequantized, or from inside the step that it ends, and its
weights too. The implicit build needs a scale for what it writes as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import onnx
from onnx import ModelProto, inliner, version_converter

from dryfit.attrs_classes import frozen
from dryfit.builder.precision.int8_choice import INT8_OPERATIONS
from dryfit.errors import OnnxImportError
from dryfit.json_names import json_names
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.elementwise import Elementwise
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.onnx.translation.carried_scales import CarriedScales, reads_dequantized
from dryfit.onnx.translation.plain_model import PlainModel
from dryfit.quantization.int8_steps import is_inside_step
from dryfit.quantization.int8_weights import constant_weights


@frozen
class ImplicitPrecision:
    """The type of one layer.

    Attributes:
        layer: its name.
        nodes: the ONNX nodes that it comes from.
        precision: INT8, or the policy's real type.
        output_type: INT8 where a builder would leave out a rounding of the Q/DQ model, as after a layer whose readers
            are real; None for no wish.
        missing: tensors without a scale, for a layer that the Q/DQ model computes in INT8 and that is real now.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("layer:name nodes precision output_type missing")

    layer: str
    nodes: Sequence[str]
    precision: DataType
    output_type: DataType | None = None
    missing: Sequence[str] = ()


def layer_precisions(
    network: Network, plain: PlainModel, carried: CarriedScales, real_type: DataType, *, rounds_all: bool
) -> list[ImplicitPrecision]:
    """The precision of each layer that computes on real numbers, in the order of the network.

    Args:
        network: of the model without Q/DQ.
        plain: what the model said.
        carried: the scales.
        real_type: type of the layers that are not computed in INT8.
        rounds_all: whether roundings inside of what is fused are kept too.
    """
    wished: set[str] = set()
    for layer in network.layers:
        if _is_int8(layer, plain, carried, wished):
            wished.add(layer.name)
    missing = {layer.name: _missing(layer, carried) for layer in network.layers if layer.name in wished}
    _spread_missing(network, missing, plain)
    granted = {
        layer.name
        for layer in network.layers
        if layer.name in wished and not missing[layer.name] and not _is_real_kind(layer)
    }
    found = []
    for layer in network.layers:
        if layer.has_fixed_types or not any(tensor.dtype.is_floating_point for tensor in layer.outputs):
            continue
        is_int8 = layer.name in granted
        is_lost = layer.name in wished and not is_int8 and layer.sums_products
        is_typed = is_int8 and _loses_rounding(layer, plain, granted, rounds_all=rounds_all)
        found.append(
            ImplicitPrecision(
                layer.name,
                layer.onnx_nodes,
                DataType.INT8 if is_int8 else real_type,
                DataType.INT8 if is_typed else None,
                tuple(missing[layer.name]) if is_lost else (),
            )
        )
    return found


def _is_int8(layer: Layer, plain: PlainModel, carried: CarriedScales, wished: set[str]) -> bool:
    """Whether the Q/DQ model computes a layer in INT8: all its data come dequantized, or from inside its step."""
    data = [tensor for tensor in layer.connected_inputs if tensor.dtype.is_floating_point]
    variable = [tensor for tensor in data if not tensor.is_constant]
    if layer.has_fixed_types or not variable:
        return False
    if layer.sums_products and not (
        constant_weights(layer) is not None and plain.weighted.intersection(layer.onnx_nodes)
    ):
        return False

    def comes_quantized(tensor: Tensor) -> bool:
        is_inside = is_inside_step(tensor) and tensor.producer is not None and tensor.producer.name in wished
        is_internal = tensor.producer is not None and tensor.producer.name in wished and _is_one_node(tensor, layer)
        on_grid = tensor.name in carried.on_grid
        return is_inside or is_internal or on_grid or reads_dequantized(layer, tensor, plain.dequantized)

    return all(map(comes_quantized, variable))


def _is_one_node(tensor: Tensor, layer: Layer) -> bool:
    """Whether a tensor comes from the node that its reader comes from."""
    return tensor.producer is not None and bool(set(tensor.producer.onnx_nodes) & set(layer.onnx_nodes))


def _missing(layer: Layer, carried: CarriedScales) -> list[str]:
    """Names of the tensors of a layer that need a scale and have none."""
    tensors = [tensor for tensor in (*layer.inputs, *layer.outputs) if tensor is not None and not tensor.is_constant]
    return [
        tensor.name
        for tensor in dict.fromkeys(tensors)
        if tensor.dtype.is_floating_point and not carried.has_scale(tensor.name) and not is_inside_step(tensor)
    ]


def _spread_missing(network: Network, missing: dict[str, list[str]], plain: PlainModel) -> None:
    """A step is INT8 as a whole: what one of its layers lacks, those lack too that share unscaled tensors with it.

    Where the Q/DQ model rounds inside a step, the step can end there.
    """
    for layers in (network.layers, list(reversed(network.layers))):
        for layer in layers:
            for tensor in layer.outputs:
                if not is_inside_step(tensor) or tensor.name in plain.scales:
                    continue
                reader = tensor.consumers[0][0].name
                for one, other in ((layer.name, reader), (reader, layer.name)):
                    # One that is not INT8 at all leaves the other with a tensor that has no scale.
                    lacking = missing.get(one, [tensor.name])
                    if lacking and other in missing and not missing[other]:
                        missing[other] = list(lacking)


def _loses_rounding(layer: Layer, plain: PlainModel, int8: set[str], *, rounds_all: bool) -> bool:
    """Whether the output of a layer has to be typed, so that it is rounded as in the Q/DQ model.

    A builder leaves a result real that nobody reads in INT8, and fuses what follows. An output of the network is not
    typed: its caller would get codes.
    """
    output = layer.outputs[0]
    if output.name not in plain.scales or output.is_network_output:
        return False
    is_read = any(reader.name in int8 for reader, _ in output.consumers)
    return not is_read or (rounds_all and is_inside_step(output))


def _is_real_kind(layer: Layer) -> bool:
    is_real_operation = isinstance(layer, Elementwise) and layer.op.name not in INT8_OPERATIONS
    return layer.needs_real_numbers or is_real_operation


# The model as both builds read it -------------------------------------------------------------------------------------


LEAST_OPSET = 13
"""The first in which Q/DQ have an axis. Source: ONNX, QuantizeLinear."""


def prepared_model(model: ModelProto, least: int = LEAST_OPSET) -> ModelProto:
    """The model itself, or a copy as `inlined` and `with_opset` make it.

    Raises:
        OnnxImportError: ONNX's converter cannot raise the opset.
    """
    return with_opset(inlined(model), least)


def inlined(model: ModelProto) -> ModelProto:
    """The model itself, or where it brings functions or nodes of one name a copy.

    Functions are put in the places of their calls. Layers are told apart by the names of their nodes, so that of
    several nodes of one name all but the first get a number.
    """
    written_out = inliner.inline_local_functions(model) if model.functions else model
    names = [node.name for node in written_out.graph.node if node.name]
    if len(set(names)) == len(names):
        return written_out
    copy = ModelProto()
    copy.CopyFrom(written_out)
    taken, used = set(names), set[str]()
    for node in copy.graph.node:
        number, name = 0, node.name
        while name and name in used:
            number += 1
            name = f"{node.name}_{number}" if f"{node.name}_{number}" not in taken else name
        used.add(name)
        node.name = name
    return copy


def with_opset(model: ModelProto, least: int = LEAST_OPSET) -> ModelProto:
    """The model itself, or where its opset is older a copy in a newer one.

    Raises:
        OnnxImportError: ONNX's converter cannot raise the opset.
    """
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions or versions[0] >= least:
        return model
    try:
        raised = version_converter.convert_version(model, least)
    except Exception as error:  # the converter is C++ and raises what it likes
        raise OnnxImportError(
            "The model's opset cannot be raised",
            where=f"graph {model.graph.name!r}",
            found=f"opset {versions[0]}: {error}",
            allowed=f"opset {least} or newer, where QuantizeLinear supports an axis",
            remedy="Export the model again with a newer opset",
        ) from error
    # What a model of this opset has at least. Source: ONNX, versioning.
    raised.ir_version = max(raised.ir_version, onnx.IR_VERSION_2020_5_8)
    constants = {tensor.name for tensor in raised.graph.initializer}
    inputs = [info for info in raised.graph.input if info.name not in constants]
    del raised.graph.input[:]
    raised.graph.input.extend(inputs)
    return raised
