"""The refit record of an engine as its file has it: names of arrays in the place of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from dryfit.engine.refit_record import RefitRecord, RefittableWeights, ScaleComparison
from dryfit.engine.stripping import is_weights_type
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.packed_elements import stand_in
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.network.tensor import Array

LARGEST_STAND_IN = 2**31
"""Elements of one array that an engine left out. Our choice: no weight is larger, and nothing in the file
vouches for the number."""
_LARGEST_BIAS = 2**20
_LARGEST_RANK = 32
_AGAIN = "Build the engine again; the builder makes no such engine"


@attrs.frozen
class StandInEntry:
    """An array that an engine left out.

    Attributes:
        dtype: type of its elements.
        shape: its extents.
    """

    dtype: DataType
    shape: tuple[int, ...]


@attrs.frozen
class RefitEntry:
    """A `RefitRecord` in a file.

    Attributes:
        network: what `dryfit.network.serialization` makes of the user's network.
        network_arrays: its names of arrays, to names of arrays in the file.
        the others: as in the record.
    """

    network: Mapping[str, Any]
    network_arrays: Mapping[str, str]
    weights: Sequence[RefittableWeights]
    comparisons: Sequence[ScaleComparison]
    equal_scales: Sequence[tuple[str, ...]]
    is_identical: bool
    is_stripped: bool


def entry_of(record: RefitRecord, add: Callable[[str, Mapping[str, Array]], Mapping[str, str]]) -> RefitEntry:
    """The entry of a record.

    Args:
        record: of a plan.
        add: puts arrays into the file under a folder, and gives their names there.
    """
    network, arrays = network_to_dict(record.network)
    return RefitEntry(
        network=network,
        network_arrays=add("refit", arrays),
        weights=record.weights,
        comparisons=record.comparisons,
        equal_scales=record.equal_scales,
        is_identical=record.is_identical,
        is_stripped=record.is_stripped,
    )


def record_of(entry: RefitEntry, arrays: Mapping[str, Array]) -> RefitRecord:
    """The record that an entry describes.

    Args:
        entry: from a file.
        arrays: of the file, and stand-ins for those that are left out.

    Raises:
        NetworkError: the entry describes no network.
        KeyError: it names an array that is not there.
        EngineFileError: what it says of weights is not true of the network.
    """
    network = network_from_dict(
        dict(entry.network), {name: arrays[array] for name, array in entry.network_arrays.items()}
    )
    record = RefitRecord(
        network, entry.weights, entry.comparisons, entry.equal_scales, entry.is_identical, entry.is_stripped
    )
    check_record(record)
    return record


def stand_ins_of(entries: Mapping[str, StandInEntry], where: str) -> dict[str, Array]:
    """Stand-ins for the arrays that a file left out.

    Raises:
        EngineFileError: an array cannot have been left out, or is impossible.
    """
    found = {}
    for name, entry in entries.items():
        place = f"{where}: array {name[:200]!r}, which is left out"
        # An integer may be an extent, which would be looked at element by element: biases are short.
        largest = LARGEST_STAND_IN if is_weights_type(entry.dtype) else _LARGEST_BIAS
        extents = [max(extent, 1) for extent in entry.shape]
        if min(entry.shape, default=0) < 0 or len(extents) > _LARGEST_RANK or math.prod(extents) > largest:
            raise EngineFileError("The array's shape is impossible", where=place, found=entry.shape, remedy=_AGAIN)
        if not is_weights_type(entry.dtype) and entry.dtype is not DataType.INT32:
            raise EngineFileError("No array of this type is left out", where=place, found=entry.dtype.name)
        found[name] = stand_in(entry.dtype, entry.shape)
    return found


def check_record(record: RefitRecord) -> None:
    """Refuse a record that says of weights what is not true of its network.

    Raises:
        EngineFileError: says which.
    """
    values = dict(record.values())
    names: set[str] = set()
    for weights in record.weights:
        where = f"refittable weights {weights.name[:200]!r}"
        if weights.name in names:
            raise EngineFileError("Two refittable weights have one name", where=where, remedy=_AGAIN)
        names.add(weights.name)
        if not weights.places:
            raise EngineFileError("Refittable weights stand somewhere", where=where, remedy=_AGAIN)
        for place in weights.places:
            array = values.get(place)
            found = None if array is None else (DataType.from_numpy(array.dtype), array.size)
            if found != (weights.dtype, weights.size):
                raise EngineFileError(
                    "The network does not have the weights that the engine says can be exchanged",
                    where=f"{where} of layer {place.layer[:200]!r}",
                    found="none" if found is None else f"{found[1]} of {found[0].name}",
                    allowed=f"{weights.size} of {weights.dtype.name}",
                    remedy=_AGAIN,
                )
            del values[place]
