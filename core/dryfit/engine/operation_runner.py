"""Runs an engine one operation at a time, on given arrays.

A context keeps a tensor only while it is needed, and returns only outputs. This module gives access to every tensor
that an operation stores, and can run an operation on other inputs. It uses the engine's kernels, packed weights and
rounding, so the same inputs give the same bits as in a context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.binding import host_schedule, specs_for
from dryfit.engine.buffers import new_array
from dryfit.engine.input_arrays import as_input
from dryfit.engine.late_step import LateStep, needs_reference
from dryfit.engine.plan import Plan
from dryfit.engine.resolved_operation import ResolvedOperation, resolve_operations
from dryfit.errors import ExecutionError
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.target.kernels import Array, HostLayout, Schedule
from dryfit.target.machine_code import usable_processors
from dryfit.target.memory import aligned_bytes

_LARGEST_KEPT = 1 << 20
"""Bytes of an operation that stays bound after a run. Binding takes milliseconds: much for small operations, little for
those whose arrays would fill the memory, since no two operations share them."""


@frozen
class _BoundOperation:
    """An operation with the arrays that it reads and writes.

    Attributes:
        inputs: what is written before each run, by tensor name.
        outputs: what is copied after it.
        workspace_bytes: bytes of scratch memory.
        schedule: runs it; None if it computes nothing.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    workspace_bytes: int
    schedule: Schedule | None

    @property
    def size_bytes(self) -> int:
        """Bytes of all its arrays."""
        return self.workspace_bytes + sum(array.nbytes for array in (*self.inputs.values(), *self.outputs.values()))

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run on other inputs; returns copies."""
        if self.schedule is not None:
            for name, array in self.inputs.items():
                np.copyto(array, inputs[name])
            self.schedule.run(None)
        return {name: array.copy(order="K") for name, array in self.outputs.items()}


class OperationRunner:
    """The operations of a plan for one set of input shapes.

    Args:
        plan: plan with its weights.
        input_shapes: shape of every input.
        num_threads: number of threads per operation; None for one per CPU.

    Attributes:
        operations: operations that run at run time, in execution order.
        known: contents that are known before the run, by tensor name.

    Raises:
        ExecutionError: The plan is stripped, or a layer does not support the resulting shapes.
        PluginError, EngineFileError: See `ExecutionContext`.

    Example:
        >>> runner = OperationRunner(engine.plan, {"x": x.shape})
        >>> arrays = {"x": x}
        >>> for one in runner.operations:
        ...     arrays |= runner.run(one, arrays)
    """

    def __init__(self, plan: Plan, input_shapes: Mapping[str, Shape], num_threads: int | None = None) -> None:
        if plan.is_stripped:
            raise ExecutionError(
                "The engine has no weights (stripped) and must be refitted before it runs",
                where=f"engine {plan.network.name!r}",
                remedy="Restore its weights: `dryfit refit ENGINE --onnx MODEL -o OUT`",
            )
        self._plan = plan
        self._num_threads = num_threads or usable_processors()
        self._create_schedule = host_schedule()
        self._kept: dict[str, _BoundOperation] = {}
        self._specs = specs_for(plan, input_shapes)
        self.known = {name: spec.value for name, spec in self._specs.items() if spec.value is not None}
        self.operations: Sequence[ResolvedOperation] = [
            one for one in resolve_operations(plan) if any(t.name not in self.known for t in one.group.outputs)
        ]

    def run(self, resolved: ResolvedOperation, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run an operation on its inputs.

        Args:
            resolved: one of `operations`.
            inputs: contents by tensor name, in the tensors' types. Known tensors may be omitted, and unused ones may be
                included.

        Returns:
            Arrays by output name, each with its own memory.

        Raises:
            ExecutionError: An input is missing, has another type, or leads to impossible sizes.
        """
        arrays = {tensor.name: self._input(resolved, tensor.name, inputs) for tensor in resolved.group.inputs}
        names = [tensor.name for layer in resolved.group.layers for tensor in layer.outputs]
        shapes_are_known = all(self._specs[name].is_static for name in [*names, *arrays])
        if not shapes_are_known or needs_reference(resolved, self._specs):
            layouts = {tensor.name: self._layout(tensor.name) for tensor in resolved.group.outputs}
            late = LateStep(resolved, layouts, self._num_threads, self._create_schedule)
            return late.run(arrays, {}, None)
        kept = self._kept.get(resolved.operation.name)
        if kept is None:
            kept = self._bound(resolved, arrays)
            if kept.size_bytes <= _LARGEST_KEPT:
                self._kept[resolved.operation.name] = kept
        return kept.run(arrays)

    def _bound(self, resolved: ResolvedOperation, arrays: Mapping[str, Array]) -> _BoundOperation:
        """Bind an operation to arrays of its own; known tensors stay where they are."""
        own = {
            name: array if name in self.known else new_array(TensorSpec(array.shape, self._specs[name].dtype), layout)
            for name, array in arrays.items()
            for layout in [self._layout(name)]
        }
        outputs = {
            tensor.name: new_array(self._specs[tensor.name], self._layout(tensor.name))
            for tensor in resolved.group.outputs
        }
        if not any(array.size for array in outputs.values()):
            return _BoundOperation({}, outputs, 0, None)
        specs = {
            tensor.name: self._specs[tensor.name]
            for tensors in (resolved.group.inputs, *(layer.outputs for layer in resolved.group.layers))
            for tensor in tensors
        }
        workspace = aligned_bytes(resolved.workspace_bytes(specs, self._num_threads))
        step = resolved.bind(own | outputs, specs, workspace, self._num_threads)
        schedule = self._create_schedule([step], self._num_threads)
        inputs = {name: array for name, array in own.items() if name not in self.known}
        return _BoundOperation(inputs, outputs, workspace.nbytes, schedule)

    def _input(self, resolved: ResolvedOperation, name: str, inputs: Mapping[str, Array]) -> Array:
        """Return an input in the form that kernels require: aligned, and in the layout of the plan."""
        if name in self.known:
            return self.known[name]
        if name not in inputs:
            raise ExecutionError(
                "An input of the operation is missing",
                where=f"engine layer {resolved.operation.name!r}",
                found=name,
                remedy="Build the engine again; if that does not help, report a bug",
            )
        given = inputs[name]
        array = new_array(TensorSpec(given.shape, self._specs[name].dtype), self._layout(name))
        np.copyto(array, as_input(name, given, self._specs[name].dtype))
        return array

    def _layout(self, name: str) -> HostLayout:
        placement = self._plan.placements.get(name)
        return HostLayout.LINEAR if placement is None else placement.host_layout
