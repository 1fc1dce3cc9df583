"""Reader of untrusted files in the container format; the format is described in `container`.

Every number is checked as a Python integer against the file size before memory is allocated for it.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import math
import mmap
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.engine.container import (
    ENGINE,
    LARGEST_HEADER,
    LARGEST_RANK,
    Array,
    ArrayEntry,
    FileKind,
    canonical_header,
    digest_of_text,
    is_array_name,
)
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.packed_elements import unpacked
from dryfit.target.machine_code import usable_processors

_PIECE_BYTES = 2**20
"""How much of a mapped file each thread has in memory at once while digests are computed. A multiple of every page
size."""
_LEAST_SHARED_BYTES, _MOST_THREADS = 2**23, 4
"""Of a file whose digests several threads compute: with two, 118 MB take 0.04 s instead of 0.08 (AMD EPYC, Zen 4)."""
_LARGEST_EMPTY = 2**60
"""What the other extents of an array with an extent of 0 may multiply to: numpy computes strides from them."""


def read_manifest(data: memoryview, where: str, kind: FileKind = ENGINE) -> tuple[str, dict[str, Any]]:
    """Return the manifest of a file as text and parsed. The arrays are not read.

    Args:
        data: bytes of the whole file.
        where: name of the file, for errors.
        kind: expected kind of the file.

    Raises:
        EngineFileError: The file is foreign, truncated, corrupt, or has another schema version.
    """
    if len(data) < 8:
        raise EngineFileError(
            f"The file is too short for {kind.one}", where=where, found=f"{len(data)} bytes", remedy=kind.when_damaged
        )
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= LARGEST_HEADER or bytes(data[8:9]) != b"{":
        raise EngineFileError(
            f"The file is not a dryfit {kind.noun}: it does not begin with a safetensors header",
            where=where,
            found=f"first bytes {bytes(data[:12])!r}",
            remedy=f"A model, or another tool's {kind.noun}, must be built with dryfit first",
        )
    if 8 + length > len(data):
        raise EngineFileError(
            "The file is truncated",
            where=where,
            found=f"{len(data)} bytes",
            allowed=f"{8 + length} for its header alone",
            remedy=kind.when_damaged,
        )
    metadata = _parse_json(bytes(data[8 : 8 + length]), f"{where}: header", kind).get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != kind.format:
        raise EngineFileError(
            f"The file is a safetensors file, but not a dryfit {kind.noun}",
            where=where,
            found=f"format {str(metadata.get('format'))[:100]!r}" if isinstance(metadata, dict) else "no metadata",
            allowed=f"format {kind.format!r}",
            remedy=_reader_of_loadables(metadata),
        )
    if metadata.get("schema") != str(kind.schema):
        raise EngineFileError(
            f"The {kind.noun} file has an unsupported schema version",
            where=where,
            found=str(metadata.get("schema"))[:100],
            allowed=kind.schema,
            remedy=f"{kind.again} with this version of dryfit",
        )
    text = metadata.get("manifest")
    if not isinstance(text, str) or digest_of_text(text) != metadata.get("manifest_sha256"):
        raise EngineFileError(
            f"The {kind.noun} file is damaged: its manifest does not match its digest",
            where=where,
            remedy=kind.when_damaged,
        )
    return text, _parse_json(text, f"{where}: manifest", kind)


def _reader_of_loadables(metadata: object) -> str | None:
    """Return what to do with the loadable of a device; None if the file is not one."""
    told = (
        re.fullmatch(r"dryfit-([a-z0-9]+)-loadable", str(metadata.get("format")))
        if isinstance(metadata, dict)
        else None
    )
    if told is None:
        return None
    package = f"dryfit_{told[1]}"
    return f"It is a loadable: {package}.runtime runs it, and {package}.loadable_file.read_loadable shows what is in it"


def read_arrays(
    data: memoryview, manifest: str, entries: Sequence[ArrayEntry], where: str, kind: FileKind = ENGINE
) -> dict[str, Array]:
    """Return the arrays of a file by name, read-only, each checked against its digest.

    They are views of `data`, except those of 4 and 2 bits per element, which numpy stores with one byte per element.

    Args:
        data: bytes of the whole file, which must not change while the arrays are in use.
        manifest: result of `read_manifest`.
        entries: list of arrays in the manifest; untrusted.
        where: name of the file, for errors.
        kind: kind of the file.

    Raises:
        EngineFileError: Names, types, shapes, sizes, header or digests are inconsistent.
    """
    for entry in entries:
        _check_entry(entry, len(data), where, kind)
    header, places = canonical_header(manifest, entries, where, kind)
    start = 8 + len(header)
    if bytes(data[:start]) != len(header).to_bytes(8, "little") + header:
        raise EngineFileError(
            f"The {kind.noun} file is damaged: its header does not agree with its manifest",
            where=where,
            remedy=kind.when_damaged,
        )
    expected = start + sum(place.end - place.begin + place.gap for place in places.values())
    if expected != len(data):
        raise EngineFileError(
            "The file is truncated" if expected > len(data) else "The file continues after its last array",
            where=where,
            found=f"{len(data)} bytes",
            allowed=f"{expected} by its manifest",
            remedy=kind.when_damaged,
        )
    arrays: dict[str, Array] = {}
    ranges = [(start + places[entry.name].begin, start + places[entry.name].end) for entry in entries]
    for entry, (begin, end), digest in zip(entries, ranges, _digests(data, ranges), strict=True):
        raw = data[begin:end]
        gap = data[end : end + places[entry.name].gap]
        if digest != entry.sha256 or any(gap):
            raise EngineFileError(
                f"The {kind.noun} file is damaged: an array does not match its digest",
                where=f"{where}: array {entry.name!r}",
                remedy=kind.when_damaged,
            )
        arrays[entry.name] = _array(raw, entry, where, kind)
    return arrays


def _digests(data: memoryview, ranges: Sequence[tuple[int, int]]) -> Sequence[str]:
    """Return the digests of ranges of the file."""
    if len(data) < _LEAST_SHARED_BYTES:
        return [_digest(data, *one) for one in ranges]
    from concurrent.futures import ThreadPoolExecutor  # 5 ms that small files need not spend

    # The largest first, so that no thread is left with one of them at the end.
    order = sorted(range(len(ranges)), key=lambda index: ranges[index][0] - ranges[index][1])
    with ThreadPoolExecutor(min(usable_processors(), _MOST_THREADS)) as pool:
        digests = dict(zip(order, pool.map(lambda index: _digest(data, *ranges[index]), order), strict=True))
    return [digests[index] for index in range(len(ranges))]


def _digest(data: memoryview, begin: int, end: int) -> str:
    """Return the SHA-256 of a range of the file. A mapped range is read and released piece by piece.

    Otherwise, the whole file would count as memory of the process after the check, including data that no run reads.
    The system keeps data in its cache that a run reads.
    """
    digest = hashlib.sha256()
    mapping = data.obj if isinstance(data.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") else None
    for start in range(begin - begin % _PIECE_BYTES, end, _PIECE_BYTES):
        stop = min(start + _PIECE_BYTES, end)
        digest.update(data[max(start, begin) : stop])
        if mapping is not None:
            # Refused where the process has locked its memory: then it is meant to stay.
            with contextlib.suppress(OSError):
                mapping.madvise(mmap.MADV_DONTNEED, start, stop - start)
    return digest.hexdigest()


def _parse_json(text: str | bytes, where: str, kind: FileKind) -> dict[str, Any]:
    """Parse a JSON object, rejecting duplicate keys, non-finite numbers and nesting too deep for Python."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise EngineFileError(
            f"The {kind.noun} file is damaged: invalid JSON",
            where=where,
            found=str(error)[:200],
            remedy=kind.when_damaged,
        ) from None
    if not isinstance(value, dict):
        raise EngineFileError(
            f"The {kind.noun} file is damaged: a JSON object is expected",
            where=where,
            found=type(value).__name__,
            remedy=kind.when_damaged,
        )
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice, _ = collections.Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:100]!r} occurs twice")
    return fields


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text[:50])


