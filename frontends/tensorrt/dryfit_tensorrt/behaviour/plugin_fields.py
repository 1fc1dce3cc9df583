"""Fields of plugins: named values with a type, as a program, an ONNX node and an engine file give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import dryfit
from dryfit_tensorrt.behaviour.objects import Base

_NUMPY: Mapping[str, Any] = {
    "FLOAT16": np.float16,
    "FLOAT32": np.float32,
    "FLOAT64": np.float64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "DIMS": np.int32,
    "BF16": dryfit.DataType.BF16.numpy,
    "FP8": dryfit.DataType.FP8.numpy,
}
"""Type of a field to the numpy type of its entries. All others, as CHAR and UNKNOWN, are bytes."""


class PluginField(Base):
    """A field: a name, a buffer, and the type that the buffer's bytes are read as."""

    name = ""
    type: Any = None
    size = 0
    _buffer: Any = None

    def __init__(self, name: Any = "", data: Any = None, type: Any = None) -> None:
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        self.type = self._api.PluginFieldType.UNKNOWN if type is None else type
        if data is not None:
            self.data = data

    @property
    def data(self) -> Any:
        """The entries as an array; None without a buffer.

        As in TensorRT the bytes are read as the type of the field, whatever type the buffer had.

        Raises:
            ValueError: The buffer has too few bytes for its number of entries in this type.
        """
        if self._buffer is None:
            return None
        contents = np.frombuffer(memoryview(self._buffer).tobytes(), np.uint8)
        dtype = _NUMPY.get(self.type.name)
        if dtype is None:
            return contents.view(np.int8)
        needed = self.size * np.dtype(dtype).itemsize
        if needed > contents.size:
            raise ValueError(
                f"The buffer of the plugin field {self.name!r} is too small: {self.size} entries of {self.type} are "
                f"{needed} bytes (found {contents.size}). Pass an array of the field's type"
            )
        return contents[:needed].view(dtype)

    @data.setter
    def data(self, data: Any) -> None:
        try:
            buffer = memoryview(data)
        except TypeError:
            raise TypeError(
                "PluginField: incompatible function arguments: data must be a buffer, such as a numpy array or bytes "
                f"(found {data!r})"
            ) from None
        # TensorRT keeps the pointer; what the program writes into the buffer later is read, as there.
        self._buffer = data
        self.size = buffer.nbytes // buffer.itemsize

    def __repr__(self) -> str:
        return f"PluginField({self.name!r}, {self.data!r}, {self.type})"


class PluginFieldCollection(list[Any]):
    """Fields in a list."""

    def __init__(self, fields: Iterable[Any] = ()) -> None:
        list.__init__(self, fields)


class PluginFieldCollection_(Base):  # noqa: N801  TensorRT's name
    """Fields that can only be read."""

    def __init__(self, fields: Iterable[Any] = ()) -> None:
        self._fields = list(fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __getitem__(self, index: int) -> Any:
        return self._fields[index]


def stored_fields(fields: Iterable[Any]) -> tuple[list[list[Any]], tuple[bytes, ...]]:
    """Return fields in the form of an engine file: [name, type, number of entries] of each, and the bytes of each."""
    described, contents = [], []
    for field in fields:
        data = field._buffer
        described.append([field.name, field.type.name, field.size])
        contents.append(b"" if data is None else memoryview(data).tobytes())
    return described, tuple(contents)


def loaded_fields(api: Any, described: Iterable[Sequence[Any]], contents: Iterable[bytes]) -> Any:
    """Return the fields of `stored_fields`."""
    found = PluginFieldCollection()
    for (name, kind, size), data in zip(described, contents, strict=True):
        field = api.PluginField(name, data, api.PluginFieldType[kind])
        field.size = size
        found.append(field)
    return found


def fields_of_attributes(api: Any, declared: Any, attributes: Mapping[str, Any]) -> Any:
    """Return the attributes of an ONNX node as the fields that a creator declares, in the creator's order.

    Attributes that the creator does not declare are left out, as TensorRT's parser does it.
    """
    found = PluginFieldCollection()
    for field in declared or ():
        if field.name not in attributes:
            continue
        value = attributes[field.name]
        dtype = _NUMPY.get(field.type.name)
        if isinstance(value, (str, bytes)):
            data: Any = value.encode() if isinstance(value, str) else value
        elif isinstance(value, tuple) and value and isinstance(value[0], (str, bytes)):
            data = b"".join(one.encode() if isinstance(one, str) else one for one in value)
        else:
            data = np.ascontiguousarray(value, dtype).reshape(-1)
        found.append(api.PluginField(field.name, data, field.type))
    return found
