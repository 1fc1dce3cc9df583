"""An engine bound to one set of input shapes: memory allocated, kernels bound, ready to run repeatedly.

There are three kinds of operations, depending on what is known of their tensors once the input shapes are set:

* all outputs are known values (constants, shape computations): nothing runs;
* all shapes are known: bound once, to permanent arrays; consecutive operations run in one multi-threaded schedule;
* some shape depends on data: bound again in each run (`LateStep`). Later operations whose shapes are known are bound
  once like the others, and read the outputs of late steps from their own buffers.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.buffers import arena_arrays, check_size, new_array, size_of
from dryfit.engine.late_step import CreateSchedule, LateStep, evaluate_group, needs_reference
from dryfit.engine.plan import Plan
from dryfit.engine.resolved_operation import ResolvedOperation
from dryfit.engine.shared_memory import Inside, Stored, merged, shared_memory
from dryfit.errors import DryfitError, ExecutionError, PluginError
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.plugins import registry
from dryfit.reference.inference import infer_specs
from dryfit.reference.quantization import check_run_time_scale, run_time_scale
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, HostLayout, Schedule, Step
from dryfit.target.memory import is_watched, read_only

Observe = Callable[[str, float], None]
Show = Callable[[str, Array], None]
"""Receives the name and the contents of a tensor, which are valid during the call."""


def specs_for(plan: Plan, input_shapes: Mapping[str, Shape]) -> dict[str, TensorSpec]:
    """Return the spec of every tensor for these input shapes.

    Raises:
        ExecutionError: A layer does not support the resulting shapes, or a tensor exceeds the possible memory size.
    """
    try:
        specs = infer_specs(plan.network, input_shapes)
    except ExecutionError:
        raise
    except DryfitError as error:
        raise ExecutionError(
            "The network does not support these input shapes",
            where=f"engine {plan.network.name!r}",
            found=f"{dict(input_shapes)}: {error}",
            remedy="Use shapes that fit the network, or build it with these dimensions dynamic",
        ) from error
    for name, spec in specs.items():
        if spec.is_static:
            check_size(size_of(spec), f"tensor {name!r}", f"{spec.dtype.text} {spec.shape}")
    return specs


def _own_kernels() -> set[int]:
    """The ids of the host's kernels."""
    return set(map(id, registry.host().kernels))


