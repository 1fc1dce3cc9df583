"""The data in an engine that a refit requires: the user's network, and the weights that can be exchanged.

A refit sets other weights in the network and repeats the build steps, so that no rule is needed to derive each array of
the engine from the user's weights: see docs/decisions/refit.md. In an engine file, arrays are replaced by their names.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.records import fields_of
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.packed_elements import stand_in
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.network.tensor import Array
from dryfit.network.weights_role import WeightsRole, weights_of


@frozen
class WeightsPlace:
    """The place of weights in a network.

    Attributes:
        layer: name of a layer of the user's network.
        role: role of the weights in the layer.
    """

    layer: str
    role: WeightsRole


@frozen
class RefittableWeights:
    """Weights that can be exchanged.

    Attributes:
        name: name of the weights, unique in the engine.
        dtype: required type of new values.
        shape: required shape of new values; a one-dimensional array with the same number of values is also accepted.
        places: places of the weights; several if layers share them.
        sha256: hexadecimal digest of the values that the engine was built with, if the engine accepts only these; else
            "".
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


@frozen
class ScaleComparison:
    """Scales that had to be equal for a rewrite of the network.

    Attributes:
        pass_name: name of the pass that compared the scales.
        layer: quantize or dequantize layer that the pass rewrote.
        scales: names of the tensors with the constant scales.
    """

    pass_name: str
    layer: str
    scales: tuple[str, ...]


@frozen(kw_only=True)
class RefitTerms:
    """The refit data besides the network, in memory and in files.

    Attributes:
        weights: weights that can be exchanged.
        comparisons: equalities between scales that the engine relies on.
        equal_scales: groups of constant scales that were equal at build time, relied on or not.
        is_identical: whether only the values from build time are accepted.
        is_stripped: whether the weights, and everything derived from them, are omitted.
    """

    weights: Sequence[RefittableWeights]
    comparisons: Sequence[ScaleComparison]
    equal_scales: Sequence[tuple[str, ...]]
    is_identical: bool
    is_stripped: bool


@frozen(eq=False, kw_only=True)
class RefitRecord(RefitTerms):
    """The data of a refit.

    Attributes:
        network: the user's network, with the dynamic ranges that the engine was built with.
        the others: see `RefitTerms`.
    """

    network: Network

    def values(self) -> Mapping[WeightsPlace, Array]:
        """Return the weights of the network by place."""
        return {
            WeightsPlace(layer.name, role): array for layer in self.network.layers for role, array in weights_of(layer)
        }


def digest(array: Array) -> str:
    """Return the SHA-256 of an array's values, row-major and little-endian, in hexadecimal."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return hashlib.sha256(plain.reshape(-1).view(np.uint8).data).hexdigest()


LARGEST_STAND_IN = 2**31
"""Elements of one array that an engine left out. Our choice: no weight is larger, and nothing in the file
vouches for the number."""
_LARGEST_BIAS = 2**20
_LARGEST_RANK = 32
_AGAIN = "Build the engine again; the builder never writes such an engine"


def is_weights_type(dtype: DataType) -> bool:
    """Return whether weights can have this type: floating-point and quantized types."""
    return dtype.is_floating_point or dtype.is_quantized or dtype in (DataType.UINT8, DataType.UINT4)


@frozen
class StandInEntry:
    """An array that is omitted from an engine file.

    Attributes:
        dtype: type of the elements.
        shape: shape of the array.
    """

    dtype: DataType
    shape: tuple[int, ...]


@frozen(kw_only=True)
class RefitEntry(RefitTerms):
    """A `RefitRecord` in a file.

    Attributes:
        network: the user's network, as written by `dryfit.network.serialization`.
        network_arrays: array name in the file by array name in the network.
        the others: see `RefitTerms`.
    """

    network: Mapping[str, Any]
    network_arrays: Mapping[str, str]


def entry_of(record: RefitRecord, add: Callable[[str, Mapping[str, Array]], Mapping[str, str]]) -> RefitEntry:
    """Return the file entry of a record.

    Args:
        record: refit record of a plan.
        add: function that adds arrays to the file under a folder and returns their names in the file.
    """
    network, arrays = network_to_dict(record.network)
    return RefitEntry(network=network, network_arrays=add("refit", arrays), **fields_of(RefitTerms, record))


def record_of(entry: RefitEntry, arrays: Mapping[str, Array]) -> RefitRecord:
    """Return the record that an entry describes.

    Args:
        entry: entry from a file.
        arrays: arrays of the file, with stand-ins for omitted ones.

    Raises:
        NetworkError: The entry does not describe a network.
        KeyError: The entry refers to an array that does not exist.
        EngineFileError: The weights in the entry do not match the network.
    """
    network = network_from_dict(
        dict(entry.network), {name: arrays[array] for name, array in entry.network_arrays.items()}
    )
    record = RefitRecord(network=network, **fields_of(RefitTerms, entry))
    check_record(record)
    return record


def stand_ins_of(entries: Mapping[str, StandInEntry], where: str) -> dict[str, Array]:
    """Return stand-ins for the arrays that a file omits.

    Raises:
        EngineFileError: An array cannot be omitted, or is impossible.
    """
    found = {}
    for name, entry in entries.items():
        place = f"{where}: array {name[:200]!r}, which is left out"
        # An integer may be an extent, which would be looked at element by element: biases are short.
        largest = LARGEST_STAND_IN if is_weights_type(entry.dtype) else _LARGEST_BIAS
        extents = [max(extent, 1) for extent in entry.shape]
        if min(entry.shape, default=0) < 0 or len(extents) > _LARGEST_RANK or math.prod(extents) > largest:
            raise EngineFileError(
                "The array's shape is invalid",
                where=place,
                found=entry.shape,
                allowed=f"at most {_LARGEST_RANK} extents of 0 or more, with at most {largest} elements",
                remedy=_AGAIN,
            )
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
    """Reject a record whose weights do not match its network.

    Raises:
        EngineFileError: Weights do not match; the message states which ones.
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
