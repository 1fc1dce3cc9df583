"""The outer shape of the files that builds write: arrays and one text, in the safetensors format. This half writes.

    8 bytes     length of the header, little-endian
    header      JSON: name to {dtype, shape, data_offsets}, and "__metadata__"; spaces up to a multiple of 64 bytes
    data        the arrays one after another, each at a multiple of 64 bytes

safetensors allows no holes, so the gaps between arrays are arrays too, of zeros, named `padding/...`. Types that
`safetensors.numpy` lacks lie there as their bytes (`U8`), those of 4 and 2 bits packed, and their real type stands in
the manifest.

The header is canonical: it follows from the manifest. A reader derives it, and refuses a file whose header differs by
one byte; the manifest and each array have a SHA-256. So no byte can change unnoticed, and nothing is used before it
is checked. A digest tells damage, not intent: it is no signature.

Engines and the loadables of devices are such files; their `FileKind` tells them apart.
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


@attrs.frozen
class FileKind:
    """What a file of this outer shape holds.

    Attributes:
        noun: one word for people, such as `engine`.
        format: written into the header, so that a reader recognizes its own files.
        schema: version of the structure. A reader takes exactly its own.
        again: how to get a new one, as the beginning of a sentence.
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
        """What to do about a file that is not as it was written."""
        return f"Save the {self.noun} again; if the file was copied, compare its size and checksum with the original"


ENGINE = FileKind("engine", "dryfit-engine", 6, "Build the engine again")

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
    """One array of the file, as the manifest describes it.

    Attributes:
        name: unique in the file.
        dtype: `DataType` name.
        shape: extents.
        sha256: hexadecimal digest of the array's bytes in the file, row-major and little-endian.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def size(self) -> int:
        """Bytes in the file; types of 4 and 2 bits are packed."""
        return DataType[self.dtype].bytes_of(math.prod(self.shape))


@attrs.frozen
class Place:
    """Where an array lies in the data: bytes `begin` to `end`, then `gap` zeros."""

    begin: int
    end: int
    gap: int


def is_array_name(name: str) -> bool:
    """Whether an array in a file may have this name."""
    return bool(_NAME.fullmatch(name)) and not name.startswith("padding/")


def describe(name: str, array: Array) -> tuple[ArrayEntry, Array]:
    """The entry of an array, and the array as it will lie in the file.

    Raises:
        EngineFileError: The name is none that a file can hold.
        UnknownNameError: Networks do not have the array's type.
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
    """The bytes of a file, piece by piece, so that nothing is held twice.

    Args:
        manifest: the text; it has to list `entries`, since readers take them from there.
        entries: what `describe` gave.
        arrays: what `describe` gave.
        kind: what the file holds.

    Raises:
        EngineFileError: The header gets larger than safetensors allows, or two arrays have one name.
    """
    header, places = canonical_header(manifest, entries, kind.noun, kind)
    if len(header) > LARGEST_HEADER:
        raise EngineFileError(
            f"The network is too large for one {kind.noun} file's manifest",
            found=f"a header of {len(header)} bytes",
            allowed=f"{LARGEST_HEADER} bytes",
            source="safetensors format: header size limit",
            remedy="Split the network, or give its layers and tensors shorter names",
        )
    yield len(header).to_bytes(8, "little")
    yield header
    for entry, array in zip(entries, arrays, strict=True):
        yield _bytes_of(array)
        yield bytes(places[entry.name].gap)


def canonical_header(
    manifest: str, entries: Sequence[ArrayEntry], where: str, kind: FileKind = ENGINE
) -> tuple[bytes, Mapping[str, Place]]:
    """The only header that a file with this manifest and these arrays can have, and where its arrays lie.

    Raises:
        EngineFileError: Two arrays have one name.
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
                remedy="Give the arrays different names",
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
    """Deterministic JSON in ASCII: keys sorted, no spaces.

    Raises:
        TypeError: Something in it is no plain data.
        ValueError: A number in it is not finite, which JSON lacks.
    """
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of_text(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
