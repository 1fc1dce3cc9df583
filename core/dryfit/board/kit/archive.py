"""An archive that came back from a board, or went there: read without trust, and never extracted."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, Self, cast

import attrs

from dryfit.attrs_classes import frozen
from dryfit.board.kit.manifest import KitBuild, KitManifest, damaged, manifest_of, parsed_json, sha256
from dryfit.board.logs.raw_lines import RawLine, read_lines
from dryfit.engine.records import RecordError, record_from_plain

MANIFEST = "kit.json"
MOST_FILES = 20_000
LARGEST_STREAM = 2 << 30
"""Bytes of a log or a model. Verbose logs of large networks have some 100 MiB; they are read line by line."""
LARGEST_FILE = 256 << 20
"""Bytes of any other file, which is in memory at once."""
_CHUNK = 1 << 20


@frozen(eq=False)
class Archive:
    """A kit or its results, open for reading; use it in a `with` statement.

    Attributes:
        name: path of the archive, for messages.
        top: folder of the archive that contains everything, with a slash; "" for none.
        files: size of each file by its name without `top`.
    """

    name: str
    top: str
    files: Mapping[str, int]
    _zip: zipfile.ZipFile = attrs.field(repr=False)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Archive:
        """Open an archive.

        Other files than those of kits and results are ignored, wherever their names point: nothing is extracted.

        Raises:
            ConfigError: It is no archive, it has too many files, two files of one name, or encrypted ones.
            OSError: It cannot be read.
        """
        name = os.fspath(path)
        try:
            opened = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeDecodeError) as error:
            raise damaged(name, f"no zip archive: {error}") from error
        try:
            return cls(name, *_listed(opened, name), opened)
        except BaseException:
            opened.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def manifest(self) -> KitManifest:
        """The manifest of the kit.

        Raises:
            ConfigError: There is none, or it is damaged.
        """
        return manifest_of(self.contents(MANIFEST), self.where(MANIFEST))

    def contents(self, file: str, limit: int = LARGEST_FILE) -> bytes:
        """Return the contents of a file.

        Raises:
            ConfigError: There is no such file, or it is too large or damaged.
        """
        if file not in self.files:
            raise damaged(self.where(file), "no such file")
        if self.files[file] > limit:
            raise damaged(self.where(file), f"{self.files[file]} bytes; at most {limit} are allowed")
        with self._stream(file, limit) as stream:
            return b"".join(iter(lambda: stream.read(_CHUNK), b""))

    def json(self, file: str) -> Any:
        """Return the contents of a JSON file.

        Raises:
            ConfigError: There is no such file, or it is too large, damaged or no JSON.
        """
        return parsed_json(self.contents(file), self.where(file))

    def record(self, kind: type[Any], file: str) -> Any:
        """Return a record from a JSON file. Raises as `json`, and for data of another form."""
        return self.structured(kind, self.json(file), file)

    def structured(self, kind: type[Any], data: Any, file: str) -> Any:
        """Return a record from a part of a JSON file.

        Raises:
            ConfigError: The data has another form.
        """
        try:
            return record_from_plain(kind, data, kind.__name__)
        except RecordError as error:
            raise damaged(self.where(file), str(error)) from error

    def lines(self, file: str) -> Iterator[RawLine]:
        """Iterate over the lines of a text file; none if there is no such file.

        Raises:
            ConfigError: It is too large or damaged.
        """
        if file in self.files:
            with self._stream(file, LARGEST_STREAM) as stream:
                yield from read_lines(cast("BinaryIO", stream))  # it reads, and that is all that is asked of it

    def model(self, build: KitBuild) -> bytes | None:
        """Return the ONNX model of a build; None if the archive does not contain it.

        Raises:
            ConfigError: It is not the model that the manifest states, or it is damaged.
        """
        if build.model not in self.files:
            return None
        data = self.contents(build.model, LARGEST_STREAM)
        if sha256(data) != build.model_sha256:
            raise damaged(self.where(build.model), "other contents than kit.json states")
        return data

    def where(self, file: str) -> str:
        """Return the name of a file for messages."""
        return f"{self.name}: {file[:120]}"

    def _stream(self, file: str, limit: int) -> _Limited:
        return _Limited(self._zip.open(self.top + file), limit, self.where(file))


def digest_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listed(opened: zipfile.ZipFile, name: str) -> tuple[str, dict[str, int]]:
    """Return (folder that contains everything, size by name)."""
    entries = [one for one in opened.infolist() if not one.is_dir()]
    if len(entries) > MOST_FILES:
        raise damaged(name, f"{len(entries)} files; at most {MOST_FILES} are allowed")
    manifests = [one.filename for one in entries if one.filename.rsplit("/", 1)[-1] == MANIFEST]
    top = min(manifests, key=len, default="").removesuffix(MANIFEST)
    found: dict[str, int] = {}
    for one in entries:
        if not one.filename.startswith(top):
            continue
        if one.filename in found:
            raise damaged(name, f"two files {one.filename[:80]!r}")
        if one.flag_bits & 1:
            raise damaged(name, f"encrypted file {one.filename[:80]!r}")
        found[one.filename] = one.file_size
    return top, {key.removeprefix(top): size for key, size in found.items()}


class _Limited:
    """Reads a file of an archive up to a limit, whatever size the archive states for it."""

    def __init__(self, stream: IO[bytes], limit: int, where: str) -> None:
        self._stream, self._left, self._where = stream, limit, where

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            ConfigError: The file is damaged or too large.
        """
        try:
            data = self._stream.read(size)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise damaged(self._where, str(error)) from error
        self._left -= len(data)
        if self._left < 0:
            raise damaged(self._where, "more bytes than allowed")
        return data
