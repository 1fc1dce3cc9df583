"""Networks without their weights: shapes can be inferred, but nothing can be run.

Constants that determine shapes keep their values; all others are replaced by stand-ins.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dryfit.engine.plan import Plan
from dryfit.engine.refit_record import is_weights_type
from dryfit.errors import DryfitError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.packed_elements import stand_in
from dryfit.network.tensor import Array, TensorSpec
from dryfit.network.weights_role import WeightsRole, set_weights, weights_of
from dryfit.reference.inference import infer_with_values

_ByLayer = tuple[str, WeightsRole]


def exchangeable_weights(network: Network) -> set[_ByLayer]:
    """Return (layer name, role) of all weights whose values do not determine a shape."""
    deciding = _shape_constants(network)
    return {
        (layer.name, role)
        for layer in network.layers
        if layer.name not in deciding
        for role, array in weights_of(layer)
        if _may_change(layer, array)
    }


def without_weights(network: Network, weights: Iterable[_ByLayer]) -> Network:
    """Return a copy of a network with stand-ins for some weights.

    Args:
        network: network to copy; it is not modified.
        weights: (layer name, role) of the weights to omit, from `exchangeable_weights`.
    """
    copy = copy_network(network)
    left_out = set(weights)
    for layer in copy.layers:
        for role, array in list(weights_of(layer)):
            if (layer.name, role) in left_out:
                set_weights(layer, role, stand_in(DataType.from_numpy(array.dtype), array.shape))
    copy.refresh_shapes()
    return copy


def _may_change(layer: Layer, array: Array) -> bool:
    """Return whether an array is a weight by its type, or an integer bias that is dequantized."""
    dtype = DataType.from_numpy(array.dtype)
    readers = {reader.kind for output in layer.outputs for reader, _ in output.consumers}
    return is_weights_type(dtype) or (dtype is DataType.INT32 and readers == {"dequantize"})


def stripped(plan: Plan) -> Plan:
    """Return a plan without its refittable weights and everything derived from them; a refit restores both.

    Args:
        plan: plan of an engine that supports refit.
    """
    if plan.refit is None:
        raise ValueError("only the plan of an engine that can be refitted is stripped")
    places = ((place.layer, place.role) for one in plan.refit.weights for place in one.places)
    return attrs.evolve(
        plan,
        network=without_weights(plan.network, exchangeable_weights(plan.network)),
        operations=[attrs.evolve(operation, weights={}) for operation in plan.operations],
        refit=attrs.evolve(plan.refit, network=without_weights(plan.refit.network, places), is_stripped=True),
    )


def _shape_constants(network: Network) -> set[str]:
    """Return the names of constants that determine a shape."""
    specs: dict[str, TensorSpec] = {tensor.name: tensor.spec for tensor in network.inputs}
    origins: dict[str, frozenset[str]] = {}
    deciding: set[str] = set()
    for layer in network.layers:
        names = [None if tensor is None else tensor.name for tensor in layer.inputs]
        known = frozenset[str]().union(*(origins.get(name or "", frozenset()) for name in names))
        true = [tensor.spec for tensor in layer.outputs]
        if isinstance(layer, Constant) and _may_change(layer, layer.weights):
            found = [TensorSpec(true[0].shape, true[0].dtype, stand_in(true[0].dtype, true[0].shape))]
            known = frozenset({layer.name})
        else:
            try:
                found = infer_with_values(layer, [None if name is None else specs[name] for name in names])
            except DryfitError:
                found = []
        if [(one.shape, one.dtype) for one in found] != [(one.shape, one.dtype) for one in true]:
            deciding |= known
            found, known = true, frozenset()
        for tensor, spec in zip(layer.outputs, found, strict=True):
            specs[tensor.name] = spec
            # Through a tensor whose value is not known, no constant decides on anything.
            if spec.value is not None and known:
                origins[tensor.name] = known
    return deciding
