"""How well two engines of one network agree, one with implicit scales and one with Q/DQ: tensor by tensor, on samples.

Both run as they are built, in integer arithmetic; their tensors are looked at right after they are written. What is in
INT8 in both is compared code by code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from dryfit.attrs_classes import define, frozen
from dryfit.engine.binding import BoundEngine, specs_for
from dryfit.engine.engine import Engine
from dryfit.engine.resolved_operation import resolve_operations
from dryfit.json_names import json_names
from dryfit.target.kernels import Array
from dryfit.target.machine_code import usable_processors


def tensor_values(engine: Engine, feeds: Mapping[str, Array], *, num_threads: int | None = None) -> dict[str, Array]:
    """Run an engine once, and copy every tensor that its operations store, right after it was written.

    The engine runs as it always does: what is fused stays so, and what exists only inside an operation has no value
    here. Tensors whose shape depends on data are left out, except outputs.

    Returns:
        Name in the engine's network to a copy of the contents: integers where the tensor is quantized.

    Raises:
        ExecutionError: the shapes do not fit the engine, or memory is short.
    """
    plan = engine.plan
    operations = resolve_operations(plan)
    shapes = {name: array.shape for name, array in feeds.items()}
    bound = BoundEngine(plan, operations, specs_for(plan, shapes), num_threads or usable_processors())
    written = {one.group.name: [tensor.name for tensor in one.group.outputs] for one in operations}
    values: dict[str, Array] = {name: array.copy() for name, array in feeds.items()}

    def keep(step: str, _seconds: float) -> None:
        for name in written.get(step, ()):
            array = bound.stored(name)
            if array is not None:
                values[name] = array.copy()

    values.update({name: array.copy() for name, array in bound.run(feeds, keep).items()})
    return values


@frozen
class ProvedTensor:
    """A tensor that is quantized in both networks.

    Attributes:
        codes: name of the value that has its codes in the Q/DQ model.
        scale: the one of the implicit network.
        explicit_scale: the one of the Q/DQ model, from which the other differs where tensors had to share one.
    """

    codes: str
    scale: float
    explicit_scale: float


@define
class TensorAgreement:
    """What was found of one tensor, over all samples.

    Attributes:
        tensor: its name in the implicit network.
        scale, explicit_scale: of its INT8 codes in the two networks; 1.0 for one in floating point.
        is_output: whether the caller gets it.
        elements: how many were compared.
        different: how many codes differ; None where one of the two is not INT8, or their scales differ.
        largest_codes: the largest difference in codes; None likewise.
        largest_difference: the largest in floating point.
        signal: sum of the squares of the Q/DQ engine's values.
        noise: sum of the squares of the differences.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "tensor:name is_output:output elements different largest_codes largest_difference decibels"
    )

    tensor: str
    scale: float
    explicit_scale: float
    is_output: bool
    elements: int = 0
    different: int | None = None
    largest_codes: int | None = None
    largest_difference: float = 0.0
    signal: float = 0.0
    noise: float = 0.0

    @property
    def decibels(self) -> float | None:
        """Signal to difference in dB; None where nothing differs, or there is no signal."""
        return 10 * math.log10(self.signal / self.noise) if self.noise and self.signal else None

    def add(self, implicit: Array, explicit: Array) -> None:
        """Compare one sample."""
        if implicit.dtype == np.int8 and explicit.dtype == np.int8 and self.scale == self.explicit_scale:
            steps = np.abs(implicit.astype(np.int32) - explicit.astype(np.int32))
            self.different = (self.different or 0) + int(np.count_nonzero(steps))
            self.largest_codes = max(self.largest_codes or 0, int(steps.max(initial=0)))
        first, second = _real(implicit, self.scale), _real(explicit, self.explicit_scale)
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        with np.errstate(invalid="ignore"):
            difference = np.where(same, 0.0, first - second)
        self.elements += int(first.size)
        self.largest_difference = max(self.largest_difference, float(np.abs(difference).max(initial=0.0)))
        self.signal += float(np.sum(np.square(second)))
        self.noise += float(np.sum(np.square(difference)))


