"""The files of ranges that ONNX Runtime writes and reads: `calibration.json` and `calibration.flatbuffers`.

The first has the least and largest value of each tensor that its calibrators settled on. Source:
`write_calibration_table` and `save_tensors_data` of onnxruntime.quantization 1.31, run; both spellings of a number, and
a table without the frame around it, are read. The pairs of older versions are read too.

The second, which its TensorRT execution provider reads, has names and thresholds. It is a FlatBuffers file of one small
schema, so that what is needed of that format is here: a reader that checks every offset, for files come from anywhere,
and a writer. In the schema's language:

    table KeyValue { key: string; value: string; }
    table TrtTable { dict: [KeyValue]; }
    root_type TrtTable;

Source: CalTableFlatBuffers of onnxruntime 1.31; https://flatbuffers.dev/internals. A value is the decimal text of a
largest magnitude.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from dryfit.errors import CalibrationError
from dryfit.quantization.cache_document import JsonObject, is_text, json_number, parse_json
from dryfit.quantization.stored_ranges import Damage, StoredRange, StoredRanges

JSON_FORM = "onnxruntime-json"

_METHOD = "calibration method"
"""The fact that tells which calibrator it was; the value is ONNX Runtime's, such as `CalibrationMethod.Entropy`."""

_OTHER_METHOD = "CalibrationMethod.MinMax"
"""What is written for ranges that another calibrator found: its tensors have two ends, and nothing more."""


def stored_in_json(data: bytes, name: str) -> StoredRanges:
    """Every entry of a file, flaws included.

    Raises:
        CalibrationError: the text is no JSON, or no table.
    """
    read = parse_json(data, name)
    table = read.get("data") if isinstance(read, JsonObject) and read.get("CLS") == "TensorsData" else read
    if not isinstance(table, JsonObject):
        raise CalibrationError(
            "The file is not a calibration table of ONNX Runtime",
            where=name,
            found=type(table).__name__,
            allowed="an object of tensors",
            remedy="Pass a table that ONNX Runtime wrote",
        )
    entries: list[StoredRange] = []
    damages: list[Damage] = []
    for number, (tensor, value) in enumerate(table.members, 1):
        place, ends = f"entry {number}", _ends(value)
        if not is_text(tensor) or ends is None:
            damages.append(
                Damage(place, "Not a range", f"{tensor!r}: {str(value)[:80]}", "the lowest and the highest value")
            )
        elif ends[0] > ends[1]:
            damages.append(
                Damage(place, "The lowest value must not be above the highest", f"{tensor!r}: {ends[0]}, {ends[1]}")
            )
        else:
            entries.append(StoredRange.of_ends(tensor, *ends, place=place))
    method = read.get("calibration_method")
    facts = {_METHOD: method["value"]} if isinstance(method, JsonObject) and is_text(method.get("value")) else {}
    return StoredRanges(entries, JSON_FORM, facts=facts, damages=damages)


def json_bytes(stored: StoredRanges) -> bytes:
    """The file that `load_tensors_data` of onnxruntime.quantization reads; tensors without a range are left out.

    ONNX Runtime rounds the ends to binary32 when it reads them.
    """
    return (json.dumps(dict(_frame(stored))) + "\n").encode()


def _frame(stored: StoredRanges) -> Iterator[tuple[str, Any]]:
    yield "CLS", "TensorsData"
    ranged = [(entry.name, entry.dynamic_range) for entry in stored.entries]
    yield (
        "data",
        {
            name: {"lowest": _array(one.minimum), "highest": _array(one.maximum), "CLS": "TensorData"}
            for name, one in ranged
            if one is not None
        },
    )
    yield "calibration_method", {"CLS": "CalibrationMethod", "value": stored.facts.get(_METHOD, _OTHER_METHOD)}


def _array(value: float) -> dict[str, Any]:
    return {"data": value, "dtype": "float32", "CLS": "numpy.array"}


def _ends(value: Any) -> tuple[float, float] | None:
    """The least and the largest value of a tensor."""
    if isinstance(value, JsonObject):
        ends = [_number(value.get(key)) for key in ("lowest", "highest")]
    elif isinstance(value, list):
        ends = [_number(one) for one in value[:2]]
    else:
        return None
    match ends:
        case [float(lowest), float(highest)]:
            return lowest, highest
        case _:
            return None


def _number(value: Any) -> float | None:
    """A number, in an array of one element or alone."""
    if isinstance(value, JsonObject):
        value = value.get("data")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return json_number(value)


BUFFER_FORM = "onnxruntime-flatbuffers"

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
            "The file is not a calibration table of ONNX Runtime, or is damaged",
            where=name,
            found=str(error),
            remedy="Write it again with ONNX Runtime",
        ) from None
    entries: list[StoredRange] = []
    damages: list[Damage] = []
    for number, (key, value) in enumerate(pairs, 1):
        place = f"entry {number}"
        try:
            entries.append(StoredRange.of_threshold(key.decode(), float(value.decode()), place=place))
        except ValueError:  # no UTF-8, or no number
            damages.append(Damage(place, "Not a range", f"{key[:80]!r}: {value[:80]!r}", "a name and a decimal number"))
    return StoredRanges(entries, BUFFER_FORM, damages=damages)


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
