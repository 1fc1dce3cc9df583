"""The forms that files of INT8 scales and ranges have: which there are, which one a file is of, reading and writing.

Ranges of any form can be set by hand, such as those of TensorRT's sampleINT8API: `name: range`, one tensor a line. A
range there is the largest magnitude: a tensor has values from minus to plus that. Other forms have both ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError, UnknownNameError
from dryfit.network.network import Network
from dryfit.quantization import cache_document, calibration_cache, onnxruntime_files
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.calibration_cache import ONNXRUNTIME_LINES, RANGE_LINES
from dryfit.quantization.int8_steps import DynamicRange
from dryfit.quantization.stored_ranges import StoredRanges

LARGEST_BYTES = 1 << 28
"""256 MiB: a file of ranges is a few hundred bytes a tensor, so that a larger one is something else. Our choice."""


@frozen
class CacheForm:
    """One form of file.

    Attributes:
        name: what users write.
        title: whose it is, and what it has of a tensor.
        read: gives every entry of the bytes of a file, which errors call by the name that is its second argument.
        write: gives the bytes of a file with ranges that are sound.
        keeps_missing: whether tensors without a scale are written; others leave them out.
    """

    name: str
    title: str
    read: Callable[[bytes, str], StoredRanges]
    write: Callable[[StoredRanges], bytes]
    keeps_missing: bool = False


FORMS = {
    form.name: form
    for form in (
        CacheForm(
            calibration_cache.FORM,
            "TensorRT's calibration cache: scales, bit for bit",
            calibration_cache.stored_in_cache,
            calibration_cache.cache_bytes,
            keeps_missing=True,
        ),
        CacheForm(
            RANGE_LINES.name,
            "the range file of TensorRT's sampleINT8API: largest magnitudes",
            RANGE_LINES.stored,
            RANGE_LINES.to_bytes,
        ),
        CacheForm(
            onnxruntime_files.JSON_FORM,
            "ONNX Runtime's calibration.json: both ends of ranges",
            onnxruntime_files.stored_in_json,
            onnxruntime_files.json_bytes,
        ),
        CacheForm(
            onnxruntime_files.BUFFER_FORM,
            "ONNX Runtime's calibration.flatbuffers, for its TensorRT execution provider: largest magnitudes",
            onnxruntime_files.stored_in_buffer,
            onnxruntime_files.buffer_bytes,
        ),
        CacheForm(
            ONNXRUNTIME_LINES.name,
            "ONNX Runtime's calibration.cache, for people: largest magnitudes",
            ONNXRUNTIME_LINES.stored,
            ONNXRUNTIME_LINES.to_bytes,
        ),
        CacheForm(
            cache_document.FORM,
            "dryfit's own: scales, both ends of ranges, origins, statistics",
            cache_document.stored_in_document,
            cache_document.document_bytes,
            keeps_missing=True,
        ),
    )
}
"""Every form by name."""


def cache_form(name: str) -> CacheForm:
    """The form of a name.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in FORMS:
        raise UnknownNameError("form of calibration cache", name, FORMS)
    return FORMS[name]


def form_of(data: bytes) -> str:
    """The name of the form that a file's contents look like; TensorRT's where they look like none.

    A file may be damaged all the same.
    """
    if onnxruntime_files.is_buffer(data):
        return onnxruntime_files.BUFFER_FORM
    if data.lstrip()[:1] == b"{":
        ours = re.match(rb'\s*\{\s*"format"\s*:', data)
        return cache_document.FORM if ours else onnxruntime_files.JSON_FORM
    first = data.lstrip(b"\r\n").partition(b"\n")[0].decode(errors="replace").removesuffix("\r")
    if CacheHeader.parse(first) is None:
        for form in (RANGE_LINES, ONNXRUNTIME_LINES):
            if form.split(first) is not None:
                return form.name
    return calibration_cache.FORM


