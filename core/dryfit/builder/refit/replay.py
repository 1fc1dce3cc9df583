"""The plan of an engine with other weights: the build is repeated, with every decision held.

The passes, the types and the lowering run again on the user's network, so whatever they do to a weight (fold it, round
it, quantize it, multiply a scale into it) is done to the new one by the same code. What comes out has to be the
engine's network again but for the contents of arrays. Its groups and kernels are the engine's: they only pack anew.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dryfit.builder.config.settings import config_from_settings
from dryfit.builder.design import NUM_STAGES, Design, design_network
from dryfit.builder.fusion.groups import LayerPlace
from dryfit.builder.kernels.choice import kernels_for
from dryfit.builder.kernels.packed_weights import drop_packed_weights
from dryfit.builder.linking import segment_compilation
from dryfit.builder.refit.checks import built_otherwise, require_same
from dryfit.builder.stages import Stages, logger
from dryfit.engine.plan import PROGRAM, Operation, Plan
from dryfit.engine.segment_program import operation_group, segment_kernel
from dryfit.errors import DryfitError, EngineFileError
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.quantization.rewrites import holding
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Kernel, Specs

_NUM_PROBLEMS_SHOWN = 5


def replayed(plan: Plan, network: Network, equal_scales: Sequence[Sequence[str]]) -> Plan:
    """The plan with what follows from the weights of a network.

    Args:
        plan: of the engine; it stays as it is.
        network: the user's, with the new weights and ranges.
        equal_scales: the scales that count as equal.

    Raises:
        BuildError: with these weights the build would decide otherwise; says where.
        EngineFileError: the build cannot be repeated, since the engine's settings or kernels are unknown here.
        NetworkError, PluginError: as in a build.
    """
    config = config_from_settings(plan.settings, network)
    stages = Stages(f"Refitting {plan.network.name}", NUM_STAGES)
    with _told_already(), holding(network, equal_scales), stages:
        design = design_network(network, config, stages)
    _require_passes(plan, design)
    problems = [*design.refusals, *design.formats.problems, *design.precisions.problems]
    if problems:
        raise built_otherwise(f"engine {plan.network.name!r}", "; ".join(problems[:_NUM_PROBLEMS_SHOWN]))
    lowered = design.cut.lowered
    kernels = [_kernel(operation) for operation in plan.operations]
    require_same(plan, lowered.network, kernels)
    packing = _Packing(design)
    operations = [packing.packed(one, kernel) for one, kernel in zip(plan.operations, kernels, strict=True)]
    packing.drop_packed()
    return attrs.evolve(plan, network=lowered.network, operations=operations)


@contextlib.contextmanager
def _told_already() -> Iterator[None]:
    """Inside, the builder's log is silent in this thread: the build said all of it, and the engine keeps it."""
    thread = threading.get_ident()

    def is_of_another(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger.addFilter(is_of_another)
    try:
        yield
    finally:
        logger.removeFilter(is_of_another)


class _Packing:
    """Packs the weights of one operation after another."""

    def __init__(self, design: Design) -> None:
        self._lowered = lowered = design.cut.lowered
        self._compilation = segment_compilation(design)
        self._layers = {layer.name: layer for layer in lowered.network.layers}
        self._specs = {tensor.name: tensor.spec for tensor in lowered.network.tensors}
        self._packed: list[tuple[LayerGroup, Kernel]] = []

    def packed(self, operation: Operation, kernel: Kernel) -> Operation:
        """The operation with new weights.

        Raises:
            BuildError: the kernel does not take the group with these weights.
        """
        group = operation_group(operation, self._layers)
        self._packed.append((group, kernel))
        weights: Mapping[str, Array]
        if operation.is_compiled:
            place = LayerPlace(operation.device, operation.segment, operation.precision)
            weights = {PROGRAM: self._compilation.program(group, place)}
        else:
            weights = _packed_by(kernel, group, self._specs, f"engine layer {operation.name!r}")
        return attrs.evolve(operation, weights=dict(weights))

    def drop_packed(self) -> None:
        """Take from the network what packed weights stand for."""
        drop_packed_weights(self._lowered.network, self._packed)


def _kernel(operation: Operation) -> Kernel:
    """The kernel of an operation.

    Raises:
        EngineFileError: no installed package brings it.
        UnknownNameError: no installed package brings its device.
    """
    if operation.is_compiled:
        registry.target(operation.device)
        return segment_kernel(operation.device, _never_loaded)
    kernels = {kernel.name: kernel for kernel in kernels_for(operation.device)}
    if operation.kernel not in kernels:
        raise EngineFileError(
            "The engine uses a kernel that is not installed",
            where=f"engine layer {operation.name!r}",
            found=f"kernel {operation.kernel!r}",
            allowed=", ".join(sorted(kernels)),
            remedy="Install the packages that the engine was built with, or build it again",
        )
    return kernels[operation.kernel]


def _packed_by(kernel: Kernel, group: LayerGroup, specs: Specs, where: str) -> Mapping[str, Array]:
    reason = kernel.refusal(group, specs)
    if reason is not None:
        raise built_otherwise(where, f"its kernel {kernel.name!r} does not support it with these weights: {reason}")
    try:
        return kernel.pack(group)
    except DryfitError:
        raise
    except Exception as error:  # the engine may be from anywhere, and the kernel a stranger's
        raise EngineFileError(
            "The kernel cannot pack the weights of this layer",
            where=f"{where}, kernel {kernel.name!r}",
            found=f"{type(error).__name__}: {error}",
            remedy="Rebuild the engine; if the error persists, report a bug in the kernel",
        ) from error


def _never_loaded(program: Array) -> Any:
    raise NotImplementedError("a refit binds nothing")


def _require_passes(plan: Plan, design: Design) -> None:
    """Refuse to go on where packages brought other passes to the build than they do now.

    Raises:
        EngineFileError: names the passes.
    """
    before, now = list(plan.settings.get("passes", [])), list(design.canonical.passes)
    if before != now:
        raise EngineFileError(
            "The engine must be refitted with the passes that built it",
            where=f"engine {plan.network.name!r}",
            found=", ".join(now),
            allowed=", ".join(map(str, before)),
            remedy="Install the packages that the engine was built with, or build it again",
        )
