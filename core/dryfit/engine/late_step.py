"""Operations whose shapes depend on input values: those after a NonZero, an NMS, or a shape input."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.buffers import check_size, new_array, size_of
from dryfit.engine.resolved_operation import ResolvedOperation
from dryfit.errors import ExecutionError, NetworkError
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import compute_type, evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, HostLayout, Schedule, Step
from dryfit.target.memory import aligned_bytes

CreateSchedule = Callable[[list[Step], int], Schedule]


@frozen(eq=False)
class LateStep:
    """An operation that is bound in each run to the arrays of that run.

    Attributes:
        resolved: resolved operation.
        layouts: host layout of the outputs, by tensor name.
        num_threads: number of threads.
        create_schedule: function of the host that creates schedules.
    """

    resolved: ResolvedOperation
    layouts: Mapping[str, HostLayout]
    num_threads: int
    create_schedule: CreateSchedule

    def run(
        self, arrays: Mapping[str, Array], bound: Mapping[str, Array], observe: Callable[[str, float], None] | None
    ) -> dict[str, Array]:
        """Return the outputs of the operation.

        Args:
            arrays: contents of all inputs, by tensor name.
            bound: arrays that outputs must be written to, for outputs whose shape other operations rely on.
            observe: see `Schedule.run`.
        """
        group = self.resolved.group
        inputs = {tensor.name: arrays[tensor.name] for tensor in group.inputs}
        specs = self._specs(inputs)
        names = [tensor.name for tensor in group.outputs]
        if not all(specs[name].is_static for name in names) or needs_reference(self.resolved, specs):
            return self._evaluate(inputs, bound, observe)
        outputs = {name: bound[name] if name in bound else new_array(specs[name], self.layouts[name]) for name in names}
        if any(array.size for array in outputs.values()):
            workspace = aligned_bytes(self.resolved.workspace_bytes(specs, self.num_threads))
            step = self.resolved.bind(inputs | outputs, specs, workspace, self.num_threads)
            self.create_schedule([step], self.num_threads).run(observe)
        return outputs

    def _specs(self, inputs: Mapping[str, Array]) -> dict[str, TensorSpec]:
        specs = {name: TensorSpec.of(array) for name, array in inputs.items()}
        where = f"engine layer {self.resolved.operation.name!r}"
        for layer in self.resolved.group.layers:
            try:
                outputs = layer.infer_outputs([None if t is None else specs[t.name] for t in layer.inputs])
            except NetworkError as error:
                raise ExecutionError(
                    "The data leads to shapes that the layer does not support",
                    where=where,
                    found=error,
                    remedy="Change the input data, or the layer's parameters in the network",
                ) from error
            for spec in outputs:
                if spec.is_static:
                    check_size(size_of(spec), where, f"{spec.dtype.text} {spec.shape}")
            specs.update((tensor.name, spec) for tensor, spec in zip(layer.outputs, outputs, strict=True))
        return specs

    def _evaluate(
        self, inputs: Mapping[str, Array], bound: Mapping[str, Array], observe: Callable[[str, float], None] | None
    ) -> dict[str, Array]:
        start = time.perf_counter()
        outputs = evaluate_group(self.resolved.group, inputs)
        for name, array in outputs.items():
            if name in bound:
                bound[name][...] = array
                outputs[name] = bound[name]
            elif any(np.may_share_memory(array, source) for source in inputs.values()):
                outputs[name] = array.copy()  # the input's memory is used again before the run ends
        if observe is not None:
            observe(self.resolved.group.name, time.perf_counter() - start)
        return outputs


def needs_reference(resolved: ResolvedOperation, specs: Mapping[str, TensorSpec]) -> bool:
    """Return whether an operation computes an output from an empty input.

    A sum over no elements, or a concatenation with an empty tensor, is not passed to a kernel.
    """
    if resolved.weights:
        return False
    empty = any(0 in specs[tensor.name].shape for tensor in resolved.group.inputs)
    return empty and any(0 not in specs[tensor.name].shape for tensor in resolved.group.outputs)


def evaluate_group(group: LayerGroup, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a group by the reference; a chain is computed in FP32 and rounded once, as in kernels."""
    values: dict[str, Array] = dict(arrays)
    if len(group.layers) > 1:
        values = {name: array.astype(compute_type(array.dtype), copy=False) for name, array in values.items()}
    for layer in group.layers:
        outputs = evaluate(layer, [None if tensor is None else values[tensor.name] for tensor in layer.inputs])
        values.update((tensor.name, array) for tensor, array in zip(layer.outputs, outputs, strict=True))
    return {tensor.name: values[tensor.name].astype(tensor.dtype.numpy, copy=False) for tensor in group.outputs}
