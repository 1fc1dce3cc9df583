"""A TFLite file as records: every offset, length and index that the schema's bindings trust is verified here.

FlatBuffers are tables that point at each other by offsets in the file. The published bindings (`tflite`) follow them
without a look, so a damaged or hostile file could make them read elsewhere in the file, or a few bytes stand for many
gigabytes. Here each table is verified before it is read, and what is read more than once, or copied, is counted against
the size of the file.

Source: the schema of TensorFlow Lite (`schema.fbs`), and FlatBuffers' description of its binary format.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import ModelImportError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Array
from dryfit.short_text import printable

LARGEST_FILE_BYTES = 2**31 - 1
"""A FlatBuffer cannot be larger. Source: FlatBuffers; larger models keep their weights behind it."""

MOST_ENTRIES = 100_000
"""Tensors, operators or buffers of a model. Our choice: the largest published models have some thousand."""

MOST_AXES = 8
"""Axes of a tensor: as many as networks have."""

_ROOM = 1 << 20
"""Bytes that small files may let be read more than once."""

DATA_TYPES = {
    "FLOAT32": DataType.FLOAT,
    "FLOAT16": DataType.HALF,
    "BFLOAT16": DataType.BF16,
    "FLOAT64": DataType.DOUBLE,
    "INT8": DataType.INT8,
    "UINT8": DataType.UINT8,
    "INT16": DataType.INT16,
    "UINT16": DataType.UINT16,
    "INT32": DataType.INT32,
    "UINT32": DataType.UINT32,
    "INT64": DataType.INT64,
    "UINT64": DataType.UINT64,
    "BOOL": DataType.BOOL,
    "INT4": DataType.INT4,
}
"""The schema's names of types that networks have."""


@frozen(eq=False)
class Quantization:
    """The grid of a tensor's codes: a code `q` stands for `(q - zero_point) * scale`.

    Attributes:
        scale: float32[n]: one, or one for each index of an axis.
        zero_point: int64[n].
        axis: the axis of several scales.
    """

    scale: Array
    zero_point: Array
    axis: int


@frozen(eq=False)
class TfliteTensor:
    """A tensor of the file.

    Attributes:
        index: its number.
        name: as the file has it; made of the number if it has none.
        type_name: the schema's name of its type.
        dtype: that type; None if networks do not have it.
        shape: extents.
        quantization: the grid of its codes; None for a tensor that is not quantized.
        data: the values of a constant, a view of the file; None for a tensor that is computed.
        is_variable: whether it keeps its value from run to run.
        is_sparse: whether its values are stored without zeros.
    """

    index: int
    name: str
    type_name: str
    dtype: DataType | None
    shape: tuple[int, ...]
    quantization: Quantization | None
    data: Array | None
    is_variable: bool
    is_sparse: bool

    @property
    def where(self) -> str:
        """The tensor in messages."""
        return f"tensor {self.index} {printable(repr(self.name), kept='')}"


@frozen(eq=False)
class TfliteOperator:
    """An operator of the file.

    Attributes:
        index: its position.
        name: the schema's name, such as `CONV_2D`; of a custom operator its own.
        is_custom: whether it is not an operator of the schema.
        version: version of the operator.
        inputs: numbers of tensors; -1 for an optional one that is absent.
        outputs: numbers of tensors.
        options: the bindings' object of the options' table; None if the file has none.
        options_kind: name of that table, such as `Conv2DOptions`; "" for none.
    """

    index: int
    name: str
    is_custom: bool
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any
    options_kind: str


@frozen(eq=False)
class TfliteFile:
    """The one subgraph of a file.

    Attributes:
        name: name of the subgraph, or the description of the model.
        tensors: all tensors, by number.
        operators: in their order.
        inputs, outputs: numbers of tensors.
        size: bytes of the file.
    """

    name: str
    tensors: Sequence[TfliteTensor]
    operators: Sequence[TfliteOperator]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    size: int


def bindings() -> Any:
    """Return the schema's bindings.

    Raises:
        ModelImportError: They are not installed.
    """
    try:
        import tflite
    except ImportError as error:
        raise ModelImportError(
            "TFLite models require the schema's Python bindings",
            found=str(error),
            remedy='pip install "dryfit[tflite]"',
        ) from error
    return tflite


def read_file(source: str | os.PathLike[str] | bytes) -> TfliteFile:
    """Return the subgraph of a file.

    Raises:
        ModelImportError: There is no such file, it is damaged, or it has several subgraphs.
    """
    if isinstance(source, bytes):
        data, where = source, "model"
    else:
        where = f"file {os.fspath(source)!r}"
        data = _contents(Path(source), where)
    schema = bindings()
    with _damage_told(where):
        return _Reader(schema, data, where).read()


