"""Quantize methods of the DLA: its rounding as TensorRT 8 and TensorRT 10 document it."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.devices import device_method
from dryfit.quantization.rounding import required_mode
from dryfit_dla.arithmetic import ARITHMETIC

_INT8 = ARITHMETIC[DataType.INT8]

DLA_8 = device_method(
    "dla-8", "the DLA with TensorRT 8's rounding", required_mode(_INT8.rounding_for((8,))), _INT8.source
)
DLA_10 = device_method(
    "dla-10", "the DLA with TensorRT 10's rounding", required_mode(_INT8.rounding_for((10,))), _INT8.source
)