@frozen
class Agreement:
    """What was found.

    Attributes:
        samples: how many were run.
        tensors: those that both engines store, in the order of the implicit one.
        inside: names of quantized tensors that exist in one of them only inside an engine layer.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("samples tensors inside codes different largest_codes")

    samples: int
    tensors: list[TensorAgreement]
    inside: list[str]

    @property
    def largest_codes(self) -> int:
        """The largest difference of any tensor in codes."""
        return max((one.largest_codes or 0 for one in self.tensors), default=0)

    @property
    def different(self) -> int:
        """How many codes differ."""
        return sum(one.different or 0 for one in self.tensors)

    @property
    def codes(self) -> int:
        """How many codes were compared."""
        return sum(one.elements for one in self.tensors if one.largest_codes is not None)


def compare_engines(
    implicit: Engine,
    explicit: Engine,
    tensors: Mapping[str, ProvedTensor],
    samples: Iterable[Mapping[str, Array]],
) -> Agreement:
    """Run both on the same samples and compare what both store.

    Args:
        implicit: built from the network with scales.
        explicit: built from the Q/DQ model.
        tensors: those of the implicit network that are quantized.
        samples: input name to array, in real numbers; an input that one engine takes in INT8 is quantized for both.

    Raises:
        ExecutionError: a sample does not fit the engines.
    """
    outputs = {tensor.name for tensor in implicit.plan.network.outputs}
    inputs = {tensor.name for tensor in implicit.plan.network.inputs}
    scales = {name: one.scale for name, one in tensors.items()}
    found: dict[str, TensorAgreement] = {}
    count = 0
    for sample in samples:
        feeds = _rounded(sample, (implicit, explicit), scales)
        first = tensor_values(implicit, _for(implicit, feeds, scales))
        second = tensor_values(explicit, _for(explicit, feeds, scales))
        count += 1
        for name, value in first.items():
            pair = tensors.get(name, ProvedTensor(name, 1.0, 1.0) if name in outputs else None)
            other = None if pair is None or name in sample else second.get(pair.codes, second.get(name))
            is_data = value.dtype == np.int8 or value.dtype.kind == "f"
            if pair is not None and other is not None and is_data and other.shape == value.shape:
                new = TensorAgreement(name, pair.scale, pair.explicit_scale, name in outputs)
                found.setdefault(name, new).add(value, other)
    inside = [name for name in tensors if name not in found and name not in inputs]
    return Agreement(count, list(found.values()), inside)


def _rounded(
    sample: Mapping[str, Array], engines: tuple[Engine, Engine], scales: Mapping[str, float]
) -> dict[str, Array]:
    """The sample, with inputs that an engine takes in INT8 rounded to what INT8 holds."""
    integers = {t.name for engine in engines for t in engine.plan.network.inputs if t.dtype.name == "INT8"}
    rounded = dict(sample)
    for name in integers & scales.keys() & sample.keys():
        scale = np.float32(scales[name])
        rounded[name] = (np.clip(np.rint(sample[name] / scale), -128, 127) * scale).astype(np.float32)
    return rounded


def _for(engine: Engine, feeds: Mapping[str, Array], scales: Mapping[str, float]) -> dict[str, Array]:
    """The feeds in the types that an engine takes."""
    given = {}
    for tensor in engine.plan.network.inputs:
        values = feeds[tensor.name]
        if tensor.dtype.name == "INT8" and values.dtype.kind == "f":
            values = np.rint(values / np.float32(scales[tensor.name])).astype(np.int8)
        given[tensor.name] = np.ascontiguousarray(values).reshape(values.shape)
    return given


def _real(values: Array, scale: float) -> Array:
    return values.astype(np.float64) * (scale if values.dtype == np.int8 else 1.0)
