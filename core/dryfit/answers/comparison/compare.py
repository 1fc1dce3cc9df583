"""Compare an engine with the same network in other arithmetic: the differences, and the layers that cause them.

The engine and the sides that it is compared with run on the same samples. Then each operation of the engine runs once
more on the inputs of the other side, converted to the type that the operation reads. The difference between this result
and the other side's result is the error that the operation itself adds; the rest of its error is inherited. The
rounding of an operation's inputs to the type that it reads therefore counts as its own error if the other side keeps
them unrounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import attrs
import numpy as np

from dryfit.answers.comparison.difference_sums import DifferenceSums
from dryfit.answers.comparison.sides import EngineSide, Feeds, Side, SideValues, definition_of
from dryfit.answers.comparison.tensor_difference import Difference
from dryfit.answers.json_data import Share
from dryfit.attrs_classes import frozen
from dryfit.builder.unused_settings import LARGEST_FP16
from dryfit.engine.operation_runner import OperationRunner
from dryfit.engine.plan import Operation
from dryfit.engine.resolved_operation import ResolvedOperation
from dryfit.engine.stored_tensors import StoredTensor
from dryfit.errors import ExecutionError
from dryfit.json_names import json_names
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.target.kernels import Array


@frozen
class ComparedTensor:
    """An output of an engine layer, compared with the values on other sides.

    Attributes:
        tensor: name of the tensor in the model.
        stored_as: name of the tensor in the engine; differs if it is stored in a type of the engine's own.
        operation: engine layer that computes the tensor.
        is_conversion: whether that layer only converts the type.
        dtype: type in which the tensor is stored.
        saturation: share of elements at an end of the type's range; None for types at least as wide as FP32.
        differences: difference from each side, by name; None if the side does not store the tensor, or stores it in
            another shape.
        unfed: tensors that a side does not store although the layer reads them, by side, in the user's names. The
            layer's own error is then unknown. Such tensors are internal to layers that the side fuses differently.
        is_output: whether the tensor is an output of the engine.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "tensor stored_as is_output is_conversion dtype:type engine_layer layers device kernel saturation "
        "differences unfed"
    )

    tensor: str
    stored_as: str
    operation: Operation
    is_conversion: bool
    dtype: DataType
    saturation: Share | None
    differences: Mapping[str, Difference | None]
    unfed: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    is_output: bool = False

    @property
    def engine_layer(self) -> str:
        """Engine layer that computes the tensor."""
        return self.operation.name

    @property
    def layers(self) -> Sequence[str]:
        """Layers of the model in that engine layer."""
        return self.operation.source_layers

    @property
    def device(self) -> str:
        """Device of that layer."""
        return self.operation.device

    @property
    def kernel(self) -> str:
        """Host kernel that runs the layer on this machine."""
        return self.operation.kernel


@frozen
class Comparison:
    """The result of a comparison.

    Attributes:
        tensors: tensors in computation order of the engine.
        samples: names of the samples, in order.
        left_out: names of engine tensors that depend on its inputs but do not represent a tensor of the user's network,
            so that they cannot be compared.
    """

    tensors: Sequence[ComparedTensor]
    samples: Sequence[str]
    left_out: Sequence[str]

    def first_error(self, side: str) -> ComparedTensor | None:
        """First tensor whose own layer adds an error; if that is unknown, the first tensor that differs."""
        for one in self.tensors:
            found = one.differences.get(side)
            if found is not None and found.differing and (found.own is None or found.own > 0 or found.own_not_finite):
                return one
        return None

    def overflows(self, side: str) -> list[ComparedTensor]:
        """FP16 tensors whose own layers overflow, in computation order."""
        differences = [(one, one.differences.get(side)) for one in self.tensors]
        return [one for one, found in differences if found is not None and found.overflowed]

    def largest_errors(self, side: str) -> list[ComparedTensor]:
        """Tensors whose own layers add errors, lowest signal-to-noise ratio first.

        Layers that turn a number into NaN or infinity come first.
        """
        ranked = [
            (-math.inf if found.own_not_finite or not found.signal else found.own_sqnr_db or 0.0, index, one)
            for index, one in enumerate(self.tensors)
            if (found := one.differences.get(side)) is not None
            and found.own is not None
            and (found.own or found.own_not_finite)
        ]
        return [one for _, _, one in sorted(ranked, key=lambda entry: entry[:2])]


def declared_types(network: Network) -> dict[str, DataType]:
    """Return the type of each tensor of the user's network, with INT8 inputs counted as the values they represent."""
    return {tensor.name: tensor.dtype for tensor in definition_of(network).tensors}


def compare(
    engine: EngineSide, sides: Sequence[Side], samples: Iterable[tuple[str, Feeds]], tolerance: float = 0.0
) -> Comparison:
    """Run an engine and the sides that it is compared with on samples.

    Each side runs once, and for each side the engine runs once more.

    Raises:
        ExecutionError: There are no samples, or one does not match the network's inputs.
    """
    comparing = _Comparing(engine, sides, tolerance)
    for name, feeds in samples:
        comparing.add(name, feeds)
    return comparing.result()