_DESCRIPTION, _METADATA, _SIGNATURES = 3, 6, 7
_GRAPH_NAME, _TENSOR_NAME = 4, 3
"""Positions of fields in the tables Model, SubGraph and Tensor. Source: schema.fbs of TFLite."""


def without_names(source: str | os.PathLike[str] | bytes) -> bytes:
    """Return a file with numbers in place of the names of tensors, without comments, signatures and metadata.

    Texts are overwritten where they are: a number is cut where the name was shorter, so that names may be equal.

    Raises:
        ModelImportError: See `read_file`.
    """
    read_file(source)
    where = "model" if isinstance(source, bytes) else f"file {os.fspath(source)!r}"
    data = bytearray(source if isinstance(source, bytes) else _contents(Path(source), where))
    with _damage_told(where):
        model = bindings().Model.GetRootAs(data, 0)
        graph = model.Subgraphs(0)
        for table, position in ((model, _DESCRIPTION), (graph, _GRAPH_NAME)):
            _overwrite(data, table, position, b"")
        for index in range(graph.TensorsLength()):
            _overwrite(data, graph.Tensors(index), _TENSOR_NAME, f"t{index}".encode())
        for position in (_METADATA, _SIGNATURES):
            start = _start_of(data, model, position)
            if start is not None:
                struct.pack_into("<I", data, start, 0)
    return bytes(data)


def _overwrite(data: bytearray, table: Any, position: int, text: bytes) -> None:
    """Put a text in the place of a table's string, if it has one."""
    start = _start_of(data, table, position)
    if start is not None:
        (length,) = struct.unpack_from("<I", data, start)
        struct.pack_into(f"<I{length}s", data, start, min(len(text), length), text)


def _start_of(data: bytearray, table: Any, position: int) -> int | None:
    """Where the length of a table's string or vector is; its contents are behind it. None if the table has none."""
    held = table._tab  # noqa: SLF001  the bindings have no other name for it
    offset = held.Offset(4 + 2 * position)
    return held.Pos + offset + struct.unpack_from("<I", data, held.Pos + offset)[0] if offset else None


def _contents(path: Path, where: str) -> bytes:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE_BYTES:
            raise ModelImportError(
                "The file is too large to be a TFLite model",
                where=where,
                found=f"{size} bytes",
                allowed=f"at most {LARGEST_FILE_BYTES} bytes",
                source="offsets in FlatBuffers have 31 bits",
                remedy="Convert a smaller model",
            )
        return path.read_bytes()
    except OSError as error:
        raise ModelImportError(
            "The file cannot be read",
            where=where,
            found=error.strerror or str(error),
            remedy="Check the path and its permissions",
        ) from error


@contextlib.contextmanager
def _damage_told(where: str) -> Iterator[None]:
    """Turn what the bindings raise for a damaged file into an error that says so."""
    try:
        yield
    except (struct.error, ValueError, TypeError, IndexError, KeyError, OverflowError, AttributeError) as error:
        raise ModelImportError(
            "The file is not a TFLite model, or is damaged",
            where=where,
            found=f"{type(error).__name__}: {error}",
            remedy="Copy or convert the model again",
        ) from error


