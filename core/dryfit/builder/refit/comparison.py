"""Whether a build that is repeated with other weights comes out as the engine: all but the contents of arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dryfit.engine.plan import Plan
from dryfit.errors import BuildError
from dryfit.network.network import Network
from dryfit.network.serialization import network_to_dict
from dryfit.target.kernels import Array, Kernel

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
        "With these weights the engine would be built otherwise, so it cannot be refitted with them",
        where=where,
        found=found,
        remedy="Build an engine from the new weights",
    )


def _difference(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if name not in before or name not in after:
        return f"{name!r} is {'new' if name in after else 'gone'}"
    return f"{name!r} would be another"


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
