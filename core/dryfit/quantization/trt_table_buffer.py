"""The `calibration.flatbuffers` of ONNX Runtime, which its TensorRT execution provider reads: names and thresholds.

It is a FlatBuffers file of one small schema, so that what is needed of that format stands here: a reader that checks
every offset, for files come from anywhere, and a writer. In the schema's language:

    table KeyValue { key: string; value: string; }
    table TrtTable { dict: [KeyValue]; }
    root_type TrtTable;

Source: CalTableFlatBuffers of onnxruntime 1.31; https://flatbuffers.dev/internals. A value is the decimal text of a
largest magnitude.
"""

from __future__ import annotations

import struct

from dryfit.errors import CalibrationError
from dryfit.quantization.stored_ranges import Damage, StoredRange, StoredRanges

FORM = "onnxruntime-flatbuffers"

_OFFSET_BYTES = 4


class _OutsideError(Exception):
    """An offset leads out of the file, or to more than the file can have."""


def is_buffer(data: bytes) -> bool:
    """Whether a file may be of this form: its first four bytes lead to a table inside it, and there are zero bytes."""
    root = int.from_bytes(data[:_OFFSET_BYTES], "little")
    return b"\0" in data and _OFFSET_BYTES <= root <= len(data) - _OFFSET_BYTES and root % _OFFSET_BYTES == 0


def stored_in_buffer(data: bytes, name: str) -> StoredRanges:
    """Every entry of a file, flaws included.

    Raises:
        CalibrationError: the file is damaged, or something else.
    """
    try:
        pairs = _pairs(_Buffer(data))
    except _OutsideError as error:
        raise CalibrationError(
            "This is no calibration table of ONNX Runtime, or a damaged one", where=name, found=str(error)
        ) from None
    entries: list[StoredRange] = []
    damages: list[Damage] = []
    for number, (key, value) in enumerate(pairs, 1):
        place = f"entry {number}"
        try:
            entries.append(StoredRange.of_threshold(key.decode(), float(value.decode()), place=place))
        except ValueError:  # no UTF-8, or no number
            damages.append(
                Damage(place, "This is no range", f"{key[:80]!r}: {value[:80]!r}", "a name and a decimal number")
            )
    return StoredRanges(entries, FORM, damages=damages)


def buffer_bytes(stored: StoredRanges) -> bytes:
    """The file with these ranges; tensors without one are left out."""
    texts = [
        (entry.name.encode(), repr(entry.dynamic_range.threshold).encode())
        for entry in stored.entries
        if entry.dynamic_range is not None
    ]
    # Where tables say which fields they have, and how far behind their beginning: `TrtTable` at 4, `KeyValue` at 12.
    head = struct.pack("<I", 20) + struct.pack("<HHHxx", 6, 8, 4) + struct.pack("<HHHH", 8, 12, 4, 8)
    table, vector, first_pair = 20, 28, 32 + _OFFSET_BYTES * len(texts)
    head += struct.pack("<iI", table - 4, vector - (table + 4)) + struct.pack("<I", len(texts))
    offsets, pairs, strings = [], [], []
    string_at = first_pair + 12 * len(texts)
    for index, both in enumerate(texts):
        pair = first_pair + 12 * index
        offsets.append(struct.pack("<I", pair - (vector + 4 + _OFFSET_BYTES * index)))
        places = []
        for text in both:
            places.append(string_at)
            strings.append(_string(text))
            string_at += len(strings[-1])
        pairs.append(struct.pack("<iII", pair - 12, places[0] - (pair + 4), places[1] - (pair + 8)))
    return b"".join([head, *offsets, *pairs, *strings])


def _string(text: bytes) -> bytes:
    """Length, text, a zero byte, and zeros up to a multiple of four bytes."""
    return struct.pack("<I", len(text)) + text + bytes(_OFFSET_BYTES - len(text) % _OFFSET_BYTES)


def _pairs(buffer: _Buffer) -> list[tuple[bytes, bytes]]:
    vector = buffer.field(buffer.target(0), 0)
    if vector is None:
        return []
    start = buffer.target(vector)
    count = buffer.unsigned(start)
    buffer.require(start + 4, count * _OFFSET_BYTES)
    pairs, size = [], 0
    for index in range(count):
        pair = buffer.target(start + 4 + _OFFSET_BYTES * index)
        key, value = buffer.string(buffer.field(pair, 0)), buffer.string(buffer.field(pair, 1))
        size += len(key) + len(value)
        if size > len(buffer.data):  # a few bytes can name one long text many times
            raise _OutsideError(f"texts of more than the file's {len(buffer.data)} bytes")
        pairs.append((key, value))
    return pairs


class _Buffer:
    """Numbers, tables and strings of a file, all little-endian; what leads outside raises `_OutsideError`."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def require(self, at: int, size: int) -> None:
        """Refuse bytes that the file does not have."""
        if at < 0 or at + size > len(self.data):
            raise _OutsideError(f"bytes {at} to {at + size} of {len(self.data)}")

    def unsigned(self, at: int, size: int = 4) -> int:
        """An unsigned number."""
        self.require(at, size)
        return int.from_bytes(self.data[at : at + size], "little")

    def target(self, at: int) -> int:
        """Where an offset leads."""
        return at + self.unsigned(at)

    def field(self, table: int, index: int) -> int | None:
        """Where a table has a field; None where it has none."""
        self.require(table, 4)
        places = table - int.from_bytes(self.data[table : table + 4], "little", signed=True)
        if 4 + 2 * index + 2 > self.unsigned(places, 2):
            return None
        offset = self.unsigned(places + 4 + 2 * index, 2)
        return table + offset if offset else None

    def string(self, at: int | None) -> bytes:
        """The text that a field leads to; empty where there is no field."""
        if at is None:
            return b""
        start = self.target(at)
        size = self.unsigned(start)
        self.require(start + 4, size)
        return self.data[start + 4 : start + 4 + size]
