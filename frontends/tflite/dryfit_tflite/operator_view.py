"""One TFLite operator as its import function sees it: inputs as codes or real numbers, options, ways to add layers.

TFLite's images are `[N, H, W, C]` and the layer kinds' are `[N, C, H, W]`. A value is kept in the layout in which it
was made and is transposed once if it is needed in the other, so that a chain of convolutions has no transposes in it.

Quantized tensors are codes. An operator that computes reads them dequantized, and its result is quantized, so that each
operator is a quantized group, which devices and quantize methods know. One that only moves values moves the codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import define
from dryfit.errors import ModelImportError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Cast, Dequantize, Quantize
from dryfit.network.layers.slice import Shuffle
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.reference.registry import evaluate
from dryfit_tflite.model_file import Quantization, TfliteOperator, TfliteTensor

CHANNELS_FIRST = (0, 3, 1, 2)
"""The axes of `[N, H, W, C]` in the order of `[N, C, H, W]`."""
CHANNELS_LAST = (0, 2, 3, 1)
_LARGEST_FOLDED = 1 << 20
"""Elements of results that are computed during the import if their inputs are known: shapes, axes, small constants."""

CODES = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.INT4)
"""The types of tensors whose scale says what they stand for."""


class OperatorRefusedError(ModelImportError):
    """An operator cannot be imported."""


@define(eq=False)
class Value:
    """A tensor of the file during the import.

    Attributes:
        tensor: the file's record.
        stored: the network's tensor in the file's layout; None if it is not made yet.
        first: the same with channels first, of a tensor with four axes.
        known: the values of a constant.
    """

    tensor: TfliteTensor
    stored: Tensor | None = None
    first: Tensor | None = None
    known: Array | None = None

    @property
    def is_only_channels_first(self) -> bool:
        """Whether it would have to be transposed to be had in the file's layout."""
        return self.stored is None and self.first is not None

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents, in the file's layout."""
        if self.known is not None:
            return tuple(self.known.shape)
        if self.stored is not None:
            return tuple(self.stored.shape)
        if self.first is not None:
            return tuple(self.first.shape[axis] for axis in CHANNELS_LAST)
        return self.tensor.shape

    @property
    def is_quantized(self) -> bool:
        """Whether it holds codes."""
        return self.tensor.quantization is not None and self.tensor.dtype in CODES

    @property
    def grid(self) -> Quantization:
        """The grid of its codes."""
        if self.tensor.quantization is None:
            raise OperatorRefusedError(
                "The tensor must be quantized", where=self.tensor.where, remedy="Quantize the model again"
            )
        return self.tensor.quantization


