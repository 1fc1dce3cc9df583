"""Dimensions that come as constant inputs become parameters: a device can judge those, and needs no shape tensor."""

from __future__ import annotations

from dryfit.network.layers.constant import Constant
from dryfit.network.layers.known_values import known_ints
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.pipeline import network_pass


@network_pass("absorb-dimensions")
def absorb_dimensions(network: Network) -> bool:
    """Put the constant dimension inputs of shuffles, slices, resizes and fills into their parameters.

    The constants are left to `remove-dead-layers` where nothing else uses them.
    """
    changed = False
    for layer in network.layers:
        for index, parameter in layer.parameter_inputs.items():
            values = _constant(layer.get_input(index))
            if values is not None:
                setattr(layer, parameter, values)
                layer.set_input(index, None)
                changed = True
    return changed


def _constant(tensor: Tensor | None) -> tuple[int, ...] | None:
    if tensor is None or not isinstance(tensor.producer, Constant):
        return None
    return known_ints(tensor.producer.infer_outputs([])[0])