class _Reader:
    """Reads one file."""

    def __init__(self, schema: Any, data: bytes, where: str) -> None:
        self._schema, self._data, self._where = schema, data, where
        self._left = len(data) + _ROOM

    def read(self) -> TfliteFile:
        """Return the subgraph."""
        schema, data = self._schema, self._data
        if len(data) < 8 or data[4:8] != b"TFL3":
            raise self._damaged(f"{len(data)} bytes without the identifier TFL3")
        (root,) = struct.unpack_from("<I", data, 0)
        self._verify(root)
        model = schema.Model.GetRootAs(data, 0)
        count = self._count(model.SubgraphsLength(), "subgraphs")
        if count != 1:
            names = [self._text(self._table(model.Subgraphs(index)).Name()) for index in range(min(count, 8))]
            raise ModelImportError(
                "Models with several subgraphs are not supported" if count else "The model has no subgraph",
                where=self._where,
                found=f"{count} subgraphs: {', '.join(repr(name) for name in names)}" if count else None,
                allowed="one subgraph",
                remedy="Convert the model without control flow and with one signature",
            )
        graph = self._table(model.Subgraphs(0))
        buffers = self._list(model.BuffersLength(), model.Buffers, "buffers")
        codes = self._list(model.OperatorCodesLength(), model.OperatorCodes, "operator codes")
        tables = self._list(graph.TensorsLength(), graph.Tensors, "tensors")
        tensors = [self._tensor(index, table, buffers) for index, table in enumerate(tables)]
        nodes = self._list(graph.OperatorsLength(), graph.Operators, "operators")
        operators = [self._operator(index, table, codes, len(tensors)) for index, table in enumerate(nodes)]
        inputs = self._numbers(graph.InputsLength(), graph.InputsAsNumpy, len(tensors), "an input of the model")
        outputs = self._numbers(graph.OutputsLength(), graph.OutputsAsNumpy, len(tensors), "an output of the model")
        if -1 in inputs or -1 in outputs or not outputs:
            raise self._damaged("no outputs" if not outputs else "an input or output of the model that is not a tensor")
        name = self._text(graph.Name()) or self._text(model.Description()) or "network"
        return TfliteFile(name, tensors, operators, inputs, outputs, len(data))

    # Parts --------------------------------------------------------------------------------------------------------

    def _tensor(self, index: int, table: Any, buffers: Sequence[Any]) -> TfliteTensor:
        name = self._text(table.Name()) or f"tensor_{index}"
        where = f"tensor {index} {name!r}"
        shape = tuple(self._ints(table.ShapeLength(), table.ShapeAsNumpy, MOST_AXES, f"axes of {where}"))
        if any(extent < 0 for extent in shape):
            raise self._damaged(f"{where} has shape {shape}")
        type_name = _names(self._schema.TensorType).get(table.Type(), f"type {table.Type()}")
        dtype = DATA_TYPES.get(type_name)
        if table.Buffer() >= len(buffers):
            raise self._damaged(f"{where} is in buffer {table.Buffer()} of {len(buffers)}")
        raw = self._bytes(buffers[table.Buffer()])
        is_sparse = table.Sparsity() is not None
        values = None
        if raw is not None and dtype is not None and not is_sparse:
            values = self._values(raw, dtype, shape, where)
        grid = self._grid(table.Quantization(), shape, where)
        is_variable = bool(table.IsVariable())
        return TfliteTensor(index, name, type_name, dtype, shape, grid, values, is_variable, is_sparse)

    def _bytes(self, buffer: Any) -> Array | None:
        """The contents of a buffer, a view; None for an empty one."""
        if buffer.Offset() > 1:  # behind the FlatBuffer, as in files of more than 2 GiB
            end = buffer.Offset() + buffer.Size()
            if end > len(self._data):
                raise self._damaged(f"a buffer that ends at byte {end} of {len(self._data)}")
            return np.frombuffer(self._data, np.uint8, buffer.Size(), buffer.Offset())
        found = buffer.DataAsNumpy()
        return None if isinstance(found, int) or not found.size else found

    def _values(self, raw: Array, dtype: DataType, shape: tuple[int, ...], where: str) -> Array:
        """The elements of a constant: a view, except of 4-bit types, which the file has two of in a byte."""
        count = 1
        for extent in shape:
            count *= extent
        if raw.size != dtype.bytes_of(count):
            raise self._damaged(f"{where} of {shape} {dtype.text} has {raw.size} bytes")
        if dtype.bits == 4:
            self._spend(count)
            halves = np.stack([raw << 4, raw], axis=-1).reshape(-1)[:count].view(np.int8) >> 4
            return halves.astype(np.int8).reshape(shape)
        return raw.view(dtype.numpy).reshape(shape)

    def _grid(self, table: Any, shape: tuple[int, ...], where: str) -> Quantization | None:
        if table is None:
            return None
        self._verify(table._tab.Pos)  # noqa: SLF001  the bindings have no other name for it
        count = table.ScaleLength()
        if not count:
            return None
        self._spend(12 * self._count(count, "scales"))
        scale = np.array(table.ScaleAsNumpy(), np.float32)
        zeros = np.array(table.ZeroPointAsNumpy(), np.int64) if table.ZeroPointLength() else np.zeros(count, np.int64)
        axis = table.QuantizedDimension()
        if zeros.size not in (1, count) or (count > 1 and not (0 <= axis < len(shape) and shape[axis] == count)):
            raise self._damaged(f"{where} of {shape} with {count} scales and {zeros.size} zero points on axis {axis}")
        if not (np.isfinite(scale).all() and (scale > 0).all()):
            found = scale[~(np.isfinite(scale) & (scale > 0))][0]
            raise ModelImportError(
                "Scales must be finite and greater than 0",
                where=where,
                found=found,
                remedy="Quantize the model again",
            )
        return Quantization(scale, np.broadcast_to(zeros, scale.shape), axis)

    def _operator(self, index: int, table: Any, codes: Sequence[Any], tensors: int) -> TfliteOperator:
        if table.OpcodeIndex() >= len(codes):
            raise self._damaged(f"operator {index} has code {table.OpcodeIndex()} of {len(codes)}")
        code = codes[table.OpcodeIndex()]
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        name = _names(self._schema.BuiltinOperator).get(number, f"builtin operator {number}")
        is_custom = name == "CUSTOM"
        if is_custom:
            name = self._text(code.CustomCode()) or name
        where = f"operator {index} ({name})"
        inputs = self._numbers(table.InputsLength(), table.InputsAsNumpy, tensors, f"an input of {where}")
        outputs = self._numbers(table.OutputsLength(), table.OutputsAsNumpy, tensors, f"an output of {where}")
        kind = _names(self._schema.BuiltinOptions).get(table.BuiltinOptionsType(), "NONE")
        union, options = table.BuiltinOptions(), None
        if kind != "NONE" and union is not None:
            self._verify(union.Pos)
            options = getattr(self._schema, kind)()
            options.Init(union.Bytes, union.Pos)
        version = max(code.Version(), 1)
        return TfliteOperator(index, name, is_custom, version, inputs, outputs, options, "" if kind == "NONE" else kind)

    # Verified reading ---------------------------------------------------------------------------------------------

    def _verify(self, position: int) -> None:
        """Refuse a table that does not lie in the file with all of its fields."""
        data, size = self._data, len(self._data)
        if not 4 <= position <= size - 4:
            raise self._damaged(f"a table at byte {position} of {size}")
        (back,) = struct.unpack_from("<i", data, position)
        start = position - back
        if not 0 <= start <= size - 4:
            raise self._damaged(f"a table whose fields are described at byte {start} of {size}")
        length, inline = struct.unpack_from("<HH", data, start)
        if length % 2 or length < 4 or start + length > size or inline < 4 or position + inline > size:
            raise self._damaged(f"a table at byte {position} whose fields end behind the file")
        self._spend(length // 8)
        for offset in struct.unpack_from(f"<{length // 2 - 2}H", data, start + 4):
            if offset and not 4 <= offset < inline:
                raise self._damaged(f"a table at byte {position} with a field at {offset} of {inline} bytes")

    def _table(self, table: Any) -> Any:
        if table is None:
            raise self._damaged("a table that is not there")
        self._verify(table._tab.Pos)  # noqa: SLF001
        return table

    def _list(self, count: int, entry: Callable[[int], Any], what: str) -> list[Any]:
        return [self._table(entry(index)) for index in range(self._count(count, what))]

    def _count(self, count: int, what: str) -> int:
        if count > min(MOST_ENTRIES, len(self._data)):
            raise self._damaged(f"{count} {what}")
        return count

    def _ints(self, count: int, values: Callable[[], Any], most: int, what: str) -> list[int]:
        if count > most:
            raise self._damaged(f"{count} {what}")
        self._spend(4 * count)
        return [int(one) for one in values()] if count else []

    def _numbers(self, count: int, values: Callable[[], Any], tensors: int, what: str) -> tuple[int, ...]:
        found = tuple(self._ints(count, values, MOST_ENTRIES, what))
        wrong = [one for one in found if not -1 <= one < tensors]
        if wrong:
            raise self._damaged(f"{what} is tensor {wrong[0]} of {tensors}")
        return found

    def _text(self, raw: bytes | None) -> str:
        if raw is None:
            return ""
        self._spend(len(raw))
        return raw.decode("utf-8", "replace")

    def _spend(self, size: int) -> None:
        """Count what is read; parts of an honest file do not overlap, so that they cannot exceed its size."""
        self._left -= size
        if self._left < 0:
            raise self._damaged("parts that overlap: together they are larger than the file")

    def _damaged(self, found: str) -> ModelImportError:
        return ModelImportError(
            "The file is not a TFLite model, or is damaged",
            where=self._where,
            found=printable(found, kept=""),
            remedy="Copy or convert the model again",
        )


def _names(enumeration: Any) -> dict[int, str]:
    """The members of an enumeration of the schema, by number."""
    return {value: name for name, value in vars(enumeration).items() if isinstance(value, int)}
