"""Writer of the container format of built files: arrays and one text, in the safetensors format.

    8 bytes     length of the header, little-endian
    header      JSON: name to {dtype, shape, data_offsets}, and "__metadata__"; spaces up to a multiple of 64 bytes
    data        the arrays one after another, each at a multiple of 64 bytes

safetensors does not allow gaps, so the gaps between arrays are also arrays, of zeros, named `padding/...`. Types that
`safetensors.numpy` lacks are stored as bytes (`U8`), types of 4 and 2 bits packed; the manifest has their real type.

The header is canonical: it is determined by the manifest. A reader derives it and rejects a file whose header differs
by a single byte; the manifest and each array have a SHA-256. Therefore no byte can change unnoticed, and nothing is
used before it is checked. A digest detects corruption, not intent: it is not a signature.

Engines and loadables use this format; their `FileKind` distinguishes them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.packed_elements import packed

Array = np.ndarray[Any, Any]

ALIGNMENT = 64
"""Arrays start at a multiple of this: a cache line."""
LARGEST_HEADER = 100_000_000
"""Bytes of header that readers of safetensors accept."""
LARGEST_RANK = 32
"""Axes that every supported numpy has."""


@frozen
class FileKind:
    """The kind of a container file.

    Attributes:
        noun: word used in messages, such as `engine`.
        format: format name in the header, by which a reader recognizes its files.
        schema: version of the structure. A reader accepts only its own version.
        again: how to create a new file, as the beginning of a sentence.
    """

    noun: str
    format: str
    schema: int
    again: str

    @property
    def one(self) -> str:
        """The noun with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"

    @property
    def when_damaged(self) -> str:
        """Remedy for a file that differs from what was written."""
        return f"Save the {self.noun} again; if the file was copied, compare its size and checksum with the original"


ENGINE = FileKind("engine", "dryfit-engine", 7, "Build the engine again")

_NAME = re.compile(r"[A-Za-z0-9_./:-]{1,200}")
_SAFETENSORS_TYPES = {
    DataType.DOUBLE: "F64",
    DataType.FLOAT: "F32",
    DataType.HALF: "F16",
    DataType.INT64: "I64",
    DataType.INT32: "I32",
    DataType.INT16: "I16",
    DataType.INT8: "I8",
    DataType.UINT64: "U64",
    DataType.UINT32: "U32",
    DataType.UINT16: "U16",
    DataType.UINT8: "U8",
    DataType.BOOL: "BOOL",
}


@attrs.frozen
class ArrayEntry:
    """An array of the file, as described in the manifest.

    Attributes:
        name: name of the array, unique in the file.
        dtype: `DataType` name.
        shape: shape of the array.
        sha256: hexadecimal digest of the array's bytes in the file, row-major and little-endian.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def size(self) -> int:
        """Size in the file in bytes; types of 4 and 2 bits are packed."""
        return DataType[self.dtype].bytes_of(math.prod(self.shape))


@attrs.frozen
class Place:
    """The place of an array in the data: bytes `begin` to `end`, then `gap` zeros."""

    begin: int
    end: int
    gap: int


def is_array_name(name: str) -> bool:
    """Return whether an array in a file may have this name."""
    return bool(_NAME.fullmatch(name)) and not name.startswith("padding/")


def describe(name: str, array: Array) -> tuple[ArrayEntry, Array]:
    """Return the entry of an array, and the array as stored in the file.

    Raises:
        EngineFileError: A file cannot contain this name.
        UnknownNameError: Networks do not support the array's type.
    """
    if not is_array_name(name):
        raise EngineFileError(
            "An array name must consist of letters, digits and _ . / : -",
            where=f"array {name!r}",
            remedy="Rename the tensor or layer",
        )
    dtype = DataType.from_numpy(array.dtype)
    if dtype.bits < 8:
        plain = packed(array)
    else:
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    return ArrayEntry(name, dtype.name, array.shape, hashlib.sha256(_bytes_of(plain)).hexdigest()), plain


def chunks(
    manifest: str, entries: Sequence[ArrayEntry], arrays: Sequence[Array], kind: FileKind = ENGINE
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file in pieces, so that nothing is held in memory twice.

    Args:
        manifest: text of the manifest; it must list `entries`, because readers use that list.
        entries: entries from `describe`.
        arrays: arrays from `describe`.
        kind: kind of the file.

    Raises:
        EngineFileError: The header exceeds the safetensors limit, or two arrays have the same name.
    """
    header, places = canonical_header(manifest, entries, kind.noun, kind)
    if len(header) > LARGEST_HEADER:
        raise EngineFileError(
            f"The network is too large for one {kind.noun} file's manifest",
            found=f"a header of {len(header)} bytes",
            allowed=f"{LARGEST_HEADER} bytes",
            source="safetensors format: header size limit",
            remedy="Split the network, or use shorter names for its layers and tensors",
        )
    yield len(header).to_bytes(8, "little")
    yield header
    for entry, array in zip(entries, arrays, strict=True):
        yield _bytes_of(array)
        yield bytes(places[entry.name].gap)


def canonical_header(
    manifest: str, entries: Sequence[ArrayEntry], where: str, kind: FileKind = ENGINE
) -> tuple[bytes, Mapping[str, Place]]:
    """Return the only valid header for this manifest and these arrays, and the places of its arrays.

    Raises:
        EngineFileError: Two arrays have the same name.
    """
    fields: dict[str, Any] = {
        "__metadata__": {
            "format": kind.format,
            "manifest": manifest,
            "manifest_sha256": digest_of_text(manifest),
            "schema": str(kind.schema),
        }
    }
    places: dict[str, Place] = {}
    position = 0
    for index, entry in enumerate(entries):
        if entry.name in places:
            raise EngineFileError(
                f"Array names of the {kind.noun} file must be unique",
                where=where,
                found=entry.name,
                remedy="Use different names for the arrays",
            )
        end = position + entry.size
        place = Place(position, end, -end % ALIGNMENT)
        known = _SAFETENSORS_TYPES.get(DataType[entry.dtype])
        fields[entry.name] = {
            "dtype": known or "U8",
            "shape": list(entry.shape) if known else [entry.size],
            "data_offsets": [position, end],
        }
        position = end + place.gap
        if place.gap:
            fields[f"padding/{index}"] = {"dtype": "U8", "shape": [place.gap], "data_offsets": [end, position]}
        places[entry.name] = place
    text = json_text(fields).encode("ascii")
    return text + b" " * (-(8 + len(text)) % ALIGNMENT), places


def json_text(fields: Mapping[str, Any]) -> str:
    """Return deterministic ASCII JSON with sorted keys and without spaces.

    Raises:
        TypeError: The value is not plain data.
        ValueError: A number is not finite, which JSON cannot represent.
    """
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of_text(text: str) -> str:
    """Return the SHA-256 of a UTF-8 string."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
