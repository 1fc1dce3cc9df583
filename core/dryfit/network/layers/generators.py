"""Layers without data inputs: constants, fills, and the extents of a tensor."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import dimension_input
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Shape, Tensor, TensorSpec
from dryfit.network.weights import Weights


@layer_kind("constant")
class Constant(Layer):
    """Weights in a given shape. Has no inputs.

    Attributes:
        shape: shape of the output.
        weights: elements of the output, in row-major order; they define its type.

    Source: TensorRT `IConstantLayer`; ONNX `Constant` and initializers.
    """

    has_fixed_types = True

    shape: tuple[int, ...] = attrs.field(converter=ints)
    weights: np.ndarray[Any, Any] = attrs.field(repr=False, converter=np.asarray)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shape, the type of the weights, and the value (a view of the weights if contiguous)."""
        if len(inputs):
            raise self.problem(
                "A constant layer must not have inputs", found=f"{len(inputs)} inputs", remedy="Remove the inputs"
            )
        is_shape = all(extent >= 0 for extent in self.shape)
        if not is_shape or math.prod(self.shape) != self.weights.size:
            raise self.problem(
                "The shape must have as many elements as the weights",
                found=f"{self.shape} for {self.weights.size} weights",
                allowed=f"{math.prod(self.shape)} weights" if is_shape else "extents of at least 0",
                remedy="Set `shape`, or give other weights",
            )
        return [TensorSpec(self.shape, DataType.from_numpy(self.weights.dtype), self.weights.reshape(self.shape))]


class FillOperation(enum.Enum):
    """TensorRT's `FillOperation`."""

    LINSPACE = "linspace"
    RANDOM_UNIFORM = "random_uniform"
    RANDOM_NORMAL = "random_normal"


@layer_kind("fill")
class Fill(Layer):
    """A tensor of a given shape, filled by a rule with two parameters.

    LINSPACE is `alpha + i * beta` on one axis, or `alpha + i * beta[0] + j * beta[1] + ...` if beta is input 2, a
    vector with one element per axis. RANDOM_UNIFORM is in [alpha, beta); RANDOM_NORMAL has mean alpha and standard
    deviation beta.

    If connected, inputs 0 (the shape, a vector), 1 (alpha, a scalar) and 2 (beta) override the parameters.

    Attributes:
        shape: shape of the output.
        operation: the fill rule.
        alpha, beta: parameters of the rule. Integers stay integers, so INT64 values are exact.
        to_type: type of the output: a numeric type for LINSPACE, floating point for the random rules.
        seed: seed of the random numbers, so that an engine produces the same numbers every time. TensorRT has no such
            parameter.

    Source: TensorRT `IFillLayer`; ONNX `Range`, `RandomUniform`, `RandomNormal`.
    """

    has_fixed_types = True
    dimension_inputs = (0,)
    parameter_inputs: ClassVar[Mapping[int, str]] = {0: "shape"}

    shape: tuple[int, ...] = attrs.field(default=(), converter=ints)
    operation: FillOperation
    alpha: float | int = 0.0  # a float would not hold every INT64
    beta: float | int = 1.0
    to_type: DataType = DataType.FLOAT
    seed: int = 0

    def is_alpha_beta_int64(self) -> bool:
        """Return whether alpha and beta are INT64; they have the type of the output."""
        return self.to_type is DataType.INT64

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shape, with type `to_type`."""
        if self.operation is not FillOperation.LINSPACE and not self.to_type.is_floating_point:
            raise self.problem(
                "The type of random numbers must be floating point",
                found=self.to_type.text,
                remedy="Set `to_type`, and add a cast layer if integers are needed",
            )
        if self.to_type is DataType.BOOL:
            raise self.problem(
                "The output type of LINSPACE must be numeric", found=self.to_type.text, remedy="Set `to_type`"
            )
        shape: Shape = self.shape
        given = inputs[0] if len(inputs) else None
        if given is not None:
            shape = dimension_input(self, given, "The shape input")
        if any(extent < (0 if given is None or given.value is not None else -1) for extent in shape):
            raise self.problem(
                "Every dimension must be at least 0", found=shape, remedy="Use a shape without negative values"
            )
        self._check_parameters(inputs, len(shape))
        return [TensorSpec(shape, self.to_type)]

    def _check_parameters(self, inputs: Inputs, rank: int) -> None:
        for index, name in ((1, "alpha"), (2, "beta")):
            spec = inputs[index] if len(inputs) > index else None
            if spec is not None and spec.dtype is not self.to_type:
                raise self.problem(
                    f"Input {index} ({name}) must have the type of the output",
                    found=spec.dtype.text,
                    remedy="Add a cast layer before it",
                )
            vector = index == 2 and self.operation is FillOperation.LINSPACE
            if spec is not None and spec.shape not in ((), (1,)) and not (vector and spec.shape == (rank,)):
                allowed = f"a scalar, or {rank} elements" if vector else "a scalar"
                raise self.problem(
                    f"Input {index} ({name}) has the wrong shape",
                    found=spec.shape,
                    allowed=allowed,
                    remedy="Use the required shape",
                )
            scalar_beta = index == 2 and (spec is None or spec.shape in ((), (1,)))
            if self.operation is FillOperation.LINSPACE and scalar_beta and rank > 1:
                raise self.problem(
                    "A linspace over several axes requires beta as input 2, with one element per axis",
                    found=f"rank {rank}",
                    is_mendable=True,
                    remedy="Connect input 2",
                )


@layer_kind("shape")
class ShapeLayer(Layer):
    """The extents of the input as an INT64 vector, known at build time if the input has no dynamic dimension.

    Source: TensorRT `IShapeLayer` (INT64 since TensorRT 10); ONNX `Shape`.
    """

    has_fixed_types = True

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `INT64[rank]`."""
        x = self.required(inputs, 0)
        value = np.asarray(x.shape, dtype=np.int64).reshape(-1) if x.is_static else None
        return [TensorSpec((x.rank,), DataType.INT64, value)]


class AddGenerators:
    """The builder methods of constants, fills and shapes."""

    def add_constant(self: LayerOwner, shape: Sequence[int], weights: np.ndarray[Any, Any] | Weights) -> Constant:
        """Add a constant; TensorRT's `add_constant`. Pass packed 4-bit elements as `Weights`."""
        return self.add_layer(Constant(shape=tuple(shape), weights=np.asarray(weights)), [])

    def add_fill(
        self: LayerOwner, shape: Sequence[int], op: FillOperation, output_type: DataType = DataType.FLOAT
    ) -> Fill:
        """Add a fill; TensorRT's `add_fill`. Set `alpha`, `beta` and `seed` on the layer."""
        return self.add_layer(Fill(shape=tuple(shape), operation=op, to_type=output_type), [], is_finished=False)

    def add_shape(self: LayerOwner, input: Tensor) -> ShapeLayer:
        """Add a shape layer, which returns a tensor's extents; TensorRT's `add_shape`."""
        return self.add_layer(ShapeLayer(), [input])
