"""Quantized groups that a plugin computes as a whole become one layer.

A plugin layer whose layer plugin takes quantized tensors absorbs the Q/DQ around it itself; every other group is shown
to the plugins, and the first claim wins. Nothing is claimed by dryfit: without plugins a group stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit.errors import DryfitError
from dryfit.network.copying import copy_layer
from dryfit.network.layer import Layer
from dryfit.network.layers.plugin import Plugin
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.passes.replace_group import replace_group
from dryfit.plugins import facade
from dryfit.quantization.quantized_group import QuantizedGroup, find_quantized_group

if TYPE_CHECKING:
    from dryfit.plugins.contributions import GroupClaim
    from dryfit.plugins.facade import Owned

logger = logging.getLogger("dryfit.passes")


class GroupClaims:
    """The pass, and what became of the groups.

    Attributes:
        causes: name of the layer that took a group's place to who claimed it, and why.
        warnings: plugin layers that take quantized tensors, but not these.
    """

    def __init__(self) -> None:
        self.causes: dict[str, str] = {}
        self.warnings: list[str] = []

    def __call__(self, network: Network) -> bool:
        """Replace every quantized group that is claimed; returns whether there was one."""
        network.refresh_shapes()
        done = len(self.causes)
        for layer in list(network.layers):
            group = find_quantized_group(layer)
            if group is None:
                continue
            if isinstance(layer, Plugin) and layer.implementation().takes_quantized:
                self._absorb(network, group, layer)
            elif claim := facade.claim(group):
                self._accept(network, group, claim)
        network.refresh_shapes()  # and with them the order: the new layers stand at the end
        return len(self.causes) > done

    def _absorb(self, network: Network, group: QuantizedGroup, layer: Plugin) -> None:
        """Let a plugin layer read and give quantized tensors, and tell it their scales."""
        absorbing = copy_layer(layer)
        scales = {"input_scales": tuple(group.input_scales), "output_scales": tuple(group.output_scales)}
        absorbing.fields = {**layer.fields, **scales}
        who = "the layer plugin " + "::".join(filter(None, (layer.plugin_namespace, layer.plugin_name)))
        problem = _misfit(absorbing, group)
        if problem:
            self.warnings.append(f"{layer.where}: {who} takes quantized tensors, but not these: {problem}")
        else:
            self._replace(network, group, absorbing, f"{who} takes quantized tensors")

    def _accept(self, network: Network, group: QuantizedGroup, claim: Owned[GroupClaim]) -> None:
        """Let a claim's layer take the group's place, or record why it cannot."""
        problem = _misfit(claim.value.layer, group)
        if problem:
            facade.fail(claim, f"the claim of the quantized group of {group.layer.where} does not fit: {problem}")
        else:
            self._replace(network, group, claim.value.layer, f"{claim.plugin} claimed it: {claim.value.reason}")

    def _replace(self, network: Network, group: QuantizedGroup, layer: Layer, reason: str) -> None:
        absorbed = ", ".join(repr(one.name) for one in replace_group(network, group, layer))
        self.causes[layer.name] = f"{reason} (in place of {absorbed})"
        logger.info("%s: %s", layer.name, self.causes[layer.name])


def _misfit(layer: Layer, group: QuantizedGroup) -> str:
    """Why a layer cannot take a group's place; "" where it can."""
    if not isinstance(layer, Layer):
        return f"it brings {type(layer).__name__}, and a layer is needed"
    if layer.network is not None:
        return f"layer {layer.name!r} is in a network already"
    try:
        specs = layer.infer_outputs([None if tensor is None else tensor.spec for tensor in group.inputs])
    except DryfitError as error:
        return str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001  a layer of a plugin is foreign code, which may raise anything
        return f"{type(error).__name__}: {error}"
    found, needed = _described(specs), _described([tensor.spec for tensor in group.outputs])
    return "" if found == needed else f"it gives {found}, and {needed} is needed"


def _described(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.dtype.name} {spec.shape}" for spec in specs)