class Operator:
    """An operator during its import.

    Attributes:
        record: the file's.
        location: index, name and first output, as `3:CONV_2D:features`; layers have it in `onnx_nodes`.
        name: name of its main layer, such as `CONV_2D_3`.
    """

    def __init__(
        self, record: TfliteOperator, network: Network, values: Sequence[Value], spend: Callable[[int], None]
    ) -> None:
        self.record, self.network = record, network
        self._values, self._spend = values, spend
        outputs = [values[index].tensor.name for index in record.outputs[:1] if index >= 0]
        self.location = ":".join([str(record.index), record.name, *outputs])
        self.name = f"{record.name}_{record.index}"
        self._main: Layer | None = None

    # Inputs -------------------------------------------------------------------------------------------------------

    @property
    def input_count(self) -> int:
        """Number of inputs, with those that are absent at the end left out."""
        return max((index + 1 for index, one in enumerate(self.record.inputs) if one >= 0), default=0)

    @property
    def output_count(self) -> int:
        """Number of outputs."""
        return len(self.record.outputs)

    def has(self, index: int) -> bool:
        """Whether an optional input is there."""
        return index < len(self.record.inputs) and self.record.inputs[index] >= 0

    def value(self, index: int) -> Value:
        """Return an input.

        Raises:
            OperatorRefusedError: It is absent, or nothing computes it.
        """
        if not self.has(index):
            raise self.refusal(f"Required input {index} is missing", remedy="Convert the model again")
        found = self._values[self.record.inputs[index]]
        if found.stored is None and found.first is None and found.known is None:
            raise self.refusal(
                f"Input {index} is neither an input of the model, a constant, nor the output of an operator before it",
                found=found.tensor.where,
                remedy="Convert the model again",
            )
        return found

    def output(self, index: int = 0) -> Value:
        """Return an output, which need not be given yet."""
        if not (index < len(self.record.outputs) and self.record.outputs[index] >= 0):
            raise self.refusal(f"Required output {index} is missing", remedy="Convert the model again")
        return self._values[self.record.outputs[index]]

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the extents of an input, in the file's layout."""
        return self.value(index).shape

    def rank(self, index: int) -> int:
        """Return the number of axes of an input."""
        return len(self.shape(index))

    def constant(self, index: int, what: str) -> Array:
        """Return the contents of an input that must be known now.

        Raises:
            OperatorRefusedError: It is computed at run time.
        """
        known = self.value(index).known
        if known is None:
            raise self.refusal(
                f"{what} must be constant",
                found=f"{self.value(index).tensor.where}, computed at run time",
                remedy="Convert the model with fixed shapes",
            )
        return known

    def ints(self, index: int, what: str) -> tuple[int, ...]:
        """Return the integers of an input that must be known now."""
        return tuple(int(one) for one in self.constant(index, what).reshape(-1))

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front.

        Raises:
            OperatorRefusedError: There is no such axis.
        """
        if not -rank <= axis < rank:
            raise self.refusal(
                "The axis must be an axis of the input",
                found=axis,
                allowed=f"{-rank} to {rank - 1}",
                remedy="Convert the model again",
            )
        return axis % rank

    def option(self, name: str, default: Any = 0) -> Any:
        """Return a field of the options; a default if the file has no options."""
        if self.record.options is None:
            return default
        try:
            return getattr(self.record.options, name)()
        except AttributeError as error:
            raise self.refusal(
                "The options must be those of the operator",
                found=self.record.options_kind,
                remedy="Convert the model again",
            ) from error

    @property
    def is_one_on_codes(self) -> bool:
        """Whether the operator is to be one layer on codes: it has codes on both sides, and the network a method.

        Otherwise it may be written with layers on real numbers that devices support.
        """
        has_method = self.network.quantize_method not in ("", "none")
        return has_method and self.value(0).is_quantized and self.output().is_quantized

    def works_channels_first(self, *indices: int) -> bool:
        """Whether an operator that can compute in both layouts does so with channels first, to save a transpose."""
        chosen = [self.value(index) for index in indices]
        return all(len(one.shape) == 4 for one in chosen) and any(one.is_only_channels_first for one in chosen)

    # Tensors of the network ---------------------------------------------------------------------------------------

    def codes(self, index: int, *, first: bool = False) -> Tensor:
        """Return an input as the network's tensor, as it is stored: codes if it is quantized.

        Args:
            index: which input.
            first: whether with channels first; it has four axes.
        """
        return self.tensor_of(self.value(index), first=first)

    def tensor_of(self, value: Value, *, first: bool = False) -> Tensor:
        """Return the network's tensor of a value, in a layout."""
        if value.stored is None and value.first is None and value.known is None:
            raise self.refusal("The tensor is not computed", found=value.tensor.where, remedy="Convert the model again")
        if first and value.first is None:
            if value.known is not None:
                value.first = self.constant_tensor(np.transpose(value.known, CHANNELS_FIRST), value.tensor.name)
            else:
                value.first = self._transposed(self.tensor_of(value), CHANNELS_FIRST)
        if not first and value.stored is None:
            if value.known is not None:
                value.stored = self.constant_tensor(value.known, value.tensor.name)
            else:
                value.stored = self._transposed(self.tensor_of(value, first=True), CHANNELS_LAST)
        found = value.first if first else value.stored
        if found is None:
            raise self.refusal("The tensor is not computed", found=value.tensor.where, remedy="Convert the model again")
        return found

    def real(self, index: int, *, first: bool = False) -> Tensor:
        """Return an input in real numbers: dequantized if it is quantized, FP16 and BF16 constants as FP32."""
        value = self.value(index)
        found = self.codes(index, first=first)
        if value.is_quantized:
            axis = value.grid.axis
            return self.dequantized(found, value.grid, CHANNELS_FIRST.index(axis) if first else axis)
        if found.dtype in (DataType.HALF, DataType.BF16):
            return self.add(Cast(to_type=DataType.FLOAT), found)
        return found

    def codes_of_shape(self, index: int, shape: Sequence[int], *, first: bool = False) -> Tensor:
        """Return an input as it is stored, reshaped; constants without a layer."""
        value = self.value(index)
        if value.known is not None:
            known = value.known.reshape(tuple(shape))
            return self.constant_tensor(np.transpose(known, CHANNELS_FIRST) if first else known, value.tensor.name)
        found = self.add(Shuffle(reshape_dims=tuple(shape), zero_is_placeholder=False), self.codes(index))
        return self._transposed(found, CHANNELS_FIRST) if first else found

    def codes_of_rank(self, index: int, rank: int, *, first: bool = False) -> Tensor:
        """Return an input as it is stored, with axes of extent 1 before its own."""
        shape = self.shape(index)
        if len(shape) == rank:
            return self.codes(index, first=first)
        return self.codes_of_shape(index, (*(1,) * (rank - len(shape)), *shape), first=first)

    def real_of_rank(self, index: int, rank: int, *, first: bool = False) -> Tensor:
        """Return an input in real numbers, with axes of extent 1 before its own; see `real`."""
        value = self.value(index)
        if len(value.shape) == rank:
            return self.real(index, first=first)
        codes = self.codes_of_rank(index, rank, first=first)
        if not value.is_quantized:
            return codes
        if value.grid.scale.size != 1:
            raise self.refusal(
                "An operand with several scales must have the rank of the other",
                found=value.tensor.where,
                remedy="Quantize it per tensor",
            )
        return self.dequantized(codes, value.grid, 0)

    def dequantized(self, codes: Tensor, grid: Quantization, axis: int) -> Tensor:
        """Return codes as real numbers."""
        layer = Dequantize(axis=-1 if grid.scale.size == 1 else axis)
        return self.add(layer, *self._with_grid(codes, grid, codes.dtype))

    def _with_grid(self, tensor: Tensor, grid: Quantization, codes: DataType) -> list[Tensor]:
        """A tensor with the constants of a grid; a zero point of 0 is left out, as devices have no other."""
        scale = grid.scale.reshape(()) if grid.scale.size == 1 else grid.scale
        found = [tensor, self.constant_tensor(scale, f"{tensor.name} scale")]
        if np.any(grid.zero_point):
            low, high = _range_of(codes)
            if grid.zero_point.min() < low or grid.zero_point.max() > high:
                raise self.refusal(
                    "A zero point must be a code of its type",
                    found=int(grid.zero_point[0]),
                    allowed=f"{low} to {high}",
                    remedy="Quantize the model again",
                )
            zeros = grid.zero_point.reshape(scale.shape).astype(codes.numpy)
            found.append(self.constant_tensor(zeros, f"{tensor.name} zero point"))
        return found

    def constant_tensor(self, values: Any, name: str) -> Tensor:
        """Return a new constant of the network."""
        array = np.ascontiguousarray(values).reshape(np.shape(values))
        self._spend(array.nbytes)
        return self.add(Constant(shape=array.shape, weights=array, name=name))

    def _transposed(self, tensor: Tensor, order: Sequence[int]) -> Tensor:
        return self.add(Shuffle(first_transpose=tuple(order)), tensor)

    # Layers -------------------------------------------------------------------------------------------------------

    def add(self, layer: Layer, *inputs: Tensor | None) -> Tensor:
        """Add a layer and return its first output; one on small known integers is evaluated instead."""
        return self.add_all(layer, *inputs)[0]

    def add_all(self, layer: Layer, *inputs: Tensor | None) -> list[Tensor]:
        """Add a layer and return its outputs."""
        folded = _folded(layer, inputs)
        if folded is not None:
            return [self.constant_tensor(one, self.name) for one in folded]
        is_main = layer.kind not in _HELPERS
        layer.name = layer.name or (self.name if is_main and self._main is None else f"{self.name}/{layer.kind}")
        layer.onnx_nodes = (self.location,)
        layer.metadata = f"[TFLite Operator: {self.location}]"
        added = self.network.add_layer(layer, list(inputs))
        if is_main and self._main is None:
            self._main = added
        return list(added.outputs)

    def activated(self, tensor: Tensor, number: int) -> Tensor:
        """Return a tensor behind a fused activation.

        Raises:
            OperatorRefusedError: There is no such activation.
        """
        if number == 0:
            return tensor
        if number not in _FUSED:
            raise self.refusal(
                "This fused activation is not supported",
                found=_FUSED_NAMES.get(number, number),
                allowed="NONE, RELU, RELU_N1_TO_1, RELU6, TANH",
                remedy="Convert the model with the activation as an operator",
            )
        kind, low, high = _FUSED[number]
        return self.add(Activation(activation_type=kind, alpha=low, beta=high), tensor)

    # Outputs ------------------------------------------------------------------------------------------------------

    def give(self, tensor: Tensor, index: int = 0, *, first: bool = False) -> None:
        """Give an output in real numbers; it is quantized if the file has codes there."""
        if self.output(index).is_quantized and tensor.dtype.is_floating_point:
            tensor = self.quantized(tensor, index)
        self.give_codes(tensor, index, first=first)

    def quantized(self, tensor: Tensor, index: int = 0) -> Tensor:
        """Return real numbers as codes of an output."""
        value = self.output(index)
        grid, dtype = value.grid, value.tensor.dtype
        if grid.scale.size != 1 or dtype is None:
            raise self.refusal(
                "Only constants may have several scales",
                found=f"{grid.scale.size} scales of {value.tensor.where}",
                remedy="Quantize activations per tensor",
            )
        return self.add(Quantize(to_type=dtype), *self._with_grid(tensor, grid, dtype))

    def give_known(self, values: Array, index: int = 0) -> None:
        """Give an output whose values are known; layers take them over as weights."""
        self._spend(values.nbytes)
        self._check_stated(self.output(index).tensor, DataType.from_numpy(values.dtype), values.shape)
        self.output(index).known = values

    def give_codes(self, tensor: Tensor, index: int = 0, *, first: bool = False) -> None:
        """Give an output as it is stored.

        Raises:
            OperatorRefusedError: Its type or shape is not what the file states.
        """
        value = self.output(index)
        shape = tuple(tensor.shape[axis] for axis in CHANNELS_LAST) if first else tuple(tensor.shape)
        self._check_stated(value.tensor, tensor.dtype, shape)
        if first:
            value.first, value.stored = tensor, None
        else:
            value.stored, value.first = tensor, None
        value.known = None if first else tensor.spec.value

    def _check_stated(self, stated: TfliteTensor, dtype: DataType, shape: tuple[int, ...]) -> None:
        if stated.dtype is not None and dtype is not stated.dtype:
            raise self.refusal(
                "The output has another type than the file states",
                found=f"{dtype.text} for {stated.where} of {stated.dtype.text}",
                remedy="Convert the model again",
            )
        if shape != stated.shape and stated.shape:
            raise self.refusal(
                "The output has another shape than the file states",
                found=f"{shape} for {stated.where} of {stated.shape}",
                remedy="Convert the model again",
            )

    def refusal(
        self, message: str, *, found: object = None, allowed: object = None, remedy: str | None = None
    ) -> OperatorRefusedError:
        """Return the error for an operator that cannot be imported."""
        return OperatorRefusedError(message, found=found, allowed=allowed, remedy=remedy)


