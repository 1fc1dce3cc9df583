"""dryfit's own file of ranges: JSON that keeps what the other forms have no place for.

It has where each range comes from, both of its ends, what calibration saw of the tensor, and of which model and samples
the ranges are. `CacheDocument` is the file, and its types and descriptions are the published schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.network_ranges import SHARED_WITH
from dryfit.quantization.scale_table import RangeOrigin
from dryfit.quantization.stored_ranges import Damage, StoredRange, StoredRanges

FORM = "json"

MARK = "dryfit calibration cache"
"""The value of the first key, `format`."""

VERSION = 1

MODEL = "model"
"""The fact that names the model's file: `sha256:` and the digest."""


Facts = Mapping[str, str | float | bool | None]
"""Texts and numbers by name."""


@frozen
class DocumentTensor:
    """A tensor of the file.

    Attributes:
        name: the tensor.
        scale: the larger magnitude of the range divided by 127, rounded to binary32; None for none.
        range: the least and the largest value; None for none.
        origin: where the range comes from.
        details: what the calibrator reports of the tensor.
        statistics: what calibration saw; empty where that is not known. `count` values were seen, `zeros` of them are
            zero, `skipped` were not finite and left out, and `minimum` and `maximum` are the ends of the others.
    """

    JSON_OPTIONAL: ClassVar[Sequence[str]] = ("origin", "details", "statistics")

    name: str
    scale: Annotated[float, ("exclusiveMinimum", 0)] | None
    range: Annotated[Sequence[float], ("minItems", 2), ("maxItems", 2)] | None
    origin: RangeOrigin
    details: Facts
    statistics: Facts


@frozen
class CacheDocument:
    """The file, in the order of its keys.

    Attributes:
        format: the first key.
        version: of the form.
        header: TensorRT's first line; empty where there is none.
        facts: how the ranges were found, such as model (sha256 of its file), calibrator and samples.
        tensors: no tensor occurs twice.
    """

    JSON_OPTIONAL: ClassVar[Sequence[str]] = ("header", "facts")

    format: Annotated[str, ("const", MARK)]
    version: Annotated[int, ("const", VERSION)]
    header: str
    facts: Facts
    tensors: Sequence[DocumentTensor]


def stored_solutions(
    solutions: Mapping[str, Solution],
    collectors: Mapping[str, Collector],
    facts: Mapping[str, Any],
    header: str = "",
) -> StoredRanges:
    """What a calibration found, with what it saw, ready to be written in any form.

    Args:
        solutions: by tensor.
        collectors: what was gathered, by tensor; those of other tensors do not count.
        facts: texts and numbers about the calibration, such as `model`, `calibrator` and `samples`.
        header: TensorRT's first line for it.
    """
    entries = []
    for name, one in solutions.items():
        collector, found = collectors.get(name), one.dynamic_range
        entries.append(
            StoredRange(
                name,
                0.0 if found is None else found.scale,
                found,
                RangeOrigin.SHARED if SHARED_WITH in one.details else RangeOrigin.CALIBRATED,
                details={**one.details, **({"reason": one.reason} if one.reason else {})},
                statistics={} if collector is None else statistics(collector),
            )
        )
    return StoredRanges(entries, FORM, header, facts)


def statistics(collector: Collector) -> dict[str, float | int]:
    """What a collector tells of the values that it has seen: how many were skipped, and of a histogram more."""
    found: dict[str, float | int] = {"skipped": collector.skipped}
    if isinstance(collector, Histogram):
        found |= {"count": collector.count, "zeros": collector.zeros}
        if collector.count:
            found |= {"minimum": collector.minimum, "maximum": collector.maximum}
    return found


def document_bytes(stored: StoredRanges) -> bytes:
    """The file; the same bytes for the same ranges. Facts, details and statistics that are not finite are null."""
    document = CacheDocument(
        MARK, VERSION, stored.header, _plain(stored.facts), [_tensor(one) for one in stored.entries]
    )
    return (json.dumps(attrs.asdict(document), indent=1, allow_nan=False) + "\n").encode()


def _tensor(entry: StoredRange) -> DocumentTensor:
    found = entry.dynamic_range
    return DocumentTensor(
        name=entry.name,
        scale=None if found is None else found.scale,
        range=None if found is None else [found.minimum, found.maximum],
        origin=entry.origin,
        details=_plain(entry.details),
        statistics=_plain(entry.statistics),
    )


def _plain(members: Mapping[str, Any]) -> Facts:
    """What JSON has of texts and numbers, numpy's included; anything else in words."""
    found: dict[str, str | float | bool | None] = {}
    for name, value in members.items():
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, float) and not math.isfinite(plain):
            plain = None
        found[name] = plain if plain is None or isinstance(plain, (str, bool, int, float)) else str(plain)
    return found