class _Comparing:
    """Accumulates the differences, one sample after another."""

    def __init__(self, engine: EngineSide, sides: Sequence[Side], tolerance: float) -> None:
        self._engine = engine
        self._sides = sides
        self._tolerance = tolerance
        self._samples: list[str] = []
        self._tensors: dict[str, _TensorSums] = {}
        self._left_out: dict[str, None] = {}

    def add(self, sample: str, feeds: Feeds) -> None:
        self._samples.append(sample)
        runner, arrays = self._engine.runner(feeds), self._engine.arrays(feeds)
        values = {side.name: side.values(feeds) for side in self._sides}
        for resolved in runner.operations:
            given, fed = dict[str, Mapping[str, Array]](), dict[str, Mapping[str, Array]]()
            unfed = dict[str, list[str]]()
            for name, side in values.items():
                inputs, unfed[name] = self._inputs(runner, resolved, arrays, side)
                if not unfed[name]:
                    given[name] = inputs
                    fed[name] = _results(runner, resolved, arrays, inputs)
            for tensor in resolved.group.outputs:
                stored, array = self._engine.tensors.get(tensor.name), arrays[tensor.name]
                if stored is None:
                    if tensor.name not in self._engine.fixed:
                        self._left_out[tensor.name] = None
                    continue
                sums = self._tensors.setdefault(tensor.name, _TensorSums(stored, resolved, self._tolerance))
                sums.add(array)
                for name, side in values.items():
                    made = fed.get(name, {}).get(tensor.name)
                    sums.add_difference(name, sample, array, side.real(stored), made, _is_finite(given.get(name)))
                    sums.add_unfed(name, unfed[name])

    def _inputs(
        self, runner: OperationRunner, resolved: ResolvedOperation, arrays: Mapping[str, Array], side: SideValues
    ) -> tuple[dict[str, Array], list[str]]:
        """Return (inputs of an operation on a side; user's names of those it lacks or has in another shape)."""
        inputs: dict[str, Array] = {}
        lacking: dict[str, None] = {}
        for tensor in resolved.group.inputs:
            if tensor.name in runner.known:
                continue
            array, stored = arrays[tensor.name], self._engine.tensors.get(tensor.name)
            if stored is None and tensor.name in self._engine.fixed:
                inputs[tensor.name] = array
                continue
            real = None if stored is None else side.real(stored)
            if stored is None or real is None or real.shape != array.shape:
                lacking[tensor.name if stored is None else stored.of] = None
            else:
                inputs[tensor.name] = stored.represented(real, resolved.rounding)
        return inputs, list(lacking)

    def result(self) -> Comparison:
        if not self._samples:
            raise ExecutionError(
                "At least one sample is required for the comparison",
                where=f"engine {self._engine.name!r}",
                remedy="Pass at least one sample",
            )
        names = [side.name for side in self._sides]
        outputs = {tensor.name for tensor in self._engine.plan.network.outputs}
        tensors = [one.result(names, is_output=name in outputs) for name, one in self._tensors.items()]
        return Comparison(tensors, self._samples, list(self._left_out))


def _results(
    runner: OperationRunner, resolved: ResolvedOperation, arrays: Mapping[str, Array], inputs: Mapping[str, Array]
) -> Mapping[str, Array]:
    """Return the results of an operation on inputs; the engine's own arrays if the inputs are its own."""
    if all(array.tobytes() == arrays[name].tobytes() for name, array in inputs.items()):
        return arrays
    return runner.run(resolved, inputs)


def _is_finite(inputs: Mapping[str, Array] | None) -> bool:
    """Return whether the inputs of an operation are finite; False if they are unknown."""
    if inputs is None:
        return False
    return all(bool(np.isfinite(array.astype(np.float32)).all()) for array in inputs.values())


class _TensorSums:
    """The accumulated differences of one engine tensor."""

    def __init__(self, stored: StoredTensor, resolved: ResolvedOperation, tolerance: float) -> None:
        self._stored = stored
        self._operation = resolved.operation
        self._is_conversion = all(layer.is_conversion for layer in resolved.group.layers)
        self._tolerance = tolerance
        self._elements = 0
        self._saturated: int | None = 0
        self._differences: dict[str, DifferenceSums] = {}
        self._uncompared: set[str] = set()
        self._unfed: dict[str, list[str]] = {}

    def add(self, array: Array) -> None:
        saturated = self._stored.saturation(array)
        self._elements += array.size
        self._saturated = None if saturated is None or self._saturated is None else self._saturated + saturated

    def add_difference(
        self,
        side: str,
        sample: str,
        array: Array,
        others: Array | None,
        fed_others: Array | None,
        is_fed_finite: bool,
    ) -> None:
        """Add a side's values of the tensor, and the results of the operation on that side's inputs."""
        if others is None or others.shape != array.shape:
            self._uncompared.add(side)
            return
        known = fed_others if fed_others is not None and fed_others.shape == array.shape else None
        largest = LARGEST_FP16 if self._stored.dtype is DataType.HALF else None
        sums = self._differences.setdefault(side, DifferenceSums(self._tolerance, largest))
        real = self._stored.real
        sums.add(sample, real(array), others, None if known is None else real(known), is_fed_finite=is_fed_finite)

    def add_unfed(self, side: str, lacking: Sequence[str]) -> None:
        """Record the tensors that the operation reads but a side does not have."""
        known = self._unfed.setdefault(side, [])
        known += [name for name in lacking if name not in known]

    def result(self, sides: Sequence[str], *, is_output: bool) -> ComparedTensor:
        return ComparedTensor(
            tensor=self._stored.of,
            stored_as=self._stored.name,
            operation=self._operation,
            is_conversion=self._is_conversion,
            dtype=self._stored.dtype,
            saturation=None if self._saturated is None else self._saturated / max(1, self._elements),
            differences={
                side: None if side in self._uncompared else self._differences[side].result() for side in sides
            },
            unfed={side: lacking for side, lacking in self._unfed.items() if lacking},
            is_output=is_output,
        )
