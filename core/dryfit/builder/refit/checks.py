"""What is asked of new weights: types and extents, equality with old ones, and of scales that were compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dryfit.engine.refit_record import RefitRecord, RefittableWeights, digest
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.constant import Constant
from dryfit.network.network import Network

Array = np.ndarray[Any, Any]

_NUM_NAMES_SHOWN = 10


def fitting_values(weights: RefittableWeights, values: Array, where: str) -> Array:
    """A copy of new values for weights, in their extents.

    Raises:
        NetworkError: type or number of values are others.
    """
    array = np.asarray(values)
    dtype = DataType.from_numpy(array.dtype)
    if dtype is not weights.dtype or array.shape not in (weights.shape, (weights.size,)):
        raise NetworkError(
            "New weights have the type of the old ones, and as many values",
            where=f"{where}, weights {weights.name!r}",
            found=f"{dtype.name} {array.shape}",
            allowed=f"{weights.dtype.name} {weights.shape}",
        )
    return np.array(array.reshape(weights.shape), order="C")


def check_digests(record: RefitRecord, given: Mapping[str, Array], where: str) -> None:
    """Refuse weights that are not those that the engine was built with, where it takes no others.

    Raises:
        NetworkError: names them.
    """
    expected = {one.name: one.sha256 for one in record.weights} if record.is_identical else {}
    other = [name for name, array in given.items() if expected.get(name, digest(array)) != digest(array)]
    if other:
        more = f" and {len(other) - _NUM_NAMES_SHOWN} more" if len(other) > _NUM_NAMES_SHOWN else ""
        raise NetworkError(
            "The engine takes only the weights that it was built with, and these are others",
            where=where,
            found=", ".join(map(repr, other[:_NUM_NAMES_SHOWN])) + more,
            remedy="Give the weights of the model that the engine was built from, or build it with the flag REFIT",
        )


def check_compared_scales(record: RefitRecord, network: Network, where: str) -> None:
    """Refuse scales that differ where a pass relied on their being equal.

    Args:
        record: has the comparisons.
        network: the user's, with new weights.
        where: the engine, for errors.

    Raises:
        NetworkError: names both scales, and the pass that compared them.
    """
    for comparison in record.comparisons:
        values = {name: _constant(network, name) for name in comparison.scales}
        known = [(name, value) for name, value in values.items() if value is not None]
        for name, value in known[1:]:
            first, expected = known[0]
            if not np.array_equal(value.astype(np.float64), expected.astype(np.float64)):
                raise NetworkError(
                    "The engine relies on two scales being equal, and the new ones differ",
                    where=f"{where}: scales {first!r} and {name!r}, for {comparison.layer!r}",
                    found=f"{_shown(expected)} and {_shown(value)}",
                    allowed=f"equal values: the pass {comparison.pass_name!r} compared them when the engine was built",
                    remedy="Give both the same value, or build an engine from the new weights",
                )


def _constant(network: Network, name: str) -> Array | None:
    """The values of a constant by the name of its tensor; None where the user's network has none of this name."""
    tensor = network.find_tensor(name)
    producer = tensor.producer if tensor is not None else None
    return producer.weights.reshape(-1) if isinstance(producer, Constant) else None


def _shown(values: Array) -> str:
    return f"{values.item():.9g}" if values.size == 1 else f"{values.size} values from {values.flat[0]:.9g}"
