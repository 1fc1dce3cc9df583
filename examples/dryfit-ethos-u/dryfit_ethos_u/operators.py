"""What a rule and an estimate read of a layer: the operator on codes that it stands for.

A quantized network says it in two ways: dequantize layers, a layer on real numbers and quantize layers; or one
quantized operator of the quantize method `tflite`. Rules ask here and see no difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.target.question import Question

QUANTIZED_OPERATOR = "quantized_operator"
Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class Grid:
    """A tensor of codes: `(code - zero_point) * scale`.

    Attributes:
        shape: extents.
        dtype: type of the codes, or of the real numbers of a tensor that is not quantized.
        scale, zero_point: None if unknown.
        codes: the codes of a constant; None of others.
        real: the values of a constant that is not quantized; None of others.
    """

    shape: tuple[int, ...]
    dtype: DataType
    scale: Array | None = None
    zero_point: Array | None = None
    codes: Array | None = None
    real: Array | None = None

    @property
    def is_constant(self) -> bool:
        """Whether the contents are known."""
        return self.codes is not None or self.real is not None

    def has_grid_of(self, other: Grid) -> bool:
        """Return whether both represent real numbers by the same codes."""
        pairs = ((self.scale, other.scale), (self.zero_point, other.zero_point))
        return all(a is None or b is None or np.array_equal(a, b) for a, b in pairs)


def parameters(layer: Layer) -> Any:
    """The layer that has the parameters of the operator."""
    return layer.real_layer() if layer.kind == QUANTIZED_OPERATOR else layer  # type: ignore[attr-defined]


def kind_of(layer: Layer) -> str:
    """The layer kind that a layer computes."""
    return str(layer.computes) if layer.kind == QUANTIZED_OPERATOR else layer.kind  # type: ignore[attr-defined]


def inputs_of(layer: Layer, specs: Mapping[str, TensorSpec] | None = None) -> Sequence[Grid]:
    """The connected inputs of a layer, as codes where they are quantized."""
    if layer.kind == QUANTIZED_OPERATOR:
        one: Any = layer
        grids = zip(layer.inputs, one.scales, one.zero_points, strict=False)
        return [
            Grid(spec.shape, spec.dtype, scale, zero, spec.value)
            for tensor, scale, zero in grids
            if tensor is not None and (spec := _spec(tensor, specs))
        ]
    return [read(tensor, specs) for tensor in layer.connected_inputs]


def outputs_of(layer: Layer, specs: Mapping[str, TensorSpec] | None = None) -> Sequence[Grid]:
    """The outputs of a layer, behind an activation that runs with it."""
    if layer.kind == QUANTIZED_OPERATOR:
        one: Any = layer
        spec = _spec(layer.outputs[0], specs)
        return [Grid(spec.shape, spec.dtype, one.output_scale, one.output_zero_point)]
    return [given(tensor, specs) for tensor in layer.outputs]


def read(tensor: Tensor, specs: Mapping[str, TensorSpec] | None = None) -> Grid:
    """A tensor that a layer reads: the codes that are dequantized to it, if any."""
    producer = tensor.producer
    if producer is not None and producer.kind == "dequantize":
        return _codes_of(producer.inputs[0], producer, specs)
    spec = _spec(tensor, specs)
    return Grid(spec.shape, spec.dtype, real=spec.value)


def given(tensor: Tensor, specs: Mapping[str, TensorSpec] | None = None) -> Grid:
    """A tensor that a layer writes: the codes that it is quantized to, if any."""
    readers = [reader for reader, _ in tensor.consumers]
    if len(readers) == 1 and readers[0].kind == "activation":
        return given(readers[0].outputs[0], specs)
    if readers and all(reader.kind == "quantize" for reader in readers):
        return _codes_of(readers[0].outputs[0], readers[0], specs)
    spec = _spec(tensor, specs)
    return Grid(spec.shape, spec.dtype)


def _codes_of(codes: Tensor | None, quantization: Layer, specs: Mapping[str, TensorSpec] | None) -> Grid:
    if codes is None:
        raise quantization.problem("The layer must have an input", remedy="Connect its input 0")
    spec = _spec(codes, specs)
    scale, zero = (quantization.get_input(index) for index in (1, 2))
    known = [None if one is None else _spec(one, specs).value for one in (scale, zero)]
    zeros = np.zeros(1, np.int32) if zero is None else known[1]
    return Grid(spec.shape, spec.dtype, known[0], zeros, spec.value)


def _spec(tensor: Tensor, specs: Mapping[str, TensorSpec] | None) -> TensorSpec:
    return tensor.spec if specs is None else specs.get(tensor.name, tensor.spec)


def asked_inputs(question: Question) -> Sequence[Grid]:
    """`inputs_of` the layer of a question."""
    return inputs_of(question.layer, question.specs)


def asked_outputs(question: Question) -> Sequence[Grid]:
    """`outputs_of` the layer of a question."""
    return outputs_of(question.layer, question.specs)


def has_padding(layer: Any, spatial: Sequence[int]) -> bool:
    """Whether a window hangs over an edge of the input: TFLite's VALID, or a SAME that pads nothing, has none."""
    return any(max(pair) > 0 for pair in layer.paddings(spatial))


def is_depthwise(layer: Any, channels: int) -> bool:
    """Whether each channel of the input has kernels of its own."""
    return layer.num_groups > 1 and layer.num_groups == channels
