"""Examine plugins, each in a separate process: `python -m` this module reads them from stdin, and answers on stdout.

A plugin that hangs or crashes the interpreter cannot affect anything else. The processes are forks of this one, which
imports dryfit once and no plugin; on systems without forks, they are new interpreters.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import EntryPoint
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import attrs

from dryfit.attrs_classes import define
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
    PluginOwner,
    installed_entry_points,
    owner_of,
    switching_off,
)
from dryfit.plugins.failures import PluginFailure
from dryfit.plugins.layer_plugins import find_layer_plugin, layer_plugin_titles
from dryfit.plugins.loading import WAITING_FACTOR, took_too_long
from dryfit.plugins.model_importers import model_importers
from dryfit.plugins.overlays import installed_overlays
from dryfit.target.target import Target

_CONTEXT: Any = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")


@define
class _Trial:
    """The process that examines one plugin.

    Attributes:
        number: position of the plugin among those that are examined.
        process: the process.
        answer: receives the problems.
        printed: file with what the process prints.
        deadline: when it is stopped, by `time.monotonic`.
    """

    number: int
    process: Any
    answer: Connection
    printed: Path
    deadline: float


def examine_each(
    owners: Sequence[PluginOwner], seconds: float, commands: Sequence[str]
) -> list[Sequence[PluginFailure]]:
    """Return the problems of each plugin, examined by as many processes at a time as there are processors.

    Args:
        owners: plugins to examine.
        seconds: CPU time that a plugin may take; a process that waits is stopped after `WAITING_FACTOR` times as long.
        commands: names of dryfit's own commands.
    """
    found: list[Sequence[PluginFailure]] = [()] * len(owners)
    waiting, running = list(enumerate(owners))[::-1], list[_Trial]()
    with tempfile.TemporaryDirectory() as folder, _ending(running):
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                running.append(_started(*waiting.pop(), seconds, commands, Path(folder)))
            nearest = min(one.deadline for one in running) - time.monotonic()
            wait([one.answer for one in running], max(nearest, 0.0))
            for one in [*running]:
                if one.answer.poll() or one.deadline < time.monotonic():
                    running.remove(one)
                    found[one.number] = _ended(one, owners[one.number], seconds)
    return found


@contextlib.contextmanager
def _ending(running: Collection[_Trial]) -> Iterator[None]:
    """End the processes that are still running, such as after Ctrl-C."""
    try:
        yield
    finally:
        for one in running:
            one.process.kill()


def _started(number: int, owner: PluginOwner, seconds: float, commands: Sequence[str], folder: Path) -> _Trial:
    """Start the examination of a plugin."""
    reading, writing = _CONTEXT.Pipe(duplex=False)
    printed = folder / str(number)
    arguments = (writing, printed, seconds, owner.group, owner.name, owner.distribution, *commands)
    process = _CONTEXT.Process(target=_examine_and_send, args=arguments)
    process.start()
    writing.close()
    return _Trial(number, process, reading, printed, time.monotonic() + WAITING_FACTOR * seconds)


def _ended(trial: _Trial, owner: PluginOwner, seconds: float) -> Sequence[PluginFailure]:
    """Return the problems that a process found, or how it ended."""
    with trial.answer:
        if trial.answer.poll():
            with contextlib.suppress(EOFError):
                answer: list[PluginFailure] = trial.answer.recv()
                trial.process.join()
                return answer
            trial.process.join()
            code = trial.process.exitcode
        else:
            trial.process.kill()
            code = None
        if code is None or code == -getattr(signal, "SIGPROF", 0):
            remedy = (
                f"Report it to its maintainers; {switching_off(owner)} switches it off, --timeout gives it more time"
            )
            return [PluginFailure.of(owner, took_too_long(seconds), remedy=remedy)]
        text = f"the interpreter exited with code {code} while importing it"
        return [PluginFailure.of(owner, text, trial.printed.read_text(errors="replace"))]


def _examine_and_send(answer: Connection, printed: Path, seconds: float, *plugin: str) -> None:
    """Examine a plugin in this process, which prints to a file, reads nothing, and ends when its CPU time is over."""
    with printed.open("wb") as file, Path(os.devnull).open("rb") as nothing:
        for number, one in enumerate((nothing, file, file)):
            os.dup2(one.fileno(), number)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
    answer.send(examine(*plugin))


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

    found = [one for one in installed_entry_points() if is_asked(one) or not owner_of(one).is_foreign]
    registry.begin_again(lambda: found, disabled="", selected=distribution)
    for entry in filter(is_asked, found):
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
    asked = json.load(sys.stdin)
    if any(owner["group"] in {HOOKS, TARGETS} for owner in asked["owners"]):
        import dryfit.answers.target_examination  # noqa: F401  once, before the forks
    each = examine_each([PluginOwner(**owner) for owner in asked["owners"]], asked["seconds"], asked["commands"])
    json.dump([[attrs.asdict(one) for one in found] for found in each], sys.stdout)
