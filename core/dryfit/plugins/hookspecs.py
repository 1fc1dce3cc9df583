"""The hooks: the eight points at which an installed package can take part.

A package implements the hooks that it needs in one module, marks each with `@dryfit.hookimpl`, and names the module in
the entry-point group `dryfit.hooks`. An implementation may omit arguments that it does not use. dryfit calls the
implementations in the order of distribution and module name, each separately: one that raises is recorded for
`dryfit plugins doctor` and skipped, and never stops what dryfit was doing.

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
    """Add devices.

    When: a device is requested that no entry point of `dryfit.targets` names, or all devices are listed; once.
    Returns: target records; an empty list for none.
    Answers: all. An entry point takes precedence for the device that it names. A device that two packages return here
        is rejected, with an error that names both packages.
    Implemented by: packages that create targets in code, such as one target per board of a family.
    """
    raise NotImplementedError


@hookspec
def register_layers() -> Sequence[LayerPlugin | OnnxOperator]:
    """Add layer plugins, and importers of custom ONNX operators.

    When: a network has a plugin layer or a custom operator that no entry point of `dryfit.layers` or
    `dryfit.onnx_operators` names; once per process.
    Returns: layer plugins with their own name, version and namespace, and `OnnxOperator` records.
    Answers: all. A name that two packages claim is rejected, with an error that names both packages.
    Implemented by: packages with custom layers.
    """
    raise NotImplementedError


@hookspec
def register_commands() -> Sequence[click.Command]:
    """Add commands to the command line.

    When: `dryfit --help` runs, or a command is requested that is not built into dryfit.
    Returns: click commands. A command with the name of a built-in command, or of another package's command, is skipped
        and reported.
    Answers: all.
    Implemented by: packages with command-line tools, such as an uploader to a board.
    """
    raise NotImplementedError


# Build ----------------------------------------------------------------------------------------------------------------


@hookspec
def contribute_passes() -> Sequence[PassContribution]:
    """Add passes to the pipeline that every network goes through before placement.

    When: at the start of a build or an assessment.
    Returns: records that name the pass before or after which the contributed pass runs.
    Answers: all, in order. A pass whose neighbor does not exist, or whose name is taken, is skipped and reported.
    Implemented by: packages whose device needs networks in another form.
    """
    raise NotImplementedError


@hookspec
def claim_quantized_group(group: QuantizedGroup) -> GroupClaim | None:
    """Compute a layer together with the preceding dequantizations and the following quantizations.

    When: before placement, once per quantized group of a network.

    Args:
        group: the layer, with its DequantizeLinear and QuantizeLinear neighbors and their scales; read-only.

    Returns: a claim with the layer that replaces the group, or None to leave the group unchanged.
    Answers: the first claim wins; later plugins are not called.
    Implemented by: packages with a layer plugin that computes on quantized values.
    """
    raise NotImplementedError


@hookspec
def vote_on_placement(layer: Layer, verdicts: Mapping[str, Verdict]) -> PlacementVote | None:
    """Vote for the device of one layer.

    When: a layer without an explicit device is placed and fallback is allowed.

    Args:
        layer: the layer as it will be built; read-only.
        verdicts: verdict by device name, for the default device and the fallback device.

    Returns: a vote, or None for no opinion.
    Answers: all; weights are summed per device that can run the layer.
    Implemented by: packages with a cost model, or with knowledge of a board.
    """
    raise NotImplementedError


@hookspec
def observe_build(network: Network, settings: Mapping[str, Any]) -> BuildObserver | None:
    """Observe a build: its stages, verdicts and plan.

    When: a build starts.

    Args:
        network: the user's network; read-only.
        settings: the builder config as plain data.

    Returns: an observer, or None.
    Answers: all; every observer receives every event.
    Implemented by: packages that keep logs or dashboards.
    """
    raise NotImplementedError


# Run ------------------------------------------------------------------------------------------------------------------


@hookspec
def observe_run(engine: str, devices: Sequence[str]) -> RunObserver | None:
    """Observe the runs of an execution context: per-layer and total times, measured on this machine.

    When: an execution context is created.

    Args:
        engine: name of the engine's network.
        devices: the devices of its segments, sorted.

    Returns: an observer, or None.
    Answers: all; every observer receives every run of this context.
    Implemented by: packages that keep logs or dashboards.
    """
    raise NotImplementedError