def stored_in_document(data: bytes, name: str) -> StoredRanges:
    """Every entry of a file, flaws included.

    Raises:
        CalibrationError: the text is no JSON, or JSON of something else.
    """
    read = parse_json(data, name)
    if not isinstance(read, JsonObject) or read.get("format") != MARK or not isinstance(read.get("tensors"), list):
        raise CalibrationError(
            "The JSON file is not a dryfit calibration cache",
            where=name,
            allowed=f'"format": "{MARK}"',
            remedy="Pass a cache that dryfit wrote",
        )
    if read.get("version") != VERSION:
        raise CalibrationError(
            "This version of the format is not supported",
            where=name,
            found=str(read.get("version"))[:80],
            allowed=VERSION,
            remedy="Calibrate again with this version of dryfit",
        )
    header, facts = read.get("header", ""), read.get("facts", JsonObject([]))
    if not is_text(header) or not is_plain(facts):
        raise CalibrationError(
            "The header must be a string, and the facts an object of strings and numbers",
            where=name,
            remedy="Calibrate again",
        )
    entries: list[StoredRange] = []
    damages: list[Damage] = []
    for number, tensor in enumerate(read["tensors"], 1):
        found = _stored(tensor, f"entry {number}")
        if isinstance(found, Damage):
            damages.append(found)
        else:
            entries.append(found)
    return StoredRanges(entries, FORM, header, dict(facts), damages)


def _stored(tensor: Any, place: str) -> StoredRange | Damage:
    """The entry of one tensor."""
    origins = {origin.value: origin for origin in RangeOrigin}
    if not isinstance(tensor, JsonObject) or not is_text(tensor.get("name")):
        return Damage(place, "Not a tensor", str(tensor)[:80], "an object with a name")
    name, ends, scale = tensor["name"], tensor.get("range"), tensor.get("scale")
    origin = tensor.get("origin", RangeOrigin.CALIBRATED.value)
    others = {key: tensor.get(key, JsonObject([])) for key in ("details", "statistics")}
    if not isinstance(origin, str) or origin not in origins:
        return Damage(place, "Unknown origin", f"{origin!r}", ", ".join(origins))
    if not all(map(is_plain, others.values())):
        return Damage(place, "Details and statistics must be objects of strings and numbers", f"{name!r}")
    others |= {"origin": origins[origin], "place": place}
    if ends is None and scale is None:
        return StoredRange(name, 0.0, None, **others)
    numbers = [json_number(one) for one in ends] if isinstance(ends, list) else []
    match numbers:
        case [float(minimum), float(maximum)] if not minimum > maximum:
            found = StoredRange.of_ends(name, minimum, maximum, **others)
        case _:
            return Damage(place, "Not a range", f"{name!r}: {str(ends)[:80]}", "the minimum and the maximum")
    if found.flaw is None and json_number(scale) != found.scale:
        return Damage(place, "Scale and range must match", f"{name!r}: {scale}", f"{found.scale}")
    return found


# JSON -----------------------------------------------------------------------------------------------------------------


class JsonObject(dict[str, Any]):
    """An object, and its members as they stand in the text.

    Attributes:
        members: every (key, value), repeated keys included.
    """

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.members = members


def parse_json(data: bytes, name: str) -> Any:
    """What a JSON text says; objects are `JsonObject`.

    Raises:
        CalibrationError: it is no JSON, with the line; or is nested deeper than can be read.
    """
    try:
        return json.loads(data.decode(), object_pairs_hook=JsonObject)
    except json.JSONDecodeError as error:
        where = f"{name}, line {error.lineno}"
        raise CalibrationError(
            "The file is not valid JSON",
            where=where,
            found=f"{error.msg} at column {error.colno}",
            remedy="Pass a calibration cache",
        ) from None
    except RecursionError:
        raise CalibrationError("The JSON is nested too deeply", where=name, remedy="Pass a calibration cache") from None
    except ValueError as error:  # no UTF-8, or a whole number of thousands of digits
        raise CalibrationError(
            "The file is not valid JSON", where=name, found=str(error), remedy="Pass a calibration cache"
        ) from None


def json_number(value: Any) -> float | None:
    """A JSON number as binary64, infinite where it is too large; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_plain(value: Any) -> bool:
    """Whether a JSON value is an object of texts, finite numbers, truth values and nulls."""
    return isinstance(value, JsonObject) and all(map(_is_plain_member, value.values()))


def _is_plain_member(value: Any) -> bool:
    number = json_number(value)
    return math.isfinite(number) if number is not None else value is None or isinstance(value, (str, bool))


def is_text(value: Any) -> bool:
    """Whether a JSON value is a string that can be written again: JSON may hold halves of characters, files cannot."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)
