"""Roles and names of weights, and which weights a refit may replace.

The role is TensorRT's `WeightsRole`. TensorRT identifies weights by the address, type and number of their values: a
name applies to every place in the network that uses the same values. dryfit does the same.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Graph, Layer, with_bodies
from dryfit.network.tensor import Array


class WeightsRole(enum.IntEnum):
    """Role of an array in its layer; TensorRT's names and numbers."""

    KERNEL = 0
    BIAS = 1
    SHIFT = 2
    SCALE = 3
    CONSTANT = 4
    ANY = 5


PARAMETERS = {
    WeightsRole.KERNEL: "kernel",
    WeightsRole.BIAS: "bias",
    WeightsRole.SHIFT: "shift",
    WeightsRole.SCALE: "scale",
    WeightsRole.CONSTANT: "weights",
}
"""Role to the layer parameter that stores it. As in TensorRT, the power of a scale layer has no role."""


def weights_of(layer: Layer) -> Iterator[tuple[WeightsRole, np.ndarray[Any, Any]]]:
    """Return the weights of a layer by role; empty if the layer's weights are inputs."""
    names = {field.name for field in layer.parameters()}
    for role, name in PARAMETERS.items():
        array = getattr(layer, name) if name in names else None
        if isinstance(array, np.ndarray) and array.size:
            yield role, array


def set_weights(layer: Layer, role: WeightsRole, array: np.ndarray[Any, Any]) -> None:
    """Replace the weights of a layer in an existing role, with the extents that the layer has there.

    An array with these extents is used without a copy, so that several layers can share it.
    """
    name = PARAMETERS[role]
    shape = getattr(layer, name).shape
    setattr(layer, name, array if array.shape == shape else array.reshape(shape))


_Address = tuple[int, str, int, tuple[int, ...]]


@frozen(eq=False)
class NamedWeights:
    """Weights of a network: the same values in every place that uses them.

    Attributes:
        name: the name that was set, or `<layer> <ROLE>` of the first place.
        places: the layers and roles that use the values.
        values: the values with the extents of the first place; other places may have other extents.
    """

    name: str
    places: Sequence[tuple[Layer, WeightsRole]]
    values: Array

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return DataType.from_numpy(self.values.dtype)


class WeightsNames:
    """The part of a network that finds weights by name."""

    layers: list[Layer]
    name: str

    def __init__(self) -> None:
        self._names_of_weights: dict[_Address, tuple[str, Array]] = {}
        self._refittable: set[str] = set()

    def set_weights_name(self, weights: Array, name: str) -> bool:
        """Name weights in every place where the network uses them now; an empty name removes it. Returns True.

        The ONNX importer names weights after their initializers.

        Raises:
            NetworkError: The network does not contain these weights, or other weights have the name.
        """
        self.set_weights_names({name: weights} if name else {})
        if not name:
            self._names_of_weights.pop(address_of(weights), None)
        elif address_of(weights) not in self._names_of_weights:
            raise NetworkError(
                "The network has no such weights",
                where=f"network {self.name!r}",
                found=f"{weights.dtype} {weights.shape}",
                remedy="Add them to a layer first, and pass the same array here, not a copy",
            )
        return True

    def set_weights_names(self, weights: Mapping[str, Array]) -> None:
        """Name many weights in one pass. An array that the network does not contain is skipped.

        Raises:
            NetworkError: Other weights of the network have one of the names.
        """
        if not weights:
            return
        present = {address_of(array): array for layer in self.layers for _, array in weights_of(layer)}
        taken = {name: address for address, (name, _) in self._names_of_weights.items() if address in present}
        for name, array in weights.items():
            address = address_of(array)
            if address not in present:
                continue
            if taken.get(name, address) != address:
                raise NetworkError(
                    "Names of weights must be unique",
                    where=f"network {self.name!r}",
                    found=name,
                    remedy="Choose another name",
                )
            # The array is kept, so that its address cannot become another's.
            self._names_of_weights[address] = (name, present[address])

    def copy_weights_names(self, source: WeightsNames) -> None:
        """Name weights, and mark them as refittable, as another network of the same arrays does."""
        self._names_of_weights = dict(source._names_of_weights)
        self._refittable = set(source._refittable)

    def named_weights(self) -> Sequence[NamedWeights]:
        """Return all weights of the network, in layer order, each array once, under unique names."""
        places: dict[_Address, list[tuple[Layer, WeightsRole]]] = defaultdict(list)
        arrays: dict[_Address, Array] = {}
        for layer in self.layers:
            for role, array in weights_of(layer):
                places[address_of(array)].append((layer, role))
                arrays.setdefault(address_of(array), array)
        taken = {name for address, (name, _) in self._names_of_weights.items() if address in arrays}
        found = []
        for address, array in arrays.items():
            name = self._names_of_weights[address][0] if address in self._names_of_weights else ""
            if not name:
                layer, role = places[address][0]
                name = _free_name(f"{layer.name} {role.name}", taken)
                taken.add(name)
            found.append(NamedWeights(name, places[address], array))
        return found

    def mark_weights_refittable(self, name: str) -> bool:
        """Mark weights as refittable in an engine built with `REFIT_INDIVIDUAL`. Returns True.

        Raises:
            UnknownNameError: The network has no weights with this name.
        """
        self._require_weights(name)
        self._refittable.add(name)
        return True

    def unmark_weights_refittable(self, name: str) -> bool:
        """Undo `mark_weights_refittable`. Returns True.

        Raises:
            UnknownNameError: The network has no weights with this name.
        """
        self._require_weights(name)
        self._refittable.discard(name)
        return True

    def are_weights_marked_refittable(self, name: str) -> bool:
        """Return whether the weights with this name are marked as refittable."""
        return name in self._refittable

    def _require_weights(self, name: str) -> None:
        known = {one.name for one in self.named_weights()}
        if name not in known:
            raise UnknownNameError("weights", name, known, where=f"network {self.name!r}")


def weights_in_bodies(network: Graph) -> dict[_Address, str]:
    """Return the addresses of weights inside the loops and conditionals of a network, with the layer that has them."""
    return {
        address_of(array): layer.name
        for outer in network.layers
        for body in outer.bodies
        for layer in with_bodies(body.layers)
        for _, array in weights_of(layer)
    }


def address_of(array: Array) -> _Address:
    """Return what tells weights apart: where their values lie, of which type they are, how many, and in which order.

    The order is () where it is row-major: then the extents do not matter.
    """
    order = () if array.flags.c_contiguous else (*array.shape, *array.strides)
    return array.__array_interface__["data"][0], array.dtype.name, array.size, order


def _free_name(name: str, taken: set[str]) -> str:
    candidate, number = name, 1
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
