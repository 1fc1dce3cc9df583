"""Weights that lie outside of the model's message: in files beside the model, memory-mapped, or in memory.

Files are read inside the model's folder only.

A model file comes from anywhere. What it names as the file of its weights is therefore not followed out of its own
folder: not by an absolute path, not by `..`, and not by a symbolic link.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import TensorProto

from dryfit.errors import OnnxImportError
from dryfit.network.tensor import Array

_IN_MEMORY = "\0"
"""What the location of contents in memory begins with: no file is named so."""


class ExternalData:
    """The folder of one model, the files in it that were mapped so far, and contents in memory.

    Args:
        folder: the folder of the model file; None where the model did not come from a file.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder.resolve() if folder is not None else None
        self._mapped: dict[Path, Array] = {}
        self._in_memory: dict[str, Array] = {}
        self._decoded: dict[tuple[str, int, tuple[int, ...]], Array] = {}

    def keep(self, tensor: TensorProto, data: bytes) -> None:
        """Let a tensor without contents refer to these, as its copies will."""
        location = f"{_IN_MEMORY}{len(self._in_memory)}"
        self._in_memory[location] = np.frombuffer(data, np.uint8)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)

    @staticmethod
    def is_in_memory(tensor: TensorProto) -> bool:
        """Whether a tensor's contents are in memory."""
        return any(one.key == "location" and one.value.startswith(_IN_MEMORY) for one in tensor.external_data)

    def decoded(self, tensor: TensorProto, decode: Callable[[], Array]) -> Array:
        """What `decode` makes of a tensor's contents; once of contents in memory, so that all have the same array."""
        location = next((one.value for one in tensor.external_data if one.key == "location"), "")
        if location not in self._in_memory:
            return decode()
        key = location, tensor.data_type, tuple(tensor.dims)
        if key not in self._decoded:
            self._decoded[key] = decode()
        return self._decoded[key]

    def bytes_of(self, tensor: TensorProto, expected_bytes: int) -> Array:
        """`uint8[expected_bytes]`: a view of the contents, or of the mapped file, of which nothing is read yet.

        Raises:
            OnnxImportError: the location leaves the model's folder, the file is missing, or offset and length do
                not lie inside it.
        """
        where = f"tensor {tensor.name!r}"
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        data = self._in_memory[location] if location in self._in_memory else self._file(location, where)
        try:
            offset = int(entries.get("offset") or 0)
            length = int(entries.get("length") or expected_bytes)
        except ValueError as error:
            raise OnnxImportError(
                "Offset and length of external data must be numbers",
                where=where,
                remedy="The model is damaged; export it again",
            ) from error
        if offset < 0 or length < 0 or offset + length > data.size:
            raise OnnxImportError(
                "The external data must lie inside their file",
                where=where,
                found=f"offset {offset}, length {length}",
                allowed=f"the file {entries.get('location')!r} has {data.size} bytes",
                remedy="The file is cut off; copy or export it again",
            )
        return data[offset : offset + length]

    def _file(self, location: str, where: str) -> Array:
        if self._folder is None:
            raise OnnxImportError(
                "The model stores weights in another file, whose folder is unknown",
                where=where,
                found=location,
                remedy="Pass the path of the model file",
            )
        try:
            return self._mapped_file(self._folder, location, where)
        except (OSError, RuntimeError, ValueError) as error:  # a NUL character, links in a ring, no permission
            raise OnnxImportError(
                "The external data file cannot be read",
                where=where,
                found=f"{location!r}: {error}",
                remedy="Check the file and its permissions",
            ) from error

    def _mapped_file(self, folder: Path, location: str, where: str) -> Array:
        candidate = Path(location)
        outside = not location or candidate.is_absolute() or ".." in candidate.parts
        path = folder if outside else (folder / candidate).resolve()
        if outside or not path.is_relative_to(folder):
            raise OnnxImportError(
                "External data must be in the folder of the model",
                where=where,
                found=repr(location),
                allowed=f"a relative path inside {folder}, without '..' and without links that leave it",
                remedy="Move the file, and save the model with its new location",
            )
        if path not in self._mapped:
            if not path.is_file():
                raise OnnxImportError(
                    "The external data file is missing",
                    where=where,
                    found=str(path),
                    remedy="Copy it next to the model",
                )
            empty = path.stat().st_size == 0
            self._mapped[path] = np.empty(0, np.uint8) if empty else np.memmap(path, np.uint8, mode="r")
        return self._mapped[path]