_HELPERS = frozenset({"shuffle", "cast", "constant", "dequantize", "quantize"})

_FUSED = {
    1: (ActivationType.RELU, 0.0, 0.0),
    2: (ActivationType.CLIP, -1.0, 1.0),
    3: (ActivationType.CLIP, 0.0, 6.0),
    4: (ActivationType.TANH, 0.0, 0.0),
}
"""The schema's `ActivationFunctionType` to an activation with its parameters."""
_FUSED_NAMES = {5: "SIGN_BIT"}


def _range_of(dtype: DataType) -> tuple[int, int]:
    if dtype is DataType.INT4:
        return -8, 7
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _folded(layer: Layer, inputs: Sequence[Tensor | None]) -> list[Array] | None:
    """The outputs of a layer on known values that are no codes; None for one that is computed at run time."""
    if layer.is_quantization or not inputs or not layer.kind or layer.kind == "constant":
        return None
    known = [None if tensor is None else tensor.spec.value for tensor in inputs]
    if any(value is None and tensor is not None for value, tensor in zip(known, inputs, strict=True)):
        return None
    specs = layer.infer_outputs([None if tensor is None else tensor.spec for tensor in inputs])
    if any(not spec.is_static or spec.least_elements > _LARGEST_FOLDED for spec in specs):
        return None
    return list(evaluate(layer, known))