def read_bytes(path: Path) -> bytes:
    """The contents of a file of ranges.

    Raises:
        CalibrationError: the file cannot be read, or is too large to be one.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise CalibrationError(
            "The calibration cache cannot be read",
            where=str(path),
            found=error.strerror or str(error),
            remedy="Check the path and its permissions",
        ) from None
    if len(data) > LARGEST_BYTES:
        raise CalibrationError(
            "The file is too large for a calibration cache",
            where=str(path),
            allowed=f"{LARGEST_BYTES} bytes",
            remedy="Pass a calibration cache",
        )
    return data


def stored_in_file(path: Path, form: str | None = None) -> StoredRanges:
    """Every entry of a file, flaws included.

    Args:
        path: the file.
        form: name of its form; for None the contents tell.

    Raises:
        CalibrationError: the file cannot be read, or is none; names the file, and the line where there is one.
        UnknownNameError: there is no such form.
    """
    data = read_bytes(path)
    return cache_form(form or form_of(data)).read(data, str(path))


def read_ranges_file(path: Path, form: str | None = None) -> StoredRanges:
    """The entries of a file of any form, all of them sound; see `stored_in_file`.

    Raises:
        CalibrationError: the same, or there are flaws; names file and line.
        UnknownNameError: there is no such form.
    """
    return stored_in_file(path, form).require_sound(str(path))


def parse_calibration_cache(data: bytes, name: str, form: str | None = None) -> calibration_cache.CalibrationCache:
    """The scales in the contents of a file of any form.

    Args:
        data: the contents.
        name: what errors call the file.
        form: name of its form; for None the contents tell.

    Raises:
        CalibrationError: the file is none, or has flaws; names file and line.
        UnknownNameError: there is no such form.
    """
    stored = cache_form(form or form_of(data)).read(data, name)
    return calibration_cache.CalibrationCache.of_stored(stored.require_sound(name))


def read_calibration_cache(path: Path, form: str | None = None) -> calibration_cache.CalibrationCache:
    """The scales in a file of any form; see `parse_calibration_cache`.

    Raises:
        CalibrationError: the file cannot be read, is none, or has flaws; names file and line.
        UnknownNameError: there is no such form.

    Example:
        >>> read_calibration_cache(Path("calibration.flatbuffers")).scales["image"]
        0.007874015718698502
    """
    return parse_calibration_cache(read_bytes(path), str(path), form)


def read_ranges(path: Path) -> dict[str, DynamicRange]:
    """The ranges in a file of any form, by tensor, in the file's order; tensors without one are left out.

    Raises:
        CalibrationError: the file cannot be read, or an entry is none or has no range; names file and line.
    """
    return {one.name: one.dynamic_range for one in read_ranges_file(path).entries if one.dynamic_range is not None}


def set_ranges(network: Network, ranges: Mapping[str, DynamicRange], where: str = "ranges") -> None:
    """Set the ranges of a network's tensors by hand.

    Raises:
        CalibrationError: tensors are named that the network does not have; all of them are.
    """
    unknown = [name for name in ranges if network.find_tensor(name) is None]
    if unknown:
        raise CalibrationError(
            "The network has no tensors with these names",
            where=where,
            found=", ".join(map(repr, unknown)),
            remedy="Remove these lines, or use the cache of this model",
        )
    for name, one in ranges.items():
        network.tensor(name).dynamic_range = (one.minimum, one.maximum)


def write_ranges_file(place: Path, stored: StoredRanges, form: str) -> list[str]:
    """Write a file of ranges; returns the tensors without a scale that were left out, where the form has none.

    Raises:
        CalibrationError: a name does not fit the form, or the file cannot be written.
    """
    chosen = cache_form(form)
    left_out = [] if chosen.keeps_missing else [one.name for one in stored.entries if one.dynamic_range is None]
    data = chosen.write(stored)
    try:
        write_atomically(place, [data])
    except OSError as error:
        raise CalibrationError(
            "The file cannot be written",
            where=str(place),
            found=error.strerror or str(error),
            remedy="Check the folder and its permissions",
        ) from error
    return left_out
