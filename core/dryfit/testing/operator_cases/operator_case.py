"""A use of an operator with its inputs: what an oracle and a definition are both asked about."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.quantized_operator import UNLIMITED, QuantizedOperator, fields_of_layer
from dryfit.quantization.methods.call import OperatorCall, call_of

Array = np.ndarray[Any, Any]
Grid = tuple[Any, Any]
"""Scale and zero point; arrays where there is one a channel."""


@frozen(eq=False)
class OperatorCase:
    """A quantized operator with the values of its inputs, in the network's layout.

    Attributes:
        layer: the operator; its method is left open ("").
        inputs: codes, an INT32 bias, or, of `quantize`, floating-point values; None where an input is absent.

    Example:
        >>> from dryfit.network.layers.movement import Identity
        >>> case = case_of(Identity(), [np.arange(-128, 128, dtype=np.int8)], [(0.5, 0)], (0.25, 3))
        >>> case.call.operator, case.size
        ('requantize', 256)
    """

    layer: QuantizedOperator
    inputs: Sequence[Array | None]

    @functools.cached_property
    def call(self) -> OperatorCall:
        """The case as definitions read it."""
        return call_of(self.layer, self.inputs)

    @property
    def operator(self) -> str:
        """The operator's name, such as `convolution`."""
        return self.call.operator

    @property
    def size(self) -> int:
        """How many elements come out."""
        return int(np.prod(self.call.output_shape))

    @property
    def title(self) -> str:
        """What it is, in a line."""
        call = self.call
        shapes = " ".join("x".join(map(str, one.values.shape)) for one in call.present)
        grid = "real" if call.output_scale is None else f"scale {call.output_scale} zero point {call.output_zero_point}"
        return f"{call.title}, {shapes}, {self.layer.fields}, limits {call.limits}: {call.grids_text} -> {grid}"


def case_of(
    layer: Layer,
    inputs: Sequence[Array | None],
    grids: Sequence[Grid | None],
    output: Grid | None,
    to_type: DataType | None = None,
    limits: tuple[float, float] = UNLIMITED,
) -> OperatorCase:
    """The case of a layer of real numbers.

    Args:
        layer: with its parameters; its weights are inputs.
        inputs: values.
        grids: of the inputs; None for plain numbers.
        output: grid of the output; None where it is real.
        to_type: of the output; the first input's where None.
        limits: of a fused activation.
    """
    first = inputs[0]
    if to_type is None:
        to_type = DataType.FLOAT if output is None else DataType.from_numpy(np.asarray(first).dtype)
    operator = QuantizedOperator(
        computes=layer.kind,
        method="",
        fields=fields_of_layer(layer),
        scales=tuple(None if grid is None else np.asarray(grid[0], np.float32) for grid in grids),
        zero_points=tuple(None if grid is None else np.asarray(grid[1], np.int32) for grid in grids),
        output_scale=None if output is None else np.asarray(output[0], np.float32),
        output_zero_point=None if output is None else np.asarray(output[1], np.int32),
        to_type=to_type,
        limits=limits,
    )
    return OperatorCase(operator, tuple(inputs))
