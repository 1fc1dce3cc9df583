"""Values on both sides: TensorRT's `Dims`, `Weights` and enumerations, and what stands for them in dryfit."""

from __future__ import annotations

import ctypes
import enum
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

import dryfit
from dryfit_tensorrt import memory
from dryfit_tensorrt.behaviour.objects import Base

if TYPE_CHECKING:
    from dryfit_tensorrt.namespace import Namespace


def of_enum(api: Namespace, kind: str, value: Any) -> Any:
    """Return the member of an enumeration of a version that has the name of a member, or of a text, of dryfit."""
    name = value if isinstance(value, str) else value.name
    known = getattr(api, kind)
    return known["INT32" if name == "INT64" and is_narrowed(api, value) else name]


def is_narrowed(api: Namespace, dtype: Any) -> bool:
    """Return whether a version shows a type of dryfit as a narrower one: before version 10 INT64 is INT32.

    TensorRT 8 computes what ONNX has as INT64 in INT32. dryfit computes it in INT64; for the program its values are
    INT32 at the inputs and outputs, and when weights are read.
    """
    return dtype is dryfit.DataType.INT64 and "INT64" not in api.DataType.__members__


def core_dtype(dtype: Any) -> dryfit.DataType:
    """Return the data type of dryfit for a `DataType` of a version, or for what numpy takes as one."""
    if isinstance(dtype, dryfit.DataType):
        return dtype
    if isinstance(dtype, enum.Enum):
        return dryfit.DataType[dtype.name]
    raise TypeError(f"incompatible function arguments: {dtype!r} is not a DataType")


def to_core(value: Any) -> Any:
    """Return what dryfit takes for a value of TensorRT's."""
    if isinstance(value, enum.Enum):
        kind = getattr(dryfit, type(value).__name__, None)
        return value.name if kind is None else kind[value.name]
    if isinstance(value, Base):
        return value._for_core()
    if isinstance(value, list):
        found = [to_core(one) for one in value]
        return tuple(found) if all(isinstance(one, (int, np.integer)) for one in found) else found
    return value


def from_core(api: Namespace, owner: Any, value: Any) -> Any:
    """Return what a program of TensorRT's expects for a value of dryfit's.

    Args:
        api: names of the version.
        owner: the object whose value it is; it knows the tensors and layers of its network.
        value: the value.
    """
    if isinstance(value, enum.Enum):
        kind = type(value).__name__
        return of_enum(api, kind, value) if api.has(kind) else value.name
    if isinstance(value, dryfit.Tensor):
        return owner._network._tensor(value)
    if isinstance(value, dryfit.Layer):
        return owner._network._layer(value)
    if isinstance(value, (dryfit.Loop, dryfit.IfConditional)):
        return owner._network._control_flow(value)
    if isinstance(value, (dryfit.Weights, np.ndarray)):
        found = np.asarray(value.numpy() if isinstance(value, dryfit.Weights) else value).reshape(-1)
        narrow = found.dtype == np.int64 and is_narrowed(api, dryfit.DataType.INT64)
        return found.astype(np.int32) if narrow else found
    if isinstance(value, tuple) and all(isinstance(one, (int, np.integer)) for one in value):
        return api.Dims(value)
    return value


class Dims(Base, list[int]):
    """Extents, which compare with lists and tuples and can be assigned to."""

    MAX_DIMS = 8

    def __init__(self, *shape: Any) -> None:
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], Iterable) else shape
        list.__init__(self, map(int, extents))
        if len(self) > self.MAX_DIMS:
            raise ValueError(f"Dims holds at most {self.MAX_DIMS} extents (found {len(self)})")

    def _for_core(self) -> tuple[int, ...]:
        return tuple(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple)) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Any:
        found = list.__getitem__(self, index)
        return tuple(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return repr(tuple(self))

    __str__ = __repr__


class DimsHW(Base):
    """Height and width."""

    @property
    def h(self) -> int:
        """Height."""
        return int(self[0])  # type: ignore[index]

    @h.setter
    def h(self, extent: int) -> None:
        self[0] = extent  # type: ignore[index]

    @property
    def w(self) -> int:
        """Width."""
        return int(self[1])  # type: ignore[index]

    @w.setter
    def w(self, extent: int) -> None:
        self[1] = extent  # type: ignore[index]


class Permutation(Base, list[int]):
    """The order of dimensions of a transpose; the identity if it is made of nothing."""

    def __init__(self, order: Iterable[int] = range(8)) -> None:
        list.__init__(self, map(int, order))

    def _for_core(self) -> tuple[int, ...]:
        return tuple(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple)) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


class Weights(Base):
    """An array, or a type with the address and number of elements. Memory is read when the weights are used."""

    def __init__(self, a: Any = None, ptr: int = 0, count: int = 0, *, type: Any = None) -> None:
        contents = type if a is None else a
        if contents is None:
            contents = self._api.DataType.FLOAT
        if isinstance(contents, self._api.DataType):
            self._array, self._address, self._count = None, int(ptr), int(count)
            self._dtype = core_dtype(contents)
        else:
            self._array, self._address = np.asarray(contents), 0
            self._dtype = dryfit.Weights(self._array).dtype
            self._count = self._array.size

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return of_enum(self._api, "DataType", self._dtype)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._dtype.bytes_of(self._count)

    def numpy(self) -> Any:
        """Return the elements as an array."""
        return self._values().numpy() if self._array is None else self._array

    def __len__(self) -> int:
        return self._count

    def _values(self) -> dryfit.Weights:
        """The elements that are at the address now: in device memory, or in memory of the program's."""
        size = self._dtype.bytes_of(self._count) if self._address else 0
        is_device = memory.is_device_address(self._address)
        data = memory.view(self._address, size).tobytes() if is_device else ctypes.string_at(self._address, size)
        return dryfit.Weights(self._dtype, data if size else b"", self._count if size else 0)

    def _for_core(self) -> Any:
        if not self._count:
            return None
        return self._values() if self._array is None else self._array


class IHostMemory(bytes):
    """The bytes of an engine or a cache."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})
    _api: Any

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return len(self)

    @property
    def dtype(self) -> Any:
        """INT8: plain bytes."""
        return self._api.DataType.INT8

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def volume(iterable: Iterable[int]) -> int:
    """Return the product of extents; 1 if there are none."""
    return math.prod(iterable)


_NUMPY = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT8": np.int8,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
    "UINT8": np.uint8,
}


def nptype(trt_type: Any) -> Any:
    """Return the numpy type of a data type.

    Raises:
        TypeError: numpy has no such type, as for FP8 and BF16.
    """
    if trt_type.name not in _NUMPY:
        raise TypeError(f"Could not resolve TensorRT datatype to an equivalent numpy datatype: {trt_type}")
    return _NUMPY[trt_type.name]


_SIZES = {"FLOAT": 4, "HALF": 2, "BF16": 2, "INT8": 1, "INT32": 4, "INT64": 8, "BOOL": 1, "UINT8": 1, "FP8": 1}


def itemsize(dtype: Any) -> float | None:
    """Return the bytes of an element: 0.5 for 4-bit types, None for E8M0, as TensorRT has it."""
    return 0.5 if dtype.name in ("INT4", "FP4") else _SIZES.get(dtype.name)
