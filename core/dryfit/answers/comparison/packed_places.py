"""Recover weights as they were before a kernel packed them.

A kernel's `pack` converts weights to arrays, and there is no inverse. Most kernels only move elements and pad with
zeros. Therefore numbers that encode positions are packed with the same function, digit by digit, to find where each
element goes. The recovered weights are packed again and must match the engine's arrays bit for bit: nothing is guessed.
Positions can thus be reused for similar layers, which most networks have many of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Array

Whole = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
Pack = Callable[[], Mapping[str, Array]]
"""Packs the weights that stand in the layers at the moment."""

DIGIT_BITS: Mapping[DataType, int] = {
    DataType.FLOAT: 24,
    DataType.HALF: 11,
    DataType.BF16: 8,
    DataType.INT8: 7,
    DataType.FP8: 4,
    DataType.INT4: 3,
    DataType.FP4: 2,
}
"""Type to the logarithm of how many whole numbers from 0 on it holds exactly: a digit of so many bits tells places."""

_LEAST_REAL_BITS = DIGIT_BITS[DataType.BF16]
"""Of a digit that goes through any type of real numbers unchanged."""

_FIRST_NUMBER = 2
"""Of an element: 0 and 1 are what cleared weights are packed as."""

_ONES = frozenset({"scale", "power"})
"""Parameters that do nothing where they are 1; the others do nothing where they are 0."""


@frozen
class Slot:
    """A parameter of a layer that holds weights.

    Attributes:
        layer: layer with the parameter.
        name: name of the parameter.
        dtype: type of the elements.
        shape: shape of the weights.
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
        """Set these weights in the layer."""
        setattr(self.layer, self.name, values.astype(self.dtype.numpy, copy=False).reshape(self.shape))

    def clear(self) -> None:
        """Set neutral weights in the layer: ones if the layer multiplies by them, else zeros."""
        self.put(np.full(self.shape, 1 if self.name in _ONES else 0, np.float32))


def unpack_places(
    pack: Pack,
    slots: Sequence[Slot],
    packed: Mapping[str, Array],
    precision: DataType = DataType.FLOAT,
    known: KnownPlaces | None = None,
    like: str = "",
) -> bool:
    """Set weights in slots so that they pack to the engine's arrays; False if such weights cannot be found.

    Factors that a kernel folds into its weights, such as the scale after a convolution, are part of the recovered
    weights; the original layers become neutral.

    Args:
        pack: function that packs the weights in the slots.
        slots: slots with unknown weights.
        packed: packed arrays of the engine.
        precision: computation type of the layers, to which weights may be rounded.
        known: positions found in earlier layers; new ones are added.
        like: properties shared by similar layers besides shapes and types, such as the kernel's name.
    """
    known = KnownPlaces() if known is None else known
    main = [number for number, slot in enumerate(slots) if slot.name not in {"scale", "shift", "power"}]
    looks = (
        *((slot.name, slot.dtype, slot.shape) for slot in slots),
        *((name, array.dtype.str, array.shape) for name, array in sorted(packed.items())),
    )
    for chosen in (main, list(range(len(slots)))) if main else (list(range(len(slots))),):
        key = (like, len(chosen), looks)
        remembered = known.get(key)
        if remembered is not None and _try(remembered, pack, slots, packed):
            return True
        # As few digits as the packed types can hold; what a kernel rounds on the way needs more of fewer bits.
        for real_bits in dict.fromkeys((_real_bits(packed, precision), _LEAST_REAL_BITS)):
            found = _found(pack, {number: slots[number] for number in chosen}, packed, real_bits)
            if _try(found, pack, slots, packed):
                known.add(key, found)
                return True
    return False


def packed_alike(found: Mapping[str, Array], packed: Mapping[str, Array]) -> bool:
    """Return whether two packing results are bit-identical."""
    return found.keys() == packed.keys() and all(_same_bits(found[name], array) for name, array in packed.items())


