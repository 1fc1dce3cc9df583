"""The answer of `dryfit.compare`: tensors, sides, and notable findings for each side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from dryfit.answers.arithmetic import LayerArithmetic, arithmetic_blocks
from dryfit.answers.comparison.compare import ComparedTensor
from dryfit.answers.comparison.overflows import Overflow, overflow_blocks
from dryfit.answers.comparison.stored_network import MODEL_WEIGHTS
from dryfit.answers.comparison.tensor_difference import Difference
from dryfit.answers.conditions import Outcome
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.placement import PlacementHeading
from dryfit.answers.placement_text import listed_names
from dryfit.answers.text import Answer, Block, Entries, Line, Table, overlay_lines
from dryfit.attrs_classes import frozen
from dryfit.short_text import count_text, printable

_COLUMNS = ["tensor", "type", "engine layer", "SQNR dB", "own", "inherited", "saturated", "first difference"]


@frozen
class UnknownWeights:
    """A layer whose weights the engine does not contain in a readable form.

    Attributes:
        layer: name of the layer.
        reason: why the weights are unknown.
    """

    layer: str
    reason: str


@frozen
class ComparedSide:
    """A reference that an engine was compared with.

    Attributes:
        name: name of the side, as requested.
        arithmetic: arithmetic of the side; empty for fp32, which runs the model by its definition.
        compared: number of tensors that both sides store.
        differing: number of compared tensors that differ.
        first_error: `stored_as` of the first tensor whose own layer adds an error.
        overflows: FP16 tensors whose own layers overflow, in execution order.
        largest_errors: `stored_as` of the tensors with the largest error added by their own layer, largest first.
    """

    name: str
    arithmetic: Sequence[LayerArithmetic]
    compared: Count
    differing: Count
    first_error: str | None
    overflows: Sequence[Overflow]
    largest_errors: Sequence[str]


@frozen(repr=False, kw_only=True)
class CompareAnswer(PlacementHeading, Answer):
    """The tensors of an engine compared with other arithmetic, and the layers that cause the differences.

    Attributes:
        simulated: which aspects of the device are simulated.
        plugins: active plugins, each as `name version (distribution)`; sorted.
        arithmetic: arithmetic of each device, by computation type of its layers.
        weights: origin of the weights that the sides use.
        weights_rounded: engine layers whose weights can be recovered only to within a few FP32 roundings.
        weights_unknown: layers whose weights cannot be recovered from the engine; the sides omit everything that
            depends on them.
        samples: names of the samples.
        sides: sides in the requested order.
        tensors: outputs of engine layers, in computation order.
        left_out: tensors of the engine that do not represent a tensor of the model.
        conditions: results of `fail_below` for each output.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.compare("digits.onnx", data="images.npy", precision="fp16")
        >>> answer.sides[0].first_error
        'Reformatted Input Tensor 0 to conv1'
    """

    COMMAND: ClassVar[str] = "compare"

    simulated: str
    plugins: Sequence[str]
    arithmetic: Sequence[LayerArithmetic]
    weights: str
    weights_rounded: Sequence[str]
    weights_unknown: Sequence[UnknownWeights]
    samples: Sequence[str]
    sides: Sequence[ComparedSide]
    tensors: Sequence[ComparedTensor]
    left_out: Sequence[str]
    conditions: Sequence[Outcome]
    _heading: str
    notes: Sequence[str] = hidden(())

    def tensor(self, stored_as: str) -> ComparedTensor:
        """Return a tensor by its name in the engine."""
        return next(one for one in self.tensors if one.stored_as == stored_as)

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return one table per side, with its notable findings; verbose: and where each tensor first differs."""
        yield Line(self._heading)
        yield from overlay_lines(self.overlays)
        if self.simulated:
            yield Line(f"Simulated: {self.simulated}.")
        yield Line(count_text(len(self.samples), "sample"))
        yield from arithmetic_blocks(self.arithmetic)
        if self.weights != MODEL_WEIGHTS:
            yield Line(f"Weights of the other sides: {self.weights}")
        if self.weights_rounded:
            yield Line(f"Recovered within a few FP32 roundings: weights of {listed_names(self.weights_rounded)}")
        unknown = [(one.layer, one.reason, "") for one in self.weights_unknown]
        yield Entries(
            "Not compared (with all that depends on it), because the engine does not expose the weights of", unknown
        )
        for side in self.sides:
            yield from self._side_blocks(side, verbose=verbose)
        if self.left_out:
            yield Line(f"Not compared, because they match no tensor of the model: {', '.join(self.left_out)}")
        yield from failed_blocks(self.conditions)

    def summary_line(self) -> str:
        """Return the number of tensors that differ from each side."""
        return ", ".join(f"{one.differing} of {one.compared} tensors differ from {one.name}" for one in self.sides)

    def _side_blocks(self, side: ComparedSide, *, verbose: bool) -> Iterator[Block]:
        """Return the blocks of one side: its tensors, and the layers to look at."""
        name = side.name
        yield Line()
        if side.arithmetic:
            yield from arithmetic_blocks(side.arithmetic, f"Arithmetic of {name}")
        else:
            meaning = "the model" if self.weights == MODEL_WEIGHTS else "what the engine stores"
            yield Line(f"Arithmetic of {name}: {meaning}, computed in the types of the model")
        # A conversion that adds nothing only says again what the tensor before it said.
        rows = [_row(one, one.differences[name]) for one in self.tensors if not one.is_conversion or _adds(one, name)]
        shown = len(_COLUMNS) if verbose else len(_COLUMNS) - 1  # the place of the first difference is wide
        yield Table(f"Against {name}", _COLUMNS[:shown], [row[:shown] for row in rows])
        unfed = [
            (one.engine_layer, ", ".join(one.unfed[name]), "")
            for one in self.tensors
            if name in one.unfed and one.differences[name] is not None
        ]
        yield Entries(f"No breakdown into own and inherited error, because {name} does not store the inputs of", unfed)
        yield Line(f"{side.differing} of {side.compared} tensors differ")
        if side.first_error is not None:
            first = self.tensor(side.first_error)
            does = "adds or passes on" if name in first.unfed else "adds"
            # A name with a line break in it must not look like a line of ours.
            layer, tensor = (printable(name, kept="") for name in (first.engine_layer, first.tensor))
            yield Line(f"First layer that {does} an error: {layer}, to {tensor}")
        yield from overflow_blocks(side.overflows, name)
        worst = [(one.engine_layer, one.differences[name]) for one in map(self.tensor, side.largest_errors)]
        ranked = [(layer, found.own_text, "") for layer, found in worst if found is not None]
        yield Entries("Layers that add the most error (signal-to-noise ratio, dB)", ranked)


def ratio_outcomes(outputs: Mapping[str, Mapping[str, Difference | None]], least: float) -> list[Outcome]:
    """Return the outcomes of `fail_below` for each output and side."""
    return [
        Outcome(
            f"{tensor} against {side}: at least {least:g} dB",
            "not known" if found is None else found.ratio_text,
            failed=found is None or found.is_below(least),
        )
        for tensor, differences in outputs.items()
        for side, found in differences.items()
    ]


def failed_blocks(conditions: Sequence[Outcome]) -> Iterator[Block]:
    """Return the conditions that hold."""
    yield Entries("Failed conditions", [(one.condition, one.actual, "") for one in conditions if one.failed])


def _adds(one: ComparedTensor, side: str) -> bool:
    found = one.differences[side]
    return found is not None and bool(found.own or found.own_not_finite)


def _row(one: ComparedTensor, found: Difference | None) -> tuple[object, ...]:
    saturated = "-" if one.saturation is None else f"{one.saturation:.2%}"
    start = (one.tensor, one.dtype.text, one.engine_layer)
    if found is None:
        return (*start, "not stored there", "-", "-", saturated, "-")
    return (*start, found.ratio_text, found.own_text, found.inherited_text, saturated, found.first or "-")
