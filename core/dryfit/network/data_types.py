"""Data types: the twelve of TensorRT, and those that exist only on the host.

This module does not import numpy, so that a target can name data types in its declarations and the command line can
list targets without loading it.
"""

from __future__ import annotations

import enum
import functools
import importlib
from typing import TYPE_CHECKING, Any

from dryfit.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy as np


class DataType(enum.Enum):
    """The type of a tensor's elements.

    The first twelve are TensorRT's `DataType`, under the same names. The others exist in ONNX but on no device:
    networks may use them, and they run on the CPU only.

    The value of a member is `(numpy or ml_dtypes name, bits, whether it is a device type)`.

    Example:
        >>> DataType.HALF.bits, DataType.HALF.numpy
        (16, dtype('float16'))
        >>> DataType.parse("fp16") is DataType.HALF
        True
    """

    FLOAT = ("float32", 32, True)
    HALF = ("float16", 16, True)
    BF16 = ("bfloat16", 16, True)
    INT8 = ("int8", 8, True)
    UINT8 = ("uint8", 8, True)
    INT32 = ("int32", 32, True)
    INT64 = ("int64", 64, True)
    BOOL = ("bool", 8, True)
    FP8 = ("float8_e4m3fn", 8, True)
    INT4 = ("int4", 4, True)
    FP4 = ("float4_e2m1fn", 4, True)
    E8M0 = ("float8_e8m0fnu", 8, True)

    DOUBLE = ("float64", 64, False)
    INT16 = ("int16", 16, False)
    UINT16 = ("uint16", 16, False)
    UINT32 = ("uint32", 32, False)
    UINT64 = ("uint64", 64, False)
    UINT4 = ("uint4", 4, False)
    INT2 = ("int2", 2, False)
    UINT2 = ("uint2", 2, False)
    FP8_E4M3FNUZ = ("float8_e4m3fnuz", 8, False)
    FP8_E5M2 = ("float8_e5m2", 8, False)
    FP8_E5M2FNUZ = ("float8_e5m2fnuz", 8, False)

    __hash__ = object.__hash__
    """Each member is the only object of its value. Enum's own hash, a Python function, would be called dozens of times
    for each layer of a network."""

    @functools.cached_property
    def numpy_name(self) -> str:
        """Name of the numpy or ml_dtypes type that holds one element."""
        return self.value[0]

    @functools.cached_property
    def text(self) -> str:
        """Name of the type in messages and reports: FP32, FP16 and FP64; otherwise the name of the member."""
        return {"FLOAT": "FP32", "HALF": "FP16", "DOUBLE": "FP64"}.get(self.name, self.name)

    @functools.cached_property
    def bits(self) -> int:
        """Bits per element in a device's memory (numpy stores 2-bit and 4-bit elements one per byte)."""
        return self.value[1]

    @functools.cached_property
    def is_device_type(self) -> bool:
        """Whether TensorRT has this type; the others run on the CPU only."""
        return self.value[2]

    @functools.cached_property
    def is_floating_point(self) -> bool:
        """Whether elements are floating-point numbers (E8M0, a power of two, counts)."""
        return "float" in self.numpy_name

    @functools.cached_property
    def is_integer(self) -> bool:
        """Whether elements are integers; BOOL is neither integer nor floating point."""
        return "int" in self.numpy_name

    @functools.cached_property
    def is_quantized(self) -> bool:
        """Whether TensorRT uses the type for quantized values, which are meaningful only with a scale."""
        return self in (DataType.INT8, DataType.FP8, DataType.INT4, DataType.FP4)

    @functools.cached_property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype of one element."""
        numpy = importlib.import_module("numpy")
        try:
            return numpy.dtype(self.numpy_name)  # type: ignore[no-any-return]
        except TypeError:
            return numpy.dtype(getattr(importlib.import_module("ml_dtypes"), self.numpy_name))  # type: ignore[no-any-return]

    def bytes_of(self, elements: int) -> int:
        """Return the size in bytes of `elements` packed elements; 4-bit types pack two elements per byte."""
        return -(-elements * self.bits // 8)

    @classmethod
    def from_numpy(cls, dtype: Any) -> DataType:
        """Return the data type of a numpy or ml_dtypes dtype.

        Raises:
            UnknownNameError: The dtype is not supported in networks.
        """
        # numpy makes the name anew each time, and references ask in each iteration of a loop.
        found = _BY_DTYPE.get(dtype)
        if found is not None:
            return found
        name = importlib.import_module("numpy").dtype(dtype).name
        for member in cls:
            if member.numpy_name == name:
                _BY_DTYPE[dtype] = member
                return member
        raise UnknownNameError("data type", name, [member.numpy_name for member in cls])

    @classmethod
    def parse(cls, text: str) -> DataType:
        """Return the data type for a name: TensorRT's names, `fp32`, `fp16` or `float16`, in any case.

        Raises:
            UnknownNameError: No data type has this name.
        """
        names = {member.name.lower(): member for member in cls} | {member.numpy_name: member for member in cls}
        names |= {
            "fp32": cls.FLOAT,
            "fp16": cls.HALF,
            "bfloat16": cls.BF16,
            "fp8_e4m3": cls.FP8,
            "fp64": cls.DOUBLE,
        }
        if text.lower() not in names:
            raise UnknownNameError("data type", text, names)
        return names[text.lower()]


_BY_DTYPE: dict[Any, DataType] = {}
"""Data types by the dtypes that were asked for."""

EXCHANGED_TYPES = (DataType.FLOAT, DataType.HALF, DataType.BF16)
"""Interchangeable types of a weakly typed network; the first can represent every value of the others."""

STAND_IN_TYPES = (*EXCHANGED_TYPES, DataType.INT8)
"""Types in which a caller may provide or read real numbers of a weakly typed network; INT8 requires a scale."""
