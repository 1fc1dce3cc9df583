"""What a build keeps for later refits, as the flags of the config say.

| flag | an engine that takes |
|---|---|
| REFIT | other values for all weights |
| REFIT_INDIVIDUAL | other values for the weights that the network marks |
| REFIT_IDENTICAL | the values that it was built with, and no others |
| STRIP_PLAN | as REFIT_IDENTICAL, or as the flag beside it, and has no weights before it is given some |

Source: TensorRT 10 `BuilderFlag`; that STRIP_PLAN alone stands for REFIT_IDENTICAL is what trtexec does.
"""

from __future__ import annotations

import attrs
import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import REFIT_FLAGS, BuilderFlag
from dryfit.builder.design import Design
from dryfit.engine.plan import Plan
from dryfit.engine.refit_record import RefitRecord, RefittableWeights, ScaleComparison, WeightsPlace, digest
from dryfit.engine.stripping import exchangeable_weights, stripped
from dryfit.errors import ConfigError
from dryfit.network.control_flow import collected
from dryfit.network.copying import copy_network
from dryfit.network.network import Network
from dryfit.network.weights_role import address_of, set_weights, weights_in_bodies
from dryfit.quantization.rewrites import equal_scales


def check_refit_flags(config: BuilderConfig, network: Network) -> None:
    """Refuse flags for refits that contradict each other, before anything is built.

    Raises:
        ConfigError: REFIT_INDIVIDUAL stands beside another one, or no weights are marked for it.
    """
    if not config.get_flag(BuilderFlag.REFIT_INDIVIDUAL):
        return
    beside = [flag.name for flag in (BuilderFlag.REFIT, BuilderFlag.REFIT_IDENTICAL) if config.get_flag(flag)]
    if beside:
        raise ConfigError(
            "REFIT_INDIVIDUAL must not be combined with REFIT or REFIT_IDENTICAL",
            found=", ".join(beside),
            remedy="Clear REFIT_INDIVIDUAL, or the others",
            source="TensorRT 10, BuilderFlag",
        )
    if not any(network.are_weights_marked_refittable(one.name) for one in network.named_weights()):
        raise ConfigError(
            "REFIT_INDIVIDUAL requires weights that are marked as refittable",
            where=f"network {network.name!r}",
            remedy="Call network.mark_weights_refittable(name) for those that may be exchanged",
        )


def prepared_for_refit(plan: Plan, network: Network, config: BuilderConfig, design: Design) -> Plan:
    """The plan as it was built, or with what a refit needs, or without its weights, as the flags say.

    Args:
        plan: whole.
        network: the user's; what is kept of it is a copy, its weights too.
        config: flags.
        design: has the scales, and which of them were compared.
    """
    if not any(config.get_flag(flag) for flag in REFIT_FLAGS):
        return plan
    is_identical = not (config.get_flag(BuilderFlag.REFIT) or config.get_flag(BuilderFlag.REFIT_INDIVIDUAL))
    network = collected(network)
    kept = _copied(network)
    design.network_scales.table.apply_to(kept)
    record = RefitRecord(
        network=kept,
        weights=_refittable(network, is_identical, config.get_flag(BuilderFlag.REFIT_INDIVIDUAL)),
        comparisons=[
            ScaleComparison(step.pass_name, step.layer, tuple(step.compared_scales))
            for step in design.canonical.found.rewrites
            if len(step.compared_scales) > 1
        ],
        equal_scales=equal_scales(network),
        is_identical=is_identical,
        is_stripped=False,
    )
    whole = attrs.evolve(plan, refit=record)
    return stripped(whole) if config.get_flag(BuilderFlag.STRIP_PLAN) else whole


def _refittable(network: Network, is_identical: bool, is_individual: bool) -> list[RefittableWeights]:
    exchangeable, inside = exchangeable_weights(network), weights_in_bodies(network)
    return [
        RefittableWeights(
            name=one.name,
            dtype=one.dtype,
            shape=one.values.shape,
            places=tuple(WeightsPlace(layer.name, role) for layer, role in one.places),
            sha256=digest(one.values) if is_identical else "",
        )
        for one in network.named_weights()
        # Bodies keep their weights, so that weights which a body shares cannot change outside of it either.
        if all((layer.name, role) in exchangeable for layer, role in one.places)
        and address_of(one.values) not in inside
        and (not is_individual or network.are_weights_marked_refittable(one.name))
    ]


def _copied(network: Network) -> Network:
    """A copy with weights of its own: the user may go on training with the arrays of the network."""
    named = network.named_weights()
    copy = copy_network(network)
    layers = {layer.name: layer for layer in copy.layers}
    for one in named:
        values = np.array(one.values, order="C")
        for layer, role in one.places:
            set_weights(layers[layer.name], role, values)
    return copy
