"""The `calibration.json` of ONNX Runtime: the least and largest value of each tensor that its calibrators settled on.

Source: `write_calibration_table` and `save_tensors_data` of onnxruntime.quantization 1.31, run; both spellings of a
number, and a table without the frame around it, are read. The pairs of older versions are read too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dryfit.errors import CalibrationError
from dryfit.quantization.json_text import JsonObject, is_text, json_number, parse_json
from dryfit.quantization.stored_ranges import Damage, StoredRange, StoredRanges

FORM = "onnxruntime-json"

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
            "This is no calibration table of ONNX Runtime",
            where=name,
            found=type(table).__name__,
            allowed="an object of tensors",
        )
    entries: list[StoredRange] = []
    damages: list[Damage] = []
    for number, (tensor, value) in enumerate(table.members, 1):
        place, ends = f"entry {number}", _ends(value)
        if not is_text(tensor) or ends is None:
            damages.append(
                Damage(place, "This is no range", f"{tensor!r}: {str(value)[:80]}", "a lowest and a highest value")
            )
        elif ends[0] > ends[1]:
            damages.append(Damage(place, "The lowest value is above the highest", f"{tensor!r}: {ends[0]}, {ends[1]}"))
        else:
            entries.append(StoredRange.of_ends(tensor, *ends, place=place))
    method = read.get("calibration_method")
    facts = {_METHOD: method["value"]} if isinstance(method, JsonObject) and is_text(method.get("value")) else {}
    return StoredRanges(entries, FORM, facts=facts, damages=damages)


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
