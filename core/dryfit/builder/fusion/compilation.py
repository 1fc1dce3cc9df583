"""The kernels of a build, compiled before it ends: the engine's first run, here or in another process, finds them kept.

The host's kernels compile their code when they are bound. So every group is bound once, to memory that nothing writes
to and that therefore costs nothing. Where everything is kept already, nothing is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from dryfit.builder.fusion.groups import FusedGroup
from dryfit.builder.stages import Stages, logger
from dryfit.engine.buffers import new_array
from dryfit.engine.plan import Operation
from dryfit.errors import ExecutionError
from dryfit.plugins import registry
from dryfit.quantization.rounding import Rounding
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, Step
from dryfit.target.machine_code import CompiledFunction, listening
from dryfit.target.memory import aligned_bytes

PHASE = "Compiling kernels, once for this machine"
"""A phase of a build's progress; it is there only where something has to be compiled."""


class CompilationPhase:
    """Shows what is compiled inside a `with` statement as a phase of the build.

    It begins when the number of functions is known, or with the first one, and anew when more become known: a
    progress display takes one total per phase. A monitor that cancels does so when the `with` statement ends: the code
    that is being compiled then may be a plugin's, which must not be left in the middle.

    Args:
        stages: of the build.
    """

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._count = 0
        self._expected = 0
        self._is_open = False
        self._is_cancelled = False
        self._listening = listening(self._tell, self._expect)

    def __enter__(self) -> Self:
        self._listening.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.__exit__(kind, error, trace)
        if self._is_open:
            self._stages.finish_phase(PHASE)
        if self._is_cancelled and error is None:
            raise self._stages.cancelled(PHASE, self._count - 1)

    def _expect(self, functions: int) -> None:
        if self._is_open:
            self._stages.finish_phase(PHASE)
        self._expected = max(0, self._expected - self._count) + functions
        self._count, self._is_open = 0, True
        self._stages.start_phase(PHASE, self._expected)

    def _tell(self, function: CompiledFunction) -> None:
        logger.info("compiled %s in %.1f s", function.name, function.seconds)
        if not self._is_open:
            self._is_open = True
            self._stages.start_phase(PHASE)
        self._is_cancelled |= not self._stages.complete_step(PHASE, self._count)
        self._count += 1


def compile_kernels(
    groups: Sequence[FusedGroup],
    operations: Sequence[Operation],
    specs: Callable[[], Specs],
    layouts: Mapping[str, HostLayout],
    rounding: Callable[[str], Rounding],
) -> None:
    """Have the host's kernels compile all code that these groups need.

    Args:
        groups: what runs as one; those of other packages' kernels, and of layer plugins, are left alone.
        operations: of each group, with its packed weights.
        specs: gives concrete ones; called when they are needed. Groups without are left to the first run.
        layouts: tensor name to layout.
        rounding: gives how a device finds whole numbers.
    """
    host = registry.host()
    if host.machine_code is None or host.create_schedule is None or not host.machine_code(None).missing():
        return
    concrete = specs()
    steps: list[Step] = []
    for fused, operation in zip(groups, operations, strict=True):
        if fused.kernel not in host.kernels or fused.group.main.kind == "plugin":
            continue
        try:
            step = _bound(fused, operation, concrete, layouts, rounding(operation.device))
        except ExecutionError as error:
            logger.info("%s is compiled by the first run: %s", fused.group.name, error)
            continue
        steps += [step] if step is not None else []
    if steps:
        host.create_schedule(steps, 1)


def _bound(
    fused: FusedGroup, operation: Operation, specs: Specs, layouts: Mapping[str, HostLayout], rounding: Rounding
) -> Step | None:
    """A step that never runs; None where shapes are not known, or there is nothing to compute."""
    group = fused.group
    tensors = {*group.inputs, *(tensor for layer in group.layers for tensor in layer.outputs)}
    if not all(specs[tensor.name].is_static and 0 not in specs[tensor.name].shape for tensor in tensors):
        return None
    arrays: dict[str, Array] = {}
    for tensor in (*group.inputs, *group.outputs):
        spec = specs[tensor.name]
        known = spec.value if tensor in group.inputs else None
        arrays[tensor.name] = new_array(spec, layouts.get(tensor.name, HostLayout.LINEAR)) if known is None else known
    workspace = aligned_bytes(fused.kernel.workspace_bytes(group, specs, 1))
    binding = Binding(group, specs, arrays, operation.weights, workspace, 1, rounding=rounding)
    return fused.kernel.bind(binding)
