"""Compare a quantized network across quantize methods: where the codes diverge, and which layers cause it.

All methods run on the same samples. Then each layer of every method except the first runs once more on the codes of the
first method: the resulting differences are the layer's own, all others are inherited from its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dryfit.answers.comparison.compare import declared_types
from dryfit.answers.comparison.compared_codes import CodeDifference, ComparedCodes, ComparedOutput, MethodComparison
from dryfit.answers.comparison.difference_sums import DifferenceSums
from dryfit.answers.comparison.sides import EngineSide, Feeds
from dryfit.builder.assessment import OperatorRule, operator_rules
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, assess
from dryfit.engine.plan import Plan
from dryfit.engine.resolved_operation import ResolvedOperation
from dryfit.errors import ConfigError, ExecutionError
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.network import Network
from dryfit.passes.findings import LeftLayer
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.method import QuantizeMethod
from dryfit.target.kernels import Array

_CLASS_AXIS = 1


def compare_methods(
    sides: Sequence[MethodSide], samples: Iterable[tuple[str, Feeds]], tolerance: float = 0.0
) -> MethodComparison:
    """Run a network with each method on samples.

    Args:
        sides: the methods; the first is the reference for the others.
        samples: name and inputs of each sample.
        tolerance: largest difference between codes that still counts as equal.

    Raises:
        ExecutionError: There are no samples, or one does not match the network's inputs.
    """
    comparing = _ComparingMethods(sides, tolerance)
    for name, feeds in samples:
        comparing.add(name, feeds)
    return comparing.result()


class _ComparingMethods:
    """Accumulates the differences, one sample after another."""

    def __init__(self, sides: Sequence[MethodSide], tolerance: float) -> None:
        self._first, *self._others = sides
        self._samples: list[str] = []
        self._types = {
            tensor.name: tensor.dtype
            for side in sides
            for tensor in side.plan.network.tensors
            if tensor.name in side.operators
        }
        self._rules = {
            name: {side.name: side.operators[name] for side in sides if name in side.operators} for name in self._types
        }
        names = [one.name for one in self._others]
        self._codes = {name: {other: _CodeSums(tolerance) for other in names} for name in self._types}
        self._outputs = {
            tensor.name: {other: _OutputSums() for other in names} for tensor in self._first.plan.network.outputs
        }
        self._order: list[str] = []

    def add(self, sample: str, feeds: Feeds) -> None:
        self._samples.append(sample)
        first = self._first.arrays(feeds)
        if not self._order:
            sides = (self._first, *self._others)
            order = _merged([list(one.producers(feeds)) for one in sides])
            self._order = [name for name in order if name in self._types]
        for side in self._others:
            arrays, producers = side.arrays(feeds), side.producers(feeds)
            for name in self._order:
                sums = self._codes[name][side.name]
                mine, others = arrays.get(name), first.get(name)
                if mine is None or others is None or (mine.dtype, mine.shape) != (others.dtype, others.shape):
                    sums.is_compared = False
                    continue
                fed = side.fed(producers[name], feeds, arrays, first)
                sums.add(sample, mine, others, None if fed is None else fed[name])
            for name, by_method in self._outputs.items():
                by_method[side.name].add(sample, arrays[name], first[name])

    def result(self) -> MethodComparison:
        if not self._samples:
            raise ExecutionError(
                "At least one sample is required for the comparison",
                where=f"quantize method {self._first.name!r}",
                remedy="Pass at least one sample",
            )
        return MethodComparison(
            [self._compared(name) for name in self._order],
            [_output(name, sums) for name, sums in self._outputs.items()],
            self._samples,
        )

    def _compared(self, name: str) -> ComparedCodes:
        return ComparedCodes(
            tensor=name,
            rules=self._rules[name],
            dtype=self._types[name],
            differences={other: sums.result() for other, sums in self._codes[name].items()},
        )


class _CodeSums:
    """The accumulated differences of one tensor and method."""

    def __init__(self, tolerance: float) -> None:
        self.is_compared = True
        self._whole = DifferenceSums(tolerance)
        self._own: DifferenceSums | None = DifferenceSums(tolerance)

    def add(self, sample: str, codes: Array, others: Array, fed: Array | None) -> None:
        self._whole.add(sample, codes, others, None)
        if fed is None or self._own is None:
            self._own = None
        else:
            self._own.add(sample, fed, others, None)

    def result(self) -> CodeDifference | None:
        if not self.is_compared:
            return None
        return CodeDifference(self._whole.result(), None if self._own is None else self._own.result())


class _OutputSums:
    """The accumulated differences of one output and method."""

    def __init__(self) -> None:
        self.decisions: int | None = 0
        self.changed = 0
        self.differences = DifferenceSums()

    def add(self, sample: str, values: Array, others: Array) -> None:
        self.differences.add(sample, values, others, None)
        if self.decisions is None or not _are_scores(values) or values.shape != others.shape:
            self.decisions = None
            return
        classes, other_classes = (one.reshape(len(one), -1).argmax(_CLASS_AXIS) for one in (values, others))
        self.decisions += len(classes)
        self.changed += int(np.count_nonzero(classes != other_classes))


def _are_scores(array: Array) -> bool:
    """Return whether each row of an array consists of scores for two or more classes."""
    if array.ndim <= _CLASS_AXIS or array.shape[_CLASS_AXIS] < 2:
        return False
    return all(extent == 1 for extent in array.shape[_CLASS_AXIS + 1 :])


def _output(name: str, sums: Mapping[str, _OutputSums]) -> ComparedOutput:
    decisions = next(iter(sums.values())).decisions
    return ComparedOutput(
        tensor=name,
        decisions=decisions,
        differences={method: one.differences.result() for method, one in sums.items()},
        changed={} if decisions is None else {method: one.changed for method, one in sums.items()},
    )


def _merged(orders: Sequence[Sequence[str]]) -> list[str]:
    """Return all names: those of the first order in that order, others after their predecessors in theirs."""
    found = list(orders[0])
    for order in orders[1:]:
        known, place = set(found), 0
        for name in order:
            if name in known:
                place = found.index(name) + 1
            else:
                found.insert(place, name)
                place += 1
    return found


# Engines by method ----------------------------------------------------------------------------------------------------


class MethodSide:
    """An engine that computes the network with one method.

    Attributes:
        operators: rule of the quantized operator that computes each code tensor, by tensor name.
    """

    def __init__(self, method: QuantizeMethod, engine: EngineSide, plan: Plan, left: Sequence[LeftLayer]) -> None:
        self.method = method
        self.plan = plan
        self.left = left
        self._engine = engine
        rules = {one.layer: one for one in operator_rules(plan.network)}
        self.operators: dict[str, OperatorRule] = {
            tensor.name: rules[layer.name]
            for layer in plan.network.layers
            if isinstance(layer, QuantizedOperator)
            for tensor in layer.outputs
            if tensor.dtype.is_integer
        }

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.method.name

    def arrays(self, feeds: Feeds) -> dict[str, Array]:
        """Return every tensor that the engine stores in one run, in stored form."""
        return self._engine.arrays(feeds)

    def producers(self, feeds: Feeds) -> dict[str, ResolvedOperation]:
        """Return the operation that computes each stored tensor, by name, in computation order."""
        operations = self._engine.runner(feeds).operations
        return {tensor.name: one for one in operations for tensor in one.group.outputs}

    def fed(
        self, resolved: ResolvedOperation, feeds: Feeds, own: Mapping[str, Array], others: Mapping[str, Array]
    ) -> Mapping[str, Array] | None:
        """Return the results of an operation on the tensors of another run; None if that run lacks some of them.

        Args:
            resolved: operation of this engine.
            feeds: inputs of the run.
            own: every tensor of this engine's run.
            others: every tensor of the other run.
        """
        runner = self._engine.runner(feeds)
        inputs: dict[str, Array] = {}
        for tensor in resolved.group.inputs:
            if tensor.name in runner.known:
                continue
            found = (own if tensor.name in self._engine.fixed else others).get(tensor.name)
            mine = own[tensor.name]
            if found is None or (found.dtype, found.shape) != (mine.dtype, mine.shape):
                return None
            inputs[tensor.name] = found
        if all(array.tobytes() == own[name].tobytes() for name, array in inputs.items()):
            return own
        return runner.run(resolved, inputs)


def method_sides(
    names: Sequence[str], network: Network, config: BuilderConfig, num_threads: int | None = None
) -> list[MethodSide]:
    """Build an engine of a network for each method.

    Args:
        names: names of the methods.
        network: explicitly quantized network. Its method is set to each of them in turn and restored afterwards; layers
            with a method of their own keep it.
        config: build settings of the engines, for this machine's processor.
        num_threads: number of threads per engine; None for one per CPU.

    Raises:
        ConfigError: Fewer than two names, or a duplicate name.
        UnknownNameError: No installed package provides a method.
        PluginError: A method cannot be loaded.
        DryfitError: The network cannot be built.
    """
    if len(names) < 2 or len(set(names)) != len(names):
        raise ConfigError(
            "At least two different quantize methods are required",
            where="--methods",
            found=", ".join(names),
            remedy="Name two or more, such as --methods tflite,onnx",
        )
    methods = [quantize_method(name, where="--methods") for name in names]
    before = network.quantize_method
    try:
        return [_side(method, network, config, num_threads) for method in methods]
    finally:
        network.quantize_method = before


def _side(method: QuantizeMethod, network: Network, config: BuilderConfig, num_threads: int | None) -> MethodSide:
    network.quantize_method = method.name
    left = assess(network, config).left
    plan = Builder().build_plan(network, config)
    engine = EngineSide(method.name, plan, declared_types(network), num_threads)
    return MethodSide(method, engine, plan, left)
