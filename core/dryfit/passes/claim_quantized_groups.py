"""Quantized groups that a plugin computes as a whole become one layer.

A plugin layer whose layer plugin takes quantized tensors absorbs the Q/DQ around it itself; every other group is shown
to the plugins, and the first claim wins. Nothing is claimed by dryfit: without plugins a group stays as it is. All
layers take the places of their groups in one sweep over the network.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_layer, copy_tensor_notes, note_origin
from dryfit.network.layers.plugin import Plugin
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.passes.findings import PassFindings, ReplacedGroups
from dryfit.plugins import facade
from dryfit.quantization.quantized_group import QuantizedGroup, find_quantized_group, missing_for_group

if TYPE_CHECKING:
    from dryfit.plugins.contributions import GroupClaim
    from dryfit.plugins.hook_modules import Owned


def replace_groups(network: Network, replacements: Sequence[tuple[QuantizedGroup, Layer]]) -> list[list[Layer]]:
    """Let layers read the quantized inputs of groups and give their quantized outputs.

    Each takes over the name of its group's layer, so that what the user said of that one still holds, the names of the
    quantized outputs, and the ONNX nodes of all that went. A dequantization that others read stays. The order of layers
    is right again when shapes are refreshed. Takes time linear in layers, however many groups there are.

    Args:
        network: of the groups.
        replacements: groups of the network as it is now, in its order, and for each a layer that is in no network and
            whose outputs are like the group's.

    Returns:
        For each group the layers that went, the group's own first.
    """
    # They are read before anything changes, so that nothing is inferred again for each group.
    specs = [[tensor.spec for tensor in group.outputs] for group, _ in replacements]
    added = [_put_in_place(network, *one, given) for one, given in zip(replacements, specs, strict=True)]
    gone = [_members(group) for group, _ in replacements]
    for new, old in zip(added, gone, strict=True):
        note_origin(new, *old)
    network.remove_layers([layer for members in gone for layer in members])
    # Names are free only now.
    for (group, _), new in zip(replacements, added, strict=True):
        network.rename_layer(new, group.layer.name)
        for output, quantized in zip(new.outputs, group.outputs, strict=True):
            network.rename_tensor(output, quantized.name)
    return gone


def _put_in_place(network: Network, group: QuantizedGroup, layer: Layer, specs: Sequence[TensorSpec]) -> Layer:
    """Add a layer behind a group's inputs, and let it give what the group gives."""
    added = network.add_layer(layer, group.inputs, specs)
    for output, quantized, real in zip(added.outputs, group.outputs, group.real_outputs, strict=True):
        copy_tensor_notes(quantized, output)
        if not group.quantizes:
            network.replace_uses(real, output)
            continue
        for quantize, _ in real.consumers:
            network.replace_uses(quantize.outputs[0], output)
    return added


def _members(group: QuantizedGroup) -> list[Layer]:
    """The layers that go with a group: all but dequantizations that others read."""
    quantizes = [quantize for real in group.real_outputs for quantize, _ in real.consumers if group.quantizes]
    activation = [] if group.activation is None else [group.activation]
    return [group.layer, *activation, *quantizes, *group.private_dequantizes]


logger = logging.getLogger("dryfit.passes")


@frozen
class _Accepted:
    """A group that a layer is to take the place of, and why."""

    group: QuantizedGroup
    layer: Layer
    reason: str


class ClaimQuantizedGroups:
    """The pass."""

    name = "claim-quantized-groups"
    plugin = ""

    def run(self, network: Network, before: PassFindings) -> PassFindings:  # noqa: ARG002  as `Pass` has it
        """Replace every quantized group that is claimed; returns which were, and plugin layers that get none."""
        network.refresh_shapes()
        accepted: list[_Accepted] = []
        kept: list[ReplacedGroups] = []
        for layer in network.layers:
            group = find_quantized_group(layer)
            found: _Accepted | ReplacedGroups | None = None
            if isinstance(layer, Plugin) and takes_quantized(layer):
                found = _absorbing(layer, group)
            elif group is not None and (claim := facade.claim(group)):
                found = _claimed(group, claim, [one.layer for one in accepted])
            if isinstance(found, _Accepted):
                accepted.append(found)
            elif found is not None:
                kept.append(found)
        gone = replace_groups(network, [(one.group, one.layer) for one in accepted])
        network.refresh_shapes()  # and with them the order: the new layers stand at the end
        causes, taken = {}, {}
        for one, members in zip(accepted, gone, strict=True):
            name, absorbed = one.group.layer.name, ", ".join(repr(member.name) for member in members)
            causes[name] = f"{one.reason} (in place of {absorbed})"
            taken.update(dict.fromkeys((member.name for member in members), name))
            logger.info("%s: %s", name, causes[name])
        warnings = [text for one in kept for text in one.warnings]
        problems = [text for one in kept for text in one.problems]
        claims = ReplacedGroups(causes, taken, warnings=warnings, problems=problems)
        return PassFindings(bool(accepted), claims=claims)


