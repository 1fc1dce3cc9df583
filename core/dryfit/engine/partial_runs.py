"""Runs of a part of an engine: what depends on tensors that are given other contents.

An execution context runs an engine from its inputs to its outputs, and its tensors share memory. Here every tensor
keeps an array of its own, so that after a whole run any tensor can be changed and only the operations that depend on it
are run again, as often as needed. Kernels, packed weights and rounding are those of the engine: an unchanged tensor
gives the same bits as a context.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.binding import host_schedule, specs_for
from dryfit.engine.buffers import new_array
from dryfit.engine.late_step import needs_reference
from dryfit.engine.plan import Plan
from dryfit.engine.resolved_operation import ResolvedOperation, resolve_operations
from dryfit.errors import ExecutionError
from dryfit.network.tensor import Shape
from dryfit.target.kernels import Array, HostLayout, Schedule, Step
from dryfit.target.machine_code import usable_processors
from dryfit.target.memory import aligned_bytes


@frozen(eq=False)
class _BoundOperation:
    """An operation with what it reads and writes.

    Attributes:
        reads: names of its input tensors.
        writes: names of its outputs.
        step: runs it.
    """

    reads: Sequence[str]
    writes: Sequence[str]
    step: Step


class PartialRuns:
    """An engine whose tensors can be changed between runs of its operations.

    Args:
        plan: plan of the engine.
        input_shapes: shape of every input.
        num_threads: number of threads; None for one per CPU.

    Attributes:
        tensors: names of the tensors that have an array: inputs, and outputs of operations and of the network.

    Raises:
        ExecutionError: Shapes depend on the data, or do not fit the network.

    Example:
        >>> runs = PartialRuns(engine.plan, {"x": x.shape})
        >>> whole = runs.run({"x": x})
        >>> changed = runs.run_after({"relu1": runs.array("relu1") * 0.5})
    """

    def __init__(self, plan: Plan, input_shapes: Mapping[str, Shape], num_threads: int | None = None) -> None:
        self._num_threads = num_threads or usable_processors()
        self._create_schedule = host_schedule()
        self._plan = plan
        self._specs = specs_for(plan, input_shapes)
        self.outputs = [tensor.name for tensor in plan.outputs]
        self._inputs = [tensor.name for tensor in plan.network.inputs]
        known = {name: spec.value for name, spec in self._specs.items() if spec.value is not None}
        running = [
            one for one in resolve_operations(plan) if any(tensor.name not in known for tensor in one.group.outputs)
        ]
        # Outputs that are known before any run have arrays as well, which no operation writes.
        self._known_outputs = {name: known[name] for name in self.outputs if name in known}
        self._arrays: dict[str, Array] = {name: value.copy() for name, value in self._known_outputs.items()}
        for resolved in running:
            self._require_static(resolved)
            for tensor in resolved.group.outputs:
                self._arrays[tensor.name] = self._new(tensor.name)
        for name in self._inputs:
            self._arrays[name] = self._new(name)
        self.tensors = list(self._arrays)
        self._all = {**known, **self._arrays}
        self._operations = [self._bound(one) for one in running]
        self._producers = {name: index for index, one in enumerate(self._operations) for name in one.writes}
        self._readers: dict[str, list[int]] = {}
        for index, one in enumerate(self._operations):
            for name in one.reads:
                self._readers.setdefault(name, []).append(index)
        self._schedules: dict[tuple[int, ...], Schedule] = {}
        self._parts: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[int, ...]] = {}
        self._kept: dict[str, Array] = {}
        self._dirty: set[str] = set()

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run all operations on these inputs; later changes start from what they compute.

        Returns:
            Arrays by output name, each with its own memory.
        """
        for name, array in (*self._known_outputs.items(), *((name, inputs[name]) for name in self._inputs)):
            np.copyto(self._arrays[name], array)
        self._schedule(tuple(range(len(self._operations)))).run(None)
        for name, array in self._arrays.items():
            if name in self._kept:
                np.copyto(self._kept[name], array)
            else:
                self._kept[name] = array.copy(order="K")
        self._dirty.clear()
        return {name: self._kept[name].copy() for name in self.outputs}

    def array(self, name: str) -> Array:
        """Return what a tensor held after the last whole run; valid until the next one, and not to be changed."""
        return self._kept[name]

    def run_after(self, changed: Mapping[str, Array], wanted: Collection[str] | None = None) -> dict[str, Array]:
        """Run what depends on changed tensors; all others hold what the last whole run computed.

        Args:
            changed: contents by tensor name, in the tensors' types.
            wanted: names of the tensors to compute; None for the outputs.

        Returns:
            Arrays by name of `wanted`, each with its own memory.

        Raises:
            ExecutionError: There was no whole run.
        """
        if not self._kept:
            raise ExecutionError(
                "Tensors can be changed only after a whole run", where="PartialRuns", remedy="Call run"
            )
        names = tuple(self.outputs if wanted is None else wanted)
        part = self._part(tuple(changed), names)
        written = {name for index in part for name in self._operations[index].writes}
        read = {name for index in part for name in self._operations[index].reads}
        for name in [one for one in self._dirty if (one in read or one in names) and one not in written]:
            np.copyto(self._arrays[name], self._kept[name])
            self._dirty.discard(name)
        for name, array in changed.items():
            np.copyto(self._arrays[name], array)
        if part:
            self._schedule(part).run(None)
        self._dirty.update(written, changed)
        return {name: self._arrays[name].copy() for name in names}

    def _part(self, changed: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[int, ...]:
        """Return the operations that depend on changed tensors and that wanted ones depend on, in order."""
        if (changed, wanted) not in self._parts:
            given = set(changed)
            after = self._reached(changed, lambda name: self._readers.get(name, []), lambda one: one.writes, given)
            before = self._reached(wanted, self._writers, lambda one: one.reads, set())
            self._parts[changed, wanted] = tuple(sorted(after & before))
        return self._parts[changed, wanted]

    def _writers(self, name: str) -> list[int]:
        return [self._producers[name]] if name in self._producers else []

    def _reached(
        self,
        names: Iterable[str],
        operations_of: Callable[[str], Iterable[int]],
        tensors_of: Callable[[_BoundOperation], Iterable[str]],
        given: set[str],
    ) -> set[int]:
        """Return the operations that are reached from tensors; one whose results are all given is not run."""
        found: set[int] = set()
        waiting = list(names)
        while waiting:
            for index in operations_of(waiting.pop()):
                if index not in found and not set(self._operations[index].writes) <= given:
                    found.add(index)
                    waiting += tensors_of(self._operations[index])
        return found

    def _schedule(self, part: tuple[int, ...]) -> Schedule:
        if part not in self._schedules:
            steps = [self._operations[index].step for index in part]
            self._schedules[part] = self._create_schedule(steps, self._num_threads)
        return self._schedules[part]

    def _require_static(self, resolved: ResolvedOperation) -> None:
        names = [tensor.name for layer in resolved.group.layers for tensor in layer.outputs]
        names += [tensor.name for tensor in resolved.group.inputs]
        if not all(self._specs[name].is_static for name in names) or needs_reference(resolved, self._specs):
            raise ExecutionError(
                "An engine whose shapes depend on the data cannot be run in parts",
                where=f"engine layer {resolved.operation.name!r}",
                remedy="Use a model whose shapes follow from those of its inputs",
            )

    def _layout(self, name: str) -> HostLayout:
        placement = self._plan.placements.get(name)
        return HostLayout.LINEAR if placement is None else placement.host_layout

    def _new(self, name: str) -> Array:
        return new_array(self._specs[name], self._layout(name))

    def _bound(self, resolved: ResolvedOperation) -> _BoundOperation:
        group = resolved.group
        names = [tensor.name for tensor in (*group.inputs, *group.outputs)]
        inner = [tensor.name for layer in group.layers for tensor in layer.outputs]
        specs = {name: self._specs[name] for name in (*names, *inner)}
        workspace = aligned_bytes(resolved.workspace_bytes(self._specs, self._num_threads))
        step = resolved.bind({name: self._all[name] for name in names}, specs, workspace, self._num_threads)
        reads = [tensor.name for tensor in group.inputs if tensor.name in self._arrays]
        return _BoundOperation(reads, [tensor.name for tensor in group.outputs], step)
