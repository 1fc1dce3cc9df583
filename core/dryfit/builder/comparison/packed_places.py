"""Weights as they were before a kernel packed them, from what it packed.

A kernel's `pack` says how weights become arrays, and nobody says the way back. Most of it only moves elements and fills
up with zeros. So numbers that tell places are packed by the same function, digit by digit, and show where each element
went. What is found that way is packed again and has to give the engine's arrays bit for bit: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.errors import UnknownNameError
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.layer import Layer

Array = np.ndarray[Any, Any]
Pack = Callable[[], Mapping[str, Array]]
"""Packs the weights that stand in the layers at the moment."""

DIGITS: Mapping[DataType, int] = {
    **dict.fromkeys(EXCHANGED_TYPES, 256),
    DataType.INT8: 128,
    DataType.FP8: 16,
    DataType.INT4: 8,
    DataType.FP4: 4,
}
"""Type to how many whole numbers from 0 on it holds exactly: the base in which places are told."""

_ONES = frozenset({"scale", "power"})
"""Parameters that do nothing where they are 1; the others do nothing where they are 0."""


@attrs.frozen
class Slot:
    """Where weights stand in a layer.

    Attributes:
        layer: the layer.
        name: of its parameter.
        dtype: type of an element.
        shape: extents.
    """

    layer: Layer
    name: str
    dtype: DataType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def put(self, values: Array) -> None:
        """Give the layer these weights."""
        setattr(self.layer, self.name, values.astype(self.dtype.numpy).reshape(self.shape))

    def clear(self) -> None:
        """Give the layer weights that do nothing: ones where it multiplies with them, else zeros."""
        self.put(np.full(self.shape, 1 if self.name in _ONES else 0, np.float32))


def unpack_places(pack: Pack, slots: Sequence[Slot], packed: Mapping[str, Array]) -> bool:
    """Put weights into slots so that they are packed as an engine has them; False where these cannot be found.

    What a kernel folds into its weights, such as the scale behind a convolution, is part of what is found, and does
    nothing where it stood.

    Args:
        pack: packs what stands in the slots.
        slots: what is not known.
        packed: the engine's.
    """
    main = [slot for slot in slots if slot.name not in {"scale", "shift", "power"}]
    for chosen in (main, slots) if main else (slots,):
        for slot in slots:
            slot.clear()
        for slot, values in _found(pack, chosen, packed):
            slot.put(values)
        if packed_alike(pack(), packed):
            return True
    return False


def packed_alike(found: Mapping[str, Array], packed: Mapping[str, Array]) -> bool:
    """Whether two results of packing are the same, bit for bit."""
    return found.keys() == packed.keys() and all(
        (found[name].dtype, found[name].shape, found[name].tobytes()) == (array.dtype, array.shape, array.tobytes())
        for name, array in packed.items()
    )


def _found(pack: Pack, slots: Sequence[Slot], packed: Mapping[str, Array]) -> list[tuple[Slot, Array]]:
    """The slots whose every element stands in arrays that hold nothing else, with their elements, the largest first."""
    found, taken = list[tuple[Slot, Array]](), set[str]()
    for slot in sorted(slots, key=lambda one: -one.size):
        if slot.dtype not in DIGITS:
            continue
        places = {name: where for name, where in _places(pack, slot).items() if name not in taken}
        values, covered = np.zeros(slot.size, slot.dtype.numpy), np.zeros(slot.size + 1, np.bool_)
        for name, where in places.items():
            elements = _elements(packed[name], slot.dtype) if name in packed else None
            if elements is None or elements.shape != where.shape:
                return found
            values[where[where > 0] - 1] = elements[where > 0]
            covered[where] = True
        if covered[1:].all():
            found.append((slot, values))
            taken.update(places)
    return found


def _places(pack: Pack, slot: Slot) -> dict[str, Array]:
    """Name of each array that the elements of a slot are moved to: for each of its elements which it is, from 1 on.

    0 stands where none of them went. Left out are arrays in which something was computed from them, or nothing.
    """
    # 0 and 1 are what cleared weights are packed as.
    base, numbers = DIGITS[slot.dtype], np.arange(2, slot.size + 2)
    before = {name: array.tobytes() for name, array in pack().items()}
    changed, found = set[str](), dict[str, Array]()
    weight = 1
    while weight <= slot.size + 1:
        slot.put(numbers // weight % base)
        packed = pack()
        changed |= {name for name, array in packed.items() if array.tobytes() != before.get(name)}
        digits = {name: _digits(array, slot.dtype) for name, array in packed.items()}
        now = {name: array * weight for name, array in digits.items() if array is not None}
        found = now if weight == 1 else {name: found[name] + now[name] for name in found if name in now}
        weight *= base
    slot.clear()
    places = {name: np.maximum(where - 1, 0) for name, where in found.items() if name in changed}
    return {name: where for name, where in places.items() if where.max(initial=0) <= slot.size}


def _digits(array: Array, dtype: DataType) -> Array | None:
    """The digits in a packed array; None where it holds something else."""
    elements = _elements(array, dtype)
    if elements is None:
        return None
    real = elements.astype(np.float32)
    is_digit = bool(((real >= 0) & (real < DIGITS[dtype]) & (real == np.rint(real))).all())
    return real.astype(np.int64) if is_digit else None


def _elements(array: Array, dtype: DataType) -> Array | None:
    """The elements of a packed array as numbers of a slot's type; None where it cannot hold such.

    Real numbers may be packed in another real type, 8 bits as bytes, and of 4 bits two in each byte.
    """
    try:
        own = DataType.from_numpy(array.dtype)
    except UnknownNameError:
        return None
    if dtype in EXCHANGED_TYPES:
        return array.reshape(-1) if own in EXCHANGED_TYPES else None
    if own is dtype:
        return array.reshape(-1)
    if own is not DataType.UINT8:
        return None
    data = np.ascontiguousarray(array).reshape(-1)
    if dtype.bits == 8:
        return data.view(dtype.numpy)
    halves = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)
    return ((halves.astype(np.int8) ^ 8) - 8).astype(dtype.numpy) if dtype.is_integer else halves.view(dtype.numpy)
