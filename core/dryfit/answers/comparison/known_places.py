"""Where kernels put elements of weights, kept for layers that are packed alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class Places:
    """Where elements of a slot lie in one array that a kernel packed.

    Attributes:
        array: its name.
        elements: which of the slot's, in order; all for `slice(None)`.
        places: index of each in the array, as one row.
    """

    array: str
    elements: Array | slice
    places: Array

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.places.nbytes + (0 if isinstance(self.elements, slice) else self.elements.nbytes)


PlacesOfSlots = Mapping[int, Sequence[Places]]
"""Number of a slot to where its elements lie, for the slots of which each element lies somewhere."""


class KnownPlaces:
    """Places that were found, by what layers that are packed alike have in common. The oldest are forgotten."""

    LARGEST_BYTES = 256 << 20
    """Our choice: a few dozen layers of the usual sizes."""

    def __init__(self) -> None:
        self._known: dict[Hashable, PlacesOfSlots] = {}
        self._bytes = 0

    def get(self, key: Hashable) -> PlacesOfSlots | None:
        """What was found for such a layer; it has to be tried."""
        return self._known.get(key)

    def add(self, key: Hashable, places: PlacesOfSlots) -> None:
        """Remember what was found and tried."""
        self._forget(key)
        self._known[key] = places
        self._bytes += _bytes_of_places(places)
        while self._bytes > self.LARGEST_BYTES:
            self._forget(next(iter(self._known)))

    def _forget(self, key: Hashable) -> None:
        if key in self._known:
            self._bytes -= _bytes_of_places(self._known.pop(key))


def _bytes_of_places(places: PlacesOfSlots) -> int:
    return sum(one.nbytes for some in places.values() for one in some)
