"""What is asked of a refit: that new weights fit the old ones, and that the build with them comes out as the engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.engine.plan import Plan
from dryfit.engine.refit_record import RefitRecord, RefittableWeights, digest
from dryfit.errors import BuildError, NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.serialization import network_to_dict
from dryfit.target.kernels import Array, Kernel

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
            "New weights must have the type and size of the old ones",
            where=f"{where}, weights {weights.name!r}",
            found=f"{dtype.text} {array.shape}",
            allowed=f"{weights.dtype.text} {weights.shape}",
            remedy="Convert and reshape the weights, or build an engine from the new model",
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
            "The weights must be the ones that the engine was built with",
            where=where,
            found=", ".join(map(repr, other[:_NUM_NAMES_SHOWN])) + more,
            remedy="Use the weights of the model that the engine was built from, or build it with the flag REFIT",
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
                    "Two scales that the engine merged must stay equal",
                    where=f"{where}: scales {first!r} and {name!r}, for {comparison.layer!r}",
                    found=f"{_shown(expected)} and {_shown(value)}",
                    allowed=f"equal values: the pass {comparison.pass_name!r} compared them when the engine was built",
                    remedy="Set both to the same value, or build an engine from the new weights",
                )


def _constant(network: Network, name: str) -> Array | None:
    """The values of a constant by the name of its tensor; None where the user's network has none of this name."""
    tensor = network.find_tensor(name)
    producer = tensor.producer if tensor is not None else None
    return producer.weights.reshape(-1) if isinstance(producer, Constant) else None


def _shown(values: Array) -> str:
    return f"{values.item():.9g}" if values.size == 1 else f"{values.size} values from {values.flat[0]:.9g}"


_NUM_LAYERS_SHOWN = 5


def require_same(plan: Plan, network: Network, kernels: Sequence[Kernel]) -> None:
    """Refuse a network that differs from a plan's in more than the contents of arrays and the ranges of tensors.

    Args:
        plan: of the engine.
        network: before weights are packed.
        kernels: of the plan's operations: the parameters that they pack are no longer in the plan's network.

    Raises:
        BuildError: names the first layers that differ.
    """
    dropped = {
        (layer, parameter)
        for operation, kernel in zip(plan.operations, kernels, strict=True)
        for layer in operation.layers
        for parameter in kernel.packed_parameters
    }
    before, after = _skeleton(plan.network, dropped), _skeleton(network, dropped)
    differing = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    if differing or list(before) != list(after):
        order = {name: index for index, name in enumerate([*before, *after])}
        shown = sorted(differing or list(before), key=order.__getitem__)[:_NUM_LAYERS_SHOWN]
        more = f" and {len(differing) - len(shown)} more" if len(differing) > len(shown) else ""
        differences = "; ".join(_difference(name, before, after) for name in shown)
        raise built_otherwise(f"engine {plan.network.name!r}", differences + more)


def built_otherwise(where: str, found: str) -> BuildError:
    """The error of weights with which the builder would decide otherwise."""
    return BuildError(
        "These weights would lead to a different engine, so a refit is not possible",
        where=where,
        found=found,
        remedy="Build an engine from the new weights",
    )


def _difference(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if name not in before or name not in after:
        return f"{name!r} is {'new' if name in after else 'gone'}"
    return f"{name!r} would differ"


def _skeleton(network: Network, dropped: Collection[tuple[str, str]]) -> dict[str, Any]:
    """What stands of each layer, and of the borders, but for the contents of arrays and the ranges of tensors.

    Args:
        network: is not changed.
        dropped: (layer name, parameter) of what counts as not there.
    """
    data, arrays = network_to_dict(network)
    plain = _without_contents(data, arrays)
    for layer in plain["layers"]:
        left_out = {name for name in layer["parameters"] if (layer["name"], name) in dropped}
        layer["parameters"].update(dict.fromkeys(left_out))
    borders = {"the network's inputs": plain["inputs"], "the network's outputs": plain["outputs"]}
    return {**{layer["name"]: layer for layer in plain["layers"]}, **borders}


def _without_contents(data: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(data, dict):
        if data.keys() == {"array"}:
            array = arrays[data["array"]]
            return array.dtype.name, array.shape
        return {key: _without_contents(item, arrays) for key, item in data.items() if key != "dynamic_range"}
    return [_without_contents(item, arrays) for item in data] if isinstance(data, list) else data
