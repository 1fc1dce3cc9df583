"""What an engine keeps so that its weights can be exchanged: the user's network, and what may be exchanged in it.

A refit gives the network other weights and repeats what the build did with it, so that nothing has to say how each
array of the engine follows from the user's: see docs/decisions/refit.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.weights_role import WeightsRole, weights_of

Array = np.ndarray[Any, Any]


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


@attrs.frozen(eq=False)
class RefitRecord:
    """What a refit works on.

    Attributes:
        network: the user's, with the dynamic ranges that the engine was built with.
        weights: what may be exchanged in it.
        comparisons: equalities between scales that the engine relies on.
        equal_scales: groups of constant scales that were equal when the engine was built, relied on or not.
        is_identical: whether only the values that the engine was built with are taken.
        is_stripped: whether the weights, and all that follows from them, are not there.
    """

    network: Network
    weights: Sequence[RefittableWeights]
    comparisons: Sequence[ScaleComparison]
    equal_scales: Sequence[tuple[str, ...]]
    is_identical: bool
    is_stripped: bool

    def values(self) -> Mapping[WeightsPlace, Array]:
        """The weights of the network by place."""
        return {
            WeightsPlace(layer.name, role): array for layer in self.network.layers for role, array in weights_of(layer)
        }


def digest(array: Array) -> str:
    """SHA-256 of an array's values, row-major and little-endian, in hexadecimal."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return hashlib.sha256(plain.reshape(-1).view(np.uint8).data).hexdigest()