def _absorbing(layer: Plugin, group: QuantizedGroup | None) -> _Accepted | ReplacedGroups:
    """The layer that stands for a plugin layer and the Q/DQ around it, and knows their scales; or why there is none."""
    who = "the layer plugin " + "::".join(filter(None, (layer.plugin_namespace, layer.plugin_name)))
    if group is None:
        return _kept(layer, who, "; ".join(missing_for_group(layer)))
    absorbing = copy_layer(layer)
    scales = {"input_scales": tuple(group.input_scales), "output_scales": tuple(group.output_scales)}
    absorbing.fields = {**layer.fields, **scales}
    problem = _other_types(layer, group.outputs) or _misfit(absorbing, group)
    return _kept(layer, who, problem) if problem else _Accepted(group, absorbing, f"{who} takes quantized tensors")


def _kept(layer: Plugin, who: str, problem: str) -> ReplacedGroups:
    """Why a plugin layer does not absorb the Q/DQ around it, if there are any."""
    wished = _other_types(layer, layer.outputs)
    if wished:
        return ReplacedGroups(problems=[f"{layer.where}: {wished}, and cannot be: {problem}"])
    if _has_quantized_neighbours(layer):
        return ReplacedGroups(warnings=[f"{layer.where}: {who} takes quantized tensors, but not these: {problem}"])
    return ReplacedGroups()


def _claimed(group: QuantizedGroup, claim: Owned[GroupClaim], taken: Sequence[Layer]) -> _Accepted | None:
    """The layer that a claim brings, and the reason; None where it does not fit, which is recorded."""
    layer = claim.value.layer
    problem = "it brings a layer that it brought before" if any(layer is one for one in taken) else ""
    problem = problem or _misfit(layer, group)
    if problem:
        facade.fail(claim, f"the claim of the quantized group of {group.layer.where} does not fit: {problem}")
        return None
    return _Accepted(group, layer, f"{claim.plugin} claimed it: {claim.value.reason}")


def takes_quantized(layer: Plugin) -> bool:
    """Whether a plugin layer is to compute on quantized values: its plugin says so, or the type set of an output."""
    return layer.implementation().takes_quantized or any(dtype.is_quantized for dtype in layer.output_types.values())


def _has_quantized_neighbours(layer: Layer) -> bool:
    """Whether anything that a layer reads is dequantized, or anything that it gives is quantized."""
    before = [tensor.producer for tensor in layer.connected_inputs if tensor.producer is not None]
    behind = [reader for tensor in layer.outputs for reader, _ in tensor.consumers]
    return any(one.kind == "dequantize" for one in before) or any(one.kind == "quantize" for one in behind)


def _other_types(layer: Plugin, outputs: Sequence[Tensor]) -> str:
    """Which outputs of a plugin layer were set to quantized types that these do not have; "" for none."""
    return ", ".join(
        f"its output {index} was set to {dtype.name}, and is {outputs[index].dtype.name}"
        for index, dtype in sorted(layer.output_types.items())
        if dtype.is_quantized and index < len(outputs) and outputs[index].dtype is not dtype
    )


def _misfit(layer: Layer, group: QuantizedGroup) -> str:
    """Why a layer cannot take a group's place; "" where it can."""
    if not isinstance(layer, Layer):
        return f"it returned {type(layer).__name__}, and a layer is required"
    if layer.network is not None:
        return f"layer {layer.name!r} is in a network already"
    try:
        specs = layer.infer_outputs([None if tensor is None else tensor.spec for tensor in group.inputs])
    except DryfitError as error:
        return str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001  a layer of a plugin is foreign code, which may raise anything
        return f"{type(error).__name__}: {error}"
    found, needed = _described(specs), _described([tensor.spec for tensor in group.outputs])
    return "" if found == needed else f"it returns {found}, and {needed} is required"


def _described(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.dtype.name} {spec.shape}" for spec in specs)
