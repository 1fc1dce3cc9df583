"""The arrays of an engine file while it is written: each once, under a name that a file can hold."""

from __future__ import annotations

from collections.abc import Mapping

from dryfit.engine.container import Array, ArrayEntry, describe, is_array_name
from dryfit.engine.refit_entry import StandInEntry
from dryfit.network.data_types import DataType
from dryfit.network.stand_ins import is_stand_in


class FileArrays:
    """Takes arrays, and gives the names by which the manifest speaks of them.

    Attributes:
        entries: what the manifest says of each array, in the order of the file.
        contents: the arrays as they will lie in the file.
        stand_ins: arrays that are left out, by the names that they would have.
    """

    def __init__(self) -> None:
        self.entries: list[ArrayEntry] = []
        self.contents: list[Array] = []
        self.stand_ins: dict[str, StandInEntry] = {}
        self._shared: dict[tuple[str, tuple[int, ...], str], str] = {}

    def add_all(self, folder: str, arrays: Mapping[str, Array]) -> dict[str, str]:
        """Take the arrays of a network under a folder; returns their names to the names in the file.

        They are numbered where one of them has a name that no file can hold.
        """
        readable = all(is_array_name(f"{folder}/{name}") for name in arrays)
        return {
            name: self.add(f"{folder}/{name if readable else index}", array)
            for index, (name, array) in enumerate(arrays.items())
        }

    def add(self, name: str, array: Array) -> str:
        """Take an array; returns its name in the file.

        Raises:
            EngineFileError: the name is none that a file can hold.
            UnknownNameError: networks do not have the array's type.
        """
        if is_stand_in(array):
            self.stand_ins[name] = StandInEntry(DataType.from_numpy(array.dtype), array.shape)
            return name
        entry, plain = describe(name, array)
        # Each array that is there stands for one more at most, so that two never become one.
        known = self._shared.pop((entry.dtype, entry.shape, entry.sha256), None)
        if known is None:
            self.entries.append(entry)
            self.contents.append(plain)
        return known or name

    def share(self) -> None:
        """From now on let an array that is there already stand for one with the same contents."""
        self._shared = {(entry.dtype, entry.shape, entry.sha256): entry.name for entry in reversed(self.entries)}
