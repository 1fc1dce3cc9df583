"""Examine one plugin in a separate process: `python -m` this module `GROUP NAME DISTRIBUTION [COMMAND ...]`.

A plugin that hangs or crashes the interpreter cannot affect anything else. The answer is one marked line of JSON on
stdout, so that output printed by the plugin does not interfere.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Collection
from importlib.metadata import EntryPoint

import attrs

from dryfit.answers.plugins import MARK
from dryfit.errors import PluginError
from dryfit.plugins import facade, registry
from dryfit.plugins.calibrators import calibrator
from dryfit.plugins.discovery import (
    CALIBRATORS,
    HOOKS,
    IMPORTERS,
    LAYERS,
    ONNX_OPERATORS,
    OVERLAYS,
    PASSES,
    TARGETS,
    installed_entry_points,
    owner_of,
)
from dryfit.plugins.failures import PluginFailure
from dryfit.plugins.layer_plugins import find_layer_plugin, layer_plugin_titles
from dryfit.plugins.model_importers import model_importers
from dryfit.plugins.overlays import installed_overlays
from dryfit.target.target import Target


def examine(group: str, name: str, distribution: str, *commands: str) -> list[PluginFailure]:
    """Return the problems of a plugin, examined with only dryfit's own plugins active.

    Args:
        group: entry point group of the plugin.
        name: entry point name of the plugin.
        distribution: package of the plugin.
        commands: names of dryfit's own commands.
    """

    def is_asked(entry: EntryPoint) -> bool:
        owner = owner_of(entry)
        return (owner.group, owner.name, owner.distribution) == (group, name, distribution)

    def read(of_group: str) -> list[EntryPoint]:
        found = installed_entry_points(of_group)
        return [entry for entry in found if is_asked(entry) or not owner_of(entry).is_foreign]

    registry.begin_again(read, disabled="", selected=distribution)
    for entry in filter(is_asked, read(group)):
        _use(entry, commands)
    return [
        one for one in registry.failures() if (one.group, one.name, one.distribution) == (group, name, distribution)
    ]


def _use(entry: EntryPoint, commands: Collection[str]) -> None:
    """Use a plugin as dryfit would at first use; failures are recorded in the registry."""
    if entry.group == TARGETS:
        from dryfit.answers.target_examination import (
            examine_target,
        )  # loads most of dryfit, which other plugins need not

        target, record = registry.find_target(entry.name), registry.load(entry)
        if target is not None and isinstance(record, Target):
            examine_target(record, target, entry, registry)
    elif entry.group == LAYERS:
        namespace, _, name = entry.name.rpartition("::")
        with contextlib.suppress(PluginError):  # it is recorded
            find_layer_plugin((name, "1", namespace))
    elif entry.group == IMPORTERS:
        model_importers()
    elif entry.group == ONNX_OPERATORS:
        domain, _, op_type = entry.name.rpartition("::")
        facade.onnx_operators(domain, op_type)
    elif entry.group == PASSES:
        facade.contributed_passes()
    elif entry.group == CALIBRATORS:
        with contextlib.suppress(PluginError):  # it is recorded
            calibrator(entry.name)
    elif entry.group == OVERLAYS:
        installed_overlays()
    elif entry.group == HOOKS:
        registry.targets()
        layer_plugin_titles()
        facade.commands(commands)
        facade.contributed_passes()
        _ask_hooks()
    else:
        registry.load(entry)


def _ask_hooks() -> None:
    """Call the hooks that only answer a question. Observers are skipped, because they may open files or connections."""
    import numpy as np

    from dryfit.builder.config.enumerations import DeviceType
    from dryfit.network.data_types import DataType
    from dryfit.network.layers.activation import ActivationType
    from dryfit.network.network import Network
    from dryfit.quantization.quantized_group import find_quantized_group
    from dryfit.target.verdict import Verdict

    network = Network("a question of dryfit plugins doctor")
    scale = network.add_constant((), np.ones((), np.float32)).get_output(0)
    x = network.add_input("x", DataType.INT8, (1, 4, 8, 8))
    real = network.add_dequantize(x, scale).get_output(0)
    layer = network.add_activation(real, ActivationType.RELU)
    network.mark_output(network.add_quantize(layer.get_output(0), scale).get_output(0))
    verdicts = {device: Verdict(layer.name, device) for device in (DeviceType.GPU, registry.host().device)}
    facade.placement_votes(layer, verdicts)
    group = find_quantized_group(layer)
    if group is not None:
        facade.claim(group)


if __name__ == "__main__":
    failures = examine(*sys.argv[1:])
    print("\n" + MARK + json.dumps([attrs.asdict(one) for one in failures]), flush=True)  # noqa: T201  the answer