class BoundEngine:
    """The operations of an engine, bound to one set of input shapes.

    Not thread-safe: its buffers hold the state of a run.

    Args:
        plan: plan of the engine.
        operations: resolved operations of the plan.
        specs: of every tensor, for these shapes: as `specs_for` gives them.
        num_threads: number of threads.
        shows_tensors: whether runs show each tensor once it is computed, which prevents operations from running
            together. Results do not depend on it.
        inputs, outputs: names of the tensors that the operations get and give, if they are a part of the engine;
            by default those of the network.

    Raises:
        ExecutionError: A layer does not support the resulting shapes, or memory is insufficient.
    """

    def __init__(
        self,
        plan: Plan,
        operations: Sequence[ResolvedOperation],
        specs: Mapping[str, TensorSpec],
        num_threads: int,
        *,
        shows_tensors: bool = False,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        self._plan = plan
        self._inputs = [tensor.name for tensor in plan.network.inputs] if inputs is None else inputs
        self._outputs = [tensor.name for tensor in plan.network.outputs] if outputs is None else outputs
        self._shows_tensors = shows_tensors
        self._num_threads = num_threads
        self._create_schedule = host_schedule()
        self.specs = specs
        running = [resolved for resolved in operations if not self._is_known(resolved)]
        self._late = {id(resolved) for resolved in running if not self._is_static(resolved)}
        self._arrays = self._known_values(running)
        self._known = list(self._arrays)
        workspaces = self._allocate(running)
        self._parts = self._bind(running, workspaces)

    def run(
        self, inputs: Mapping[str, Array], observe: Observe | None = None, show: Show | None = None
    ) -> dict[str, Array]:
        """Run the engine once.

        Args:
            inputs: array of every input, in the bound shapes and types.
            observe: function that receives (engine layer name, seconds) after each layer.
            show: function that receives inputs and known values, and then each stored tensor once it is computed. The
                engine must be bound to show tensors.

        Returns:
            Arrays by output name. They belong to the binding: copy them before the next run.

        Raises:
            ExecutionError: A layer fails because of sizes given by the data or the engine, or a scale that is an input
                or computed in the run is not positive.
        """
        for name, array in inputs.items():
            np.copyto(self._arrays[name], array)
        late: dict[str, Array] = {}
        if show is not None:
            for name in (*inputs, *self._known):
                show(name, self._arrays[name])
        try:
            for part in self._parts:
                if isinstance(part, ScaleCheck):
                    part.run(ChainMap(late, self._arrays))
                elif isinstance(part, ComputedTensors):
                    part.run(ChainMap(late, self._arrays), show)
                elif isinstance(part, LateStep):
                    late.update(part.run(ChainMap(late, self._arrays), self._arrays, observe))
                else:
                    part.run(observe)
        except (OverflowError, MemoryError) as error:
            raise ExecutionError(
                "A layer of the engine has impossible sizes",
                where=f"engine {self._plan.network.name!r}",
                found=f"{type(error).__name__}: {error}",
                remedy="Use smaller input shapes; if the shapes are correct, build the engine again",
            ) from error
        return {name: late[name] if name in late else self._arrays[name] for name in self._outputs}

    def stored(self, name: str) -> Array | None:
        """Return the array that stores a tensor, while it is valid; None for a tensor inside an operation."""
        return self._arrays.get(name)

    def _is_known(self, resolved: ResolvedOperation) -> bool:
        return all(self.specs[tensor.name].value is not None for tensor in resolved.group.outputs)

    def _is_static(self, resolved: ResolvedOperation) -> bool:
        names = [tensor.name for layer in resolved.group.layers for tensor in layer.outputs]
        return all(self.specs[name].is_static for name in [*names, *(t.name for t in resolved.group.inputs)])

    def _known_values(self, running: Sequence[ResolvedOperation]) -> dict[str, Array]:
        """Return the values that need no computation. A running operation writes all its outputs, even known ones."""
        written = {tensor.name for resolved in running for tensor in resolved.group.outputs}
        known = {
            name: spec.value for name, spec in self.specs.items() if spec.value is not None and name not in written
        }
        return {name: read_only(value) for name, value in known.items()} if is_watched() else known

    def _layout(self, name: str) -> HostLayout:
        placement = self._plan.placements.get(name)
        return HostLayout.LINEAR if placement is None else placement.host_layout

    def _allocate(self, running: Sequence[ResolvedOperation]) -> list[Array]:
        """Allocate an array for every stored tensor, and a workspace for every operation."""
        for name in {*self._inputs, *self._outputs} - self._arrays.keys():
            if self.specs[name].is_static:
                self._arrays[name] = new_array(self.specs[name], self._layout(name))
        last_step = {tensor.name: step for step, resolved in enumerate(running) for tensor in resolved.group.inputs}
        stored: dict[str, Stored] = {}
        for step, resolved in enumerate(running):
            for tensor in resolved.group.outputs:
                name, spec = tensor.name, self.specs[tensor.name]
                if name not in self._arrays and spec.is_static:
                    stored[name] = Stored(spec, self._layout(name), step, max(step, last_step.get(name, step)))
        sizes = [
            resolved.workspace_bytes(self.specs, self._num_threads) if self._has_kernel(resolved) else 0
            for resolved in running
        ]
        inside = {} if is_watched() else self._shared(running, stored)
        tensors = {name: (one.spec, one.layout, one.first, one.last) for name, one in merged(stored, inside).items()}
        arrays, workspaces = arena_arrays(tensors, sizes, self._num_threads)
        self._arrays.update(arrays)
        for name in inside:
            self._array_inside(name, inside)
        return workspaces

    def _shared(self, running: Sequence[ResolvedOperation], stored: Mapping[str, Stored]) -> dict[str, Inside]:
        """The tensors that lie in others: none that kernels of packages touch, or what is bound in each run."""
        own, foreign = _own_kernels(), set[str]()
        for resolved in running:
            if id(resolved.kernel) not in own or id(resolved) in self._late or needs_reference(resolved, self.specs):
                foreign.update(tensor.name for tensor in (*resolved.group.inputs, *resolved.group.outputs))
        given = [name for name in self._inputs if self.specs[name].is_static]
        inputs = {name: (self.specs[name], self._layout(name)) for name in given}
        return shared_memory(running, stored, inputs, self.specs, foreign)

    def _array_inside(self, name: str, inside: Mapping[str, Inside]) -> Array:
        """The array of a tensor, found in the one that it lies in."""
        if name not in self._arrays:
            self._arrays[name] = inside[name].view(self._array_inside(inside[name].of, inside))
        return self._arrays[name]

    def _has_kernel(self, resolved: ResolvedOperation) -> bool:
        """Return whether a kernel runs the operation, bound once: its shapes are known and its inputs are not empty."""
        makes_something = any(0 not in self.specs[tensor.name].shape for tensor in resolved.group.outputs)
        is_late = id(resolved) in self._late
        return makes_something and not is_late and not needs_reference(resolved, self.specs)

    def _bind(
        self, running: Sequence[ResolvedOperation], workspaces: Sequence[Array]
    ) -> list[Schedule | LateStep | ScaleCheck | ComputedTensors]:
        parts: list[Schedule | LateStep | ScaleCheck | ComputedTensors] = []
        steps: list[Step] = []

        def finish() -> None:
            if steps:
                parts.append(self._create_schedule(list(steps), self._num_threads))
                steps.clear()

        for resolved, workspace in zip(running, workspaces, strict=True):
            if any(run_time_scale(layer) is not None for layer in resolved.group.layers):
                finish()
                parts.append(ScaleCheck(resolved.group))
            if id(resolved) in self._late:
                finish()
                layouts = {tensor.name: self._layout(tensor.name) for tensor in resolved.group.outputs}
                parts.append(LateStep(resolved, layouts, self._num_threads, self._create_schedule))
            elif needs_reference(resolved, self.specs):
                steps.append(_ReferenceStep(resolved, self._arrays))
            elif self._has_kernel(resolved):
                steps.append(self._step(resolved, workspace))
            if self._shows_tensors:
                finish()
                parts.append(ComputedTensors([tensor.name for tensor in resolved.group.outputs]))
        finish()
        return parts

    def _step(self, resolved: ResolvedOperation, workspace: Array) -> Step:
        group = resolved.group
        names = [tensor.name for tensor in (*group.inputs, *group.outputs)]
        inner = [tensor.name for layer in group.layers for tensor in layer.outputs]
        return resolved.bind(
            {name: self._arrays[name] for name in names},
            {name: self.specs[name] for name in (*names, *inner)},
            workspace,
            self._num_threads,
        )


@frozen(eq=False)
class ScaleCheck:
    """Checks the scales that a group reads and that are unknown at build time. It is not included in timings.

    Attributes:
        group: group that runs next.
    """

    group: LayerGroup

    def run(self, arrays: Mapping[str, Array]) -> None:
        """Check the scales.

        Raises:
            ExecutionError: A scale is not finite or not positive.
        """
        for layer in self.group.layers:
            check_run_time_scale(layer, arrays)


@frozen(eq=False)
class ComputedTensors:
    """Tensors that are shown at this point of a run.

    Attributes:
        names: outputs of the operation that ran last.
    """

    names: Sequence[str]

    def run(self, arrays: Mapping[str, Array], show: Show | None) -> None:
        """Show the tensors."""
        if show is not None:
            for name in self.names:
                show(name, arrays[name])


class _ReferenceStep:
    """A step that runs the reference, for operations that compute outputs from empty inputs."""

    def __init__(self, resolved: ResolvedOperation, arrays: Mapping[str, Array]) -> None:
        self.name = resolved.group.name
        self._resolved = resolved
        self._arrays = arrays

    def run(self) -> None:
        """Evaluate the operation and write the output arrays."""
        group = self._resolved.group
        inputs = {tensor.name: self._arrays[tensor.name] for tensor in group.inputs}
        for name, array in evaluate_group(group, inputs).items():
            self._arrays[name][...] = array


def host_schedule() -> CreateSchedule:
    """Return the function that creates schedules of steps on this machine.

    Raises:
        PluginError: The host's target does not provide one.
    """
    create_schedule = registry.host().create_schedule
    if create_schedule is None:
        raise PluginError(
            "The host target must have a schedule to run kernels",
            where=registry.host().device,
            remedy="Set `create_schedule_at` in its Target record",
        )
    return create_schedule
