"""TensorFlow Lite models of one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from tests.tflite_models import TfliteModel

Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class LiteTensor:
    """A tensor of a model.

    Attributes:
        shape: in the library's layout.
        dtype: numpy's name.
        scale, zero_point: of a quantized tensor; arrays where there is one a channel.
        axis: the channels, where there is one scale per channel.
        constant: the values of a constant.
    """

    shape: Sequence[int]
    dtype: str
    scale: Any = None
    zero_point: Any = None
    axis: int = 0
    constant: Array | None = None


def tflite_model(
    operator: str, version: int, options: Mapping[str, Any], inputs: Sequence[LiteTensor], output: LiteTensor
) -> Array:
    """The bytes of a model with one operator, as uint8.

    Args:
        operator: name in the schema, such as `CONV_2D`.
        version: the operator's.
        options: `kind`, the name of the options' table, and its fields; empty where it has none.
        inputs: the operator's; those without a constant are the model's inputs too.
        output: of both.
    """
    model = TfliteModel()
    numbers = [
        model.tensor(f"t{index}", one.shape, one.dtype, scale=one.scale, zero_point=one.zero_point, axis=one.axis)
        if one.constant is None
        else model.constant(f"t{index}", one.constant, scale=one.scale, zero_point=one.zero_point, axis=one.axis)
        for index, one in enumerate([*inputs, output])
    ]
    model.graph.inputs = [number for number, one in zip(numbers, inputs, strict=False) if one.constant is None]
    fields = {name: value for name, value in options.items() if name != "kind"}
    model.operator(operator, numbers[:-1], numbers[-1:], options.get("kind", ""), version=version, **fields)
    return np.frombuffer(model.to_bytes(numbers[-1:]), np.uint8)