def _check_entry(entry: ArrayEntry, file_size: int, where: str, kind: FileKind) -> None:
    """Reject an array entry that is impossible in a file of this size."""
    place = f"{where}: array {entry.name[:200]!r}"
    if not is_array_name(entry.name):
        raise EngineFileError("The array's name is not allowed", where=place, remedy=kind.when_damaged)
    if entry.dtype not in DataType.__members__:
        known = ", ".join(DataType.__members__)
        raise EngineFileError(
            "The array's type is unknown", where=place, found=entry.dtype[:100], allowed=known, remedy=kind.when_damaged
        )
    if len(entry.shape) > LARGEST_RANK or min(entry.shape, default=0) < 0:
        raise EngineFileError(
            "The array's shape is invalid",
            where=place,
            found=entry.shape[: LARGEST_RANK + 1],
            allowed=f"at most {LARGEST_RANK} extents of at least 0",
            remedy=kind.when_damaged,
        )
    limit = _LARGEST_EMPTY if 0 in entry.shape else file_size
    size = DataType[entry.dtype].bytes_of(math.prod(max(extent, 1) for extent in entry.shape))
    if size > limit:
        raise EngineFileError(
            "The array is larger than the file",
            where=place,
            found=f"{entry.dtype} of shape {entry.shape}",
            allowed=f"{limit} bytes",
            remedy=kind.when_damaged,
        )


def _array(raw: memoryview, entry: ArrayEntry, where: str, kind: FileKind) -> Array:
    dtype = DataType[entry.dtype]
    contents = np.frombuffer(raw, dtype=np.uint8)
    if dtype is DataType.BOOL and contents.size and contents.max() > 1:
        raise EngineFileError(
            "A BOOL element must be 0 or 1",
            where=f"{where}: array {entry.name!r}",
            found=int(contents.max()),
            remedy=kind.when_damaged,
        )
    elements = contents.view(dtype.numpy) if dtype.bits >= 8 else unpacked(contents, dtype, math.prod(entry.shape))
    array = elements.reshape(entry.shape)
    array.flags.writeable = False
    return array
