"""What an engine keeps so that its weights can be exchanged: the user's network, and what may be exchanged in it.

A refit gives the network other weights and repeats what the build did with it, so that nothing has to say how each
array of the engine follows from the user's: see docs/decisions/refit.md. An engine's file has names of arrays in the
place of arrays.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from dryfit.engine.records import fields_of
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.packed_elements import stand_in
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.network.tensor import Array
from dryfit.network.weights_role import WeightsRole, weights_of


@attrs.frozen
class WeightsPlace:
    """Where weights stand.

    Attributes:
        layer: name of a layer of the user's network.
        role: what the weights are to it.
    """

    layer: str
    role: WeightsRole


@attrs.frozen
class RefittableWeights:
    """Weights that may be exchanged.

    Attributes:
        name: unique in the engine.
        dtype: type that new values must have.
        shape: extents that they must have; the same number of values in one axis is taken too.
        places: where they stand; several where layers share them.
        sha256: hexadecimal digest of the values that the engine was built with, in an engine that takes only these;
            else "".
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {"name": "name", "dtype": "type", "shape": "shape", "places": "places"}

    name: str
    dtype: DataType
    shape: tuple[int, ...]
    places: tuple[WeightsPlace, ...]
    sha256: str = ""

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)


@attrs.frozen
class ScaleComparison:
    """Scales that had to be equal for a rewrite of the network.

    Attributes:
        pass_name: the pass that compared them.
        layer: the quantize or dequantize layer that it rewrote.
        scales: names of the constants' tensors.
    """

    pass_name: str
    layer: str
    scales: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RefitTerms:
    """What a refit is told beside the network, in memory as in a file.

    Attributes:
        weights: what may be exchanged in it.
        comparisons: equalities between scales that the engine relies on.
        equal_scales: groups of constant scales that were equal when the engine was built, relied on or not.
        is_identical: whether only the values that the engine was built with are taken.
        is_stripped: whether the weights, and all that follows from them, are not there.
    """

    weights: Sequence[RefittableWeights]
    comparisons: Sequence[ScaleComparison]
    equal_scales: Sequence[tuple[str, ...]]
    is_identical: bool
    is_stripped: bool


@attrs.frozen(eq=False, kw_only=True)
class RefitRecord(RefitTerms):
    """What a refit works on.

    Attributes:
        network: the user's, with the dynamic ranges that the engine was built with.
        the others: see `RefitTerms`.
    """

    network: Network

    def values(self) -> Mapping[WeightsPlace, Array]:
        """The weights of the network by place."""
        return {
            WeightsPlace(layer.name, role): array for layer in self.network.layers for role, array in weights_of(layer)
        }


def digest(array: Array) -> str:
    """SHA-256 of an array's values, row-major and little-endian, in hexadecimal."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return hashlib.sha256(plain.reshape(-1).view(np.uint8).data).hexdigest()


LARGEST_STAND_IN = 2**31
"""Elements of one array that an engine left out. Our choice: no weight is larger, and nothing in the file
vouches for the number."""
_LARGEST_BIAS = 2**20
_LARGEST_RANK = 32
_AGAIN = "Build the engine again; the builder never writes such an engine"


def is_weights_type(dtype: DataType) -> bool:
    """Whether weights may be of a type: real numbers, and quantized ones."""
    return dtype.is_floating_point or dtype.is_quantized or dtype in (DataType.UINT8, DataType.UINT4)


@attrs.frozen
class StandInEntry:
    """An array that an engine left out.

    Attributes:
        dtype: type of its elements.
        shape: its extents.
    """

    dtype: DataType
    shape: tuple[int, ...]


@attrs.frozen(kw_only=True)
class RefitEntry(RefitTerms):
    """A `RefitRecord` in a file.

    Attributes:
        network: what `dryfit.network.serialization` makes of the user's network.
        network_arrays: its names of arrays, to names of arrays in the file.
        the others: see `RefitTerms`.
    """

    network: Mapping[str, Any]
    network_arrays: Mapping[str, str]


def entry_of(record: RefitRecord, add: Callable[[str, Mapping[str, Array]], Mapping[str, str]]) -> RefitEntry:
    """The entry of a record.

    Args:
        record: of a plan.
        add: puts arrays into the file under a folder, and gives their names there.
    """
    network, arrays = network_to_dict(record.network)
    return RefitEntry(network=network, network_arrays=add("refit", arrays), **fields_of(RefitTerms, record))


def record_of(entry: RefitEntry, arrays: Mapping[str, Array]) -> RefitRecord:
    """The record that an entry describes.

    Args:
        entry: from a file.
        arrays: of the file, and stand-ins for those that are left out.

    Raises:
        NetworkError: The entry describes no network.
        KeyError: It names an array that is not there.
        EngineFileError: What it says of weights is not true of the network.
    """
    network = network_from_dict(
        dict(entry.network), {name: arrays[array] for name, array in entry.network_arrays.items()}
    )
    record = RefitRecord(network=network, **fields_of(RefitTerms, entry))
    check_record(record)
    return record


def stand_ins_of(entries: Mapping[str, StandInEntry], where: str) -> dict[str, Array]:
    """Stand-ins for the arrays that a file left out.

    Raises:
        EngineFileError: An array cannot have been left out, or is impossible.
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
            raise EngineFileError(
                "Arrays of this type must not be left out",
                where=place,
                found=entry.dtype.text,
                remedy="Build the engine again",
            )
        found[name] = stand_in(entry.dtype, entry.shape)
    return found


def check_record(record: RefitRecord) -> None:
    """Refuse a record that says of weights what is not true of its network.

    Raises:
        EngineFileError: Says which.
    """
    values = dict(record.values())
    names: set[str] = set()
    for weights in record.weights:
        where = f"refittable weights {weights.name[:200]!r}"
        if weights.name in names:
            raise EngineFileError("Names of refittable weights must be unique", where=where, remedy=_AGAIN)
        names.add(weights.name)
        if not weights.places:
            raise EngineFileError("Refittable weights must have a place in the network", where=where, remedy=_AGAIN)
        for place in weights.places:
            array = values.get(place)
            found = None if array is None else (DataType.from_numpy(array.dtype), array.size)
            if found != (weights.dtype, weights.size):
                raise EngineFileError(
                    "The network must have the weights that the engine lists as refittable",
                    where=f"{where} of layer {place.layer[:200]!r}",
                    found="none" if found is None else f"{found[1]} of {found[0].text}",
                    allowed=f"{weights.size} of {weights.dtype.text}",
                    remedy=_AGAIN,
                )
            del values[place]