def _same_bits(one: Array, other: Array) -> bool:
    """Return whether two arrays have the same type, shape and bits."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    return bool(np.array_equal(_bytes_of(one), _bytes_of(other)))


def _bytes_of(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _try(found: PlacesOfSlots, pack: Pack, slots: Sequence[Slot], packed: Mapping[str, Array]) -> bool:
    """Set the weights found in the packed arrays in the slots and pack them; return whether the result is the same."""
    for number, slot in enumerate(slots):
        values = _gathered(slot, found[number], packed) if number in found else None
        if values is None:
            slot.clear()
        else:
            slot.put(values)
    return packed_alike(pack(), packed)


def _gathered(slot: Slot, places: Sequence[Places], packed: Mapping[str, Array]) -> Array | None:
    """Return the elements of a slot from their places; None if a packed array cannot hold them."""
    values = np.zeros(slot.size, slot.dtype.numpy)
    for one in places:
        elements = _elements(packed[one.array], slot.dtype)
        if elements is None or one.places.max(initial=0) >= elements.size:
            return None
        values[one.elements] = elements[one.places]
    return values


def _real_bits(packed: Mapping[str, Array], precision: DataType) -> int:
    """Return the digit size in bits that all packed floating-point arrays and the computation type can hold."""
    types = {precision, *map(_data_type, packed.values())}.intersection(EXCHANGED_TYPES)
    return min((bits for dtype, bits in DIGIT_BITS.items() if dtype in types), default=_LEAST_REAL_BITS)


def _found(pack: Pack, slots: Mapping[int, Slot], packed: Mapping[str, Array], real_bits: int) -> PlacesOfSlots:
    """Find the place of each slot element in arrays that hold nothing else, starting with the largest slot."""
    for slot in slots.values():
        slot.clear()
    found, taken = dict[int, Sequence[Places]](), set[str]()
    for number, slot in sorted(slots.items(), key=lambda entry: -entry[1].size):
        if slot.dtype not in DIGIT_BITS:
            continue
        bits = min(real_bits, DIGIT_BITS[slot.dtype]) if slot.dtype in EXCHANGED_TYPES else DIGIT_BITS[slot.dtype]
        numbers = _numbers(pack, slot, bits)
        places = [_places(name, of, slot.size) for name, of in numbers.items() if name in packed and name not in taken]
        covered = np.zeros(slot.size, np.bool_)
        for one in places:
            covered[one.elements] = True
        if covered.all():
            found[number] = places
            taken.update(one.array for one in places)
    return found


def _places(array: str, numbers: Whole, size: int) -> Places:
    """Return the place of each element whose number the array holds, from 2 on."""
    index = np.int32 if max(numbers.size, size) < 1 << 31 else np.int64
    where = np.flatnonzero(numbers >= _FIRST_NUMBER)
    place_of: Whole = np.full(size, -1, index)
    place_of[numbers[where] - _FIRST_NUMBER] = where
    elements = np.flatnonzero(place_of >= 0)
    if elements.size == size:
        return Places(array, slice(None), place_of)
    return Places(array, elements.astype(index), place_of[elements])


def _numbers(pack: Pack, slot: Slot, bits: int) -> dict[str, Array]:
    """Return, by array name, the element numbers of a slot at the places they were moved to, flattened.

    Other places contain 0 or 1. Arrays with values computed from the elements, or with none of them, are omitted.
    """
    before = pack()
    last = slot.size + _FIRST_NUMBER - 1
    digits = -(-last.bit_length() // bits)
    index = np.int32 if digits * bits < 32 else np.int64
    given = np.arange(_FIRST_NUMBER, last + 1, dtype=index)
    changed, found = set[str](), dict[str, Array]()
    for shift in range(0, digits * bits, bits):
        slot.put(np.bitwise_and(np.right_shift(given, shift), (1 << bits) - 1))
        packed = pack()
        changed |= {name for name, array in packed.items() if name not in before or not _same_bits(array, before[name])}
        now = {name: _digits(array, slot.dtype, bits) for name, array in packed.items() if not shift or name in found}
        found = {
            name: digit if not shift else found[name] + np.left_shift(digit, shift, dtype=index)
            for name, digit in now.items()
            if digit is not None
        }
    slot.clear()
    return {name: numbers for name, numbers in found.items() if name in changed and numbers.max(initial=0) <= last}


def _digits(array: Array, dtype: DataType, bits: int) -> Array | None:
    """Return the digits in a packed array as int32; None if it holds something else."""
    elements = _elements(array, dtype)
    if elements is None:
        return None
    with np.errstate(invalid="ignore"):
        digits = elements.astype(np.int32)
    if digits.min(initial=0) < 0 or digits.max(initial=0) >= 1 << bits:
        return None
    is_whole = dtype.is_integer or np.array_equal(digits, elements.astype(np.float32))
    return digits if is_whole else None


def _elements(array: Array, dtype: DataType) -> Array | None:
    """Return the elements of a packed array in the type of a slot; None if they do not fit it.

    Floating-point values may be packed in another floating-point type, 8-bit ones as bytes, 4-bit ones two per byte.
    """
    own = _data_type(array)
    if own is None:
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


def _data_type(array: Array) -> DataType | None:
    """Return the type of an array's elements; None if tensors do not support it."""
    try:
        return DataType.from_numpy(array.dtype)
    except UnknownNameError:
        return None


# Places that are known already ----------------------------------------------------------------------------------------


@frozen(eq=False)
class Places:
    """The positions of a slot's elements in one packed array.

    Attributes:
        array: name of the array.
        elements: elements of the slot that are in the array, in order; all for `slice(None)`.
        places: index of each element in the flattened array.
    """

    array: str
    elements: Array | slice
    places: Array

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.places.nbytes + (0 if isinstance(self.elements, slice) else self.elements.nbytes)


PlacesOfSlots = Mapping[int, Sequence[Places]]
"""Number of a slot to where its elements lie, for the slots of which each element lies somewhere."""


class KnownPlaces:
    """Positions found so far, by the properties of similarly packed layers. The oldest are discarded."""

    LARGEST_BYTES = 256 << 20
    """Our choice: a few dozen layers of the usual sizes."""

    def __init__(self) -> None:
        self._known: dict[Hashable, PlacesOfSlots] = {}
        self._bytes = 0

    def get(self, key: Hashable) -> PlacesOfSlots | None:
        """Return the positions found for a similar layer; they must be verified."""
        return self._known.get(key)

    def add(self, key: Hashable, places: PlacesOfSlots) -> None:
        """Store verified positions."""
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
