"""Swish on quantized values: a code of 8 bits has 256 values, so a table holds all there is to compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import dryfit
from dryfit import DataType

Array = np.ndarray[Any, Any]
Fields = Mapping[str, Any]
Specs = Sequence[dryfit.TensorSpec]

LARGEST = {DataType.INT8: (-128, 127), DataType.FP8: (-448, 448)}
"""What each quantized type holds."""


def swish(x: Array, beta: float) -> Array:
    """`x / (1 + exp(-beta x))`, written so that no exponential overflows."""
    return x * (0.5 + 0.5 * np.tanh(0.5 * beta * x))


def table_of(dtype: DataType, beta: float, input_scale: Array, output_scale: Array) -> Array:
    """The code of swish for each code of 8 bits, by the code's bits: uint8[256].

    Saturates, then rounds to nearest even, as a quantize layer does.
    """
    real = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32) * np.float32(input_scale)
    codes = np.clip(swish(real, beta) / np.float32(output_scale), *LARGEST[dtype])
    codes = np.rint(codes) if dtype is DataType.INT8 else codes
    return codes.astype(dtype.numpy).view(np.uint8)


class QuantizedSwish(dryfit.LayerPlugin):
    """Swish of real numbers or, between a dequantization and a quantization, of their codes."""

    plugin_name, plugin_namespace = "QuantizedSwish", "acme"
    declared_fields = {"beta": dryfit.PluginField(float, default=1.0)}
    takes_quantized = True

    def output_specs(self, fields: Fields, inputs: Specs) -> Sequence[dryfit.TensorSpec]:
        """As the input, in its type."""
        (x,) = inputs
        scales = [*fields["input_scales"], *fields["output_scales"]]
        if any(scale is not None and scale.size > 1 for scale in scales):
            raise ValueError("a table has one scale for the whole input, and one for the output")
        return [dryfit.TensorSpec(x.shape, x.dtype)]

    def format_combinations(self, fields: Fields, inputs: Specs) -> Sequence[Sequence[DataType]]:
        """Codes as they are; of real numbers FP16 or FP32, as flags have it."""
        del fields
        (x,) = inputs
        types = [x.dtype] if x.dtype in LARGEST else [DataType.HALF, DataType.FLOAT]
        return [[dtype, dtype] for dtype in types]

    def configure(self, fields: Fields, inputs: Specs, outputs: Specs) -> Fields:
        """The table, once for all runs; None for real numbers."""
        del outputs
        (x,) = inputs
        scales = [*fields["input_scales"], *fields["output_scales"]]
        table = table_of(x.dtype, fields["beta"], *scales) if x.dtype in LARGEST else None
        return {**fields, "table": table}

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """One look into the table an element, or the formula in FP32."""
        (x,) = inputs
        if fields["table"] is None:
            return [swish(x.astype(np.float32), fields["beta"]).astype(x.dtype)]
        return [fields["table"][x.view(np.uint8)].view(x.dtype)]
