"""The hooks: every moment at which an installed package can take part. There are eight, and no others.

A package implements those that it needs in one module, marks each with `@dryfit.hookimpl`, and names the module in the
entry-point group `dryfit.hooks`. It may leave out arguments that it does not use. dryfit asks implementations in the
order of distribution and module name, each on its own: one that raises is recorded for `dryfit plugins doctor` and left
out, and never stops what dryfit was doing.

Only `dryfit.plugins.facade` calls these functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import click

    from dryfit.network.layer import Layer
    from dryfit.network.layer_plugin import LayerPlugin
    from dryfit.network.network import Network
    from dryfit.plugins.contributions import (
        BuildObserver,
        GroupClaim,
        OnnxOperator,
        PassContribution,
        PlacementVote,
        RunObserver,
    )
    from dryfit.quantization.quantized_group import QuantizedGroup
    from dryfit.target.target import Target
    from dryfit.target.verdict import Verdict

PROJECT = "dryfit"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

# Discover -------------------------------------------------------------------------------------------------------------


@hookspec
def register_targets() -> Sequence[Target]:
    """Bring devices.

    When: a device is asked for that no entry point of `dryfit.targets` names, or all devices are listed; once.
    Returns: target records; an empty list for none.
    Answers: all. A device that an entry point names is the entry point's; one that two packages return here belongs to
        neither, and both are named.
    Implemented by: packages that make targets by code, such as one for each board of a family.
    """
    raise NotImplementedError


@hookspec
def register_layers() -> Sequence[LayerPlugin | OnnxOperator]:
    """Bring layer plugins, and importers of custom ONNX operators.

    When: a plugin layer or a custom operator is met that no entry point of `dryfit.layers` or `dryfit.importers` names;
    once a process.
    Returns: layer plugins with their own name, version and namespace, and `OnnxOperator` records.
    Answers: all. A name that two packages claim belongs to neither, and both are named.
    Implemented by: packages with layers of their own.
    """
    raise NotImplementedError


@hookspec
def register_commands() -> Sequence[click.Command]:
    """Bring commands of the command line.

    When: `dryfit --help`, or a command that is not dryfit's own is asked for.
    Returns: click commands. One that has the name of dryfit's own, or of another package's, is left out and named.
    Answers: all.
    Implemented by: packages with tools of their own, such as an uploader to a board.
    """
    raise NotImplementedError


# Build ----------------------------------------------------------------------------------------------------------------


@hookspec
def contribute_passes() -> Sequence[PassContribution]:
    """Bring passes for the pipeline that every network goes through before it is placed.

    When: at the start of a build or an assessment.
    Returns: records that say before or after which pass theirs stands.
    Answers: all, in order. A pass whose neighbour does not exist, or whose name is taken, is left out and named.
    Implemented by: packages whose device wants networks in another form.
    """
    raise NotImplementedError


@hookspec
def claim_quantized_group(group: QuantizedGroup) -> GroupClaim | None:
    """Compute a layer together with the dequantizations before it and the quantizations after it.

    When: before placement, once for each quantized group of a network.

    Args:
        group: the layer, with its DequantizeLinear and QuantizeLinear neighbours and their scales; read-only.

    Returns: a claim with the layer that takes the group's place, or None to leave the group as it is.
    Answers: the first claim wins; further plugins are not asked.
    Implemented by: packages with a layer plugin that computes on quantized values.
    """
    raise NotImplementedError


@hookspec
def vote_on_placement(layer: Layer, verdicts: Mapping[str, Verdict]) -> PlacementVote | None:
    """Wish for a device for one layer.

    When: a layer without a device of its own is placed and fallback is allowed.

    Args:
        layer: as it is built; read-only.
        verdicts: device to verdict, for the default device and the fallback device.

    Returns: a vote, or None for no opinion.
    Answers: all; weights are summed for each device that can run the layer.
    Implemented by: packages with a cost model, or with what they know of a board.
    """
    raise NotImplementedError


@hookspec
def observe_build(network: Network, settings: Mapping[str, Any]) -> BuildObserver | None:
    """Follow a build: stages, verdicts, the plan.

    When: a build begins.

    Args:
        network: the user's; read-only.
        settings: the config as plain data.

    Returns: an observer, or None.
    Answers: all; each observer is told of everything.
    Implemented by: packages that keep logs or dashboards.
    """
    raise NotImplementedError


# Run ------------------------------------------------------------------------------------------------------------------


@hookspec
def observe_run(engine: str, devices: Sequence[str]) -> RunObserver | None:
    """Follow the runs of an execution context: times of layers and of the whole, on this machine.

    When: an execution context is created.

    Args:
        engine: name of the engine's network.
        devices: the devices of its segments, sorted.

    Returns: an observer, or None.
    Answers: all; each observer is told of every run of this context.
    Implemented by: packages that keep logs or dashboards.
    """
    raise NotImplementedError
