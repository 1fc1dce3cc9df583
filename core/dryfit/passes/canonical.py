"""The passes that every network goes through before it is placed on devices, those of plugins at their places.

A network with dynamic shapes is first made for the shapes that it will run with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dryfit.errors import UnknownNameError
from dryfit.network.copying import copy_network
from dryfit.network.network import Network
from dryfit.network.tensor import Shape
from dryfit.passes.claim_quantized_groups import ClaimQuantizedGroups
from dryfit.passes.decompose import DecomposeCompositeLayers
from dryfit.passes.flatten_control_flow import FlattenControlFlow
from dryfit.passes.pipeline import NetworkPass, Pass, Pipeline
from dryfit.passes.quantization.cancel_quantizations import (
    CancelQuantizations,
    FoldQuantizedWeights,
    MergeQuantizations,
)
from dryfit.passes.quantization.move_dequantizes import MoveDequantizes
from dryfit.passes.quantization.move_quantizes import MoveActivations, MoveQuantizes
from dryfit.passes.quantization.moving import Judge, any_device
from dryfit.passes.quantized_operators.form_quantized_operators import FormQuantizedOperators
from dryfit.passes.simplify import (
    absorb_dimensions,
    cast_identities,
    fold_constants,
    remove_dead_layers,
    remove_identities,
)
from dryfit.plugins import facade
from dryfit.reference.inference import checked_input_shapes


def specialise(network: Network, input_shapes: Mapping[str, Shape]) -> Network:
    """A copy with these input shapes; what follows from them is computed once, now. Weights are shared.

    Args:
        network: stays as it is.
        input_shapes: input name to shape; an input that is not named keeps its own, and so may stay dynamic.

    Raises:
        ExecutionError: a shape does not fit the input, or there is no such input.
        NetworkError: a layer's parameters do not fit the shapes.
    """
    shapes = checked_input_shapes(network, input_shapes)
    copy = copy_network(network)
    for tensor in copy.inputs:
        shape = shapes[tensor.name]
        if shape != tensor.shape:
            tensor.shape = shape
            tensor.dimension_names = {axis: name for axis, name in tensor.dimension_names.items() if shape[axis] < 0}
    copy.refresh_shapes()
    fold_constants(copy)
    absorb_dimensions(copy)
    remove_dead_layers(copy)
    copy.refresh_shapes()
    return copy


if TYPE_CHECKING:
    from dryfit.plugins.contributions import PassContribution
    from dryfit.plugins.hook_modules import Owned

    Contributed = Owned[PassContribution]


def insert_contributed(pipeline: Pipeline, contributions: Sequence[Contributed]) -> None:
    """Add passes of plugins, each before or after the one that it names, which may be another plugin's.

    Those that stand on the same side of one pass keep their order. A pass whose name is taken, or whose neighbour is
    not there, is left out and recorded as a failure of its plugin.
    """
    waiting, left_out = _by_name(pipeline, contributions)
    while ready := [one for one in waiting if _neighbour(one) in pipeline.names]:
        for one in ready:
            if one.value.before is not None:
                pipeline.insert_before(one.value.before, _network_pass(one))
        # What is inserted after a pass stands closest to it, so that the first one comes last.
        for one in reversed(ready):
            if one.value.after is not None:
                pipeline.insert_after(one.value.after, _network_pass(one))
        waiting = [one for one in waiting if one.value.name not in pipeline.names]
    left_out += [(one, _without_place(one, waiting, pipeline)) for one in waiting]
    for owner in dict.fromkeys(one.owner for one, _ in left_out):
        of_owner = [(one, why) for one, why in left_out if one.owner == owner]
        facade.fail(of_owner[0][0], "; ".join(f"pass {one.value.name!r}: {why}" for one, why in of_owner))


def _by_name(
    pipeline: Pipeline, contributions: Sequence[Contributed]
) -> tuple[list[Contributed], list[tuple[Contributed, str]]]:
    """The passes whose names nobody before them has, and the others with the reason why they are left out."""
    owners = dict.fromkeys(pipeline.names, "dryfit")
    free, taken = [], []
    for one in contributions:
        name = one.value.name
        if name in owners:
            taken.append((one, f"{owners[name]} has a pass of this name"))
        else:
            owners[name] = one.plugin
            free.append(one)
    return free, taken


def _without_place(one: Contributed, waiting: Sequence[Contributed], pipeline: Pipeline) -> str:
    neighbour = _neighbour(one)
    if any(other.value.name == neighbour for other in waiting):
        return f"its neighbour {neighbour!r} has no place either"
    return str(UnknownNameError("pass", neighbour, pipeline.names))


def _neighbour(one: Contributed) -> str:
    return one.value.before or one.value.after or ""


def _network_pass(one: Contributed) -> NetworkPass:
    return NetworkPass(one.value.name, one.value.function, one.plugin)


def own_passes(judge: Judge = any_device) -> list[Pass]:
    """The passes of dryfit itself, in order. Their names are part of the plugin interface.

    Args:
        judge: says which layers devices compute on quantized codes.
    """
    return [
        FlattenControlFlow(),
        DecomposeCompositeLayers(),
        FormQuantizedOperators(),
        fold_constants,
        absorb_dimensions,
        cast_identities,
        remove_identities,
        *quantization_passes(judge),
        ClaimQuantizedGroups(),
        remove_dead_layers,
    ]


def quantization_passes(judge: Judge = any_device) -> list[Pass]:
    """The passes over quantizations and dequantizations, each in time linear in the number of layers.

    What does the same is one before it moves. Dequantizations move first, so that quantizations meet them where they
    cancel. Weights are last: by then everything between them and the layer that takes them can be computed.

    Args:
        judge: says which layers devices compute on codes.
    """
    return [
        MergeQuantizations(),
        MoveDequantizes(judge),
        MoveActivations(),
        MoveQuantizes(judge),
        CancelQuantizations(),
        FoldQuantizedWeights(),
    ]


def canonical_pipeline(judge: Judge = any_device) -> Pipeline:
    """A new pipeline of `own_passes` and those of installed plugins, to be extended and run.

    Args:
        judge: says which layers devices compute on quantized codes.
    """
    pipeline = Pipeline(own_passes(judge))
    insert_contributed(pipeline, facade.contributed_passes())
    return pipeline
