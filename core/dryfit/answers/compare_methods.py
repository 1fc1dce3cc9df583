"""Find where quantize methods produce different codes: `dryfit.compare_methods` and `dryfit compare --methods`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import ClassVar, Unpack

from dryfit.answers.asked import EXAMPLE_INPUTS, Model, asked, no_defaults
from dryfit.answers.builder_config import METHOD_OPTION
from dryfit.answers.compare import Samples, samples_of
from dryfit.answers.comparison.answer import failed_blocks, ratio_outcomes
from dryfit.answers.comparison.compare_methods import MethodSide, method_sides
from dryfit.answers.comparison.compare_methods import compare_methods as compared
from dryfit.answers.comparison.compared_codes import CodeDifference, ComparedCodes, ComparedOutput, MethodComparison
from dryfit.answers.conditions import Outcome
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.options import NetworkOptions, Options
from dryfit.answers.text import Answer, Block, Entries, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.plugins import registry
from dryfit.plugins.model_importers import is_model_file
from dryfit.short_text import count_text

_COLUMNS = ["layer", "operator", "type", "codes that differ", "largest", "own", "own largest"]
_LEAST_SHARE = 1e-5


@frozen
class LeftInReal:
    """A layer that stays in floating point.

    Attributes:
        layer: name of the layer.
        reason: why the layer stays in floating point.
    """

    layer: str
    reason: str


@frozen
class ComparedMethod:
    """A quantize method, and where its codes first differ from those of the first method.

    Attributes:
        name: name of the method.
        title: library or device whose arithmetic the method reproduces.
        library: library that the method was verified against; empty for a device.
        version: version of the library.
        operators: number of layers that the method computes.
        left: layers that stay in floating point.
        compared: number of code tensors stored by both this and the first method; 0 for the first.
        differing: number of compared layers whose codes differ.
        first_parting: first tensor whose own layer produces codes that differ from those of the first method.
    """

    name: str
    title: str
    library: str
    version: str
    operators: Count
    left: Sequence[LeftInReal]
    compared: Count
    differing: Count
    first_parting: str | None


@frozen(repr=False, kw_only=True)
class CompareMethodsAnswer(Answer):
    """The results of several quantize methods on one model, and the layers where their codes diverge.

    Attributes:
        model: path of the model, or name of the network.
        device: device of this machine.
        plugins: active plugins, each as `name version (distribution)`; sorted.
        samples: names of the samples.
        methods: methods in the requested order; the others are compared with the first.
        layers: code tensors that a method computes, in computation order.
        outputs: outputs of the model.
        conditions: results of `fail_below` for each output.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.compare_methods("digits-qdq.onnx", ["tflite", "onnx"], data="images.npy")
        >>> [(one.name, one.differing) for one in answer.methods]
        [('tflite', 0), ('onnx', 3)]
    """

    COMMAND: ClassVar[str] = "compare --methods"

    model: str
    device: str
    plugins: Sequence[str]
    samples: Sequence[str]
    methods: Sequence[ComparedMethod]
    layers: Sequence[ComparedCodes]
    outputs: Sequence[ComparedOutput]
    conditions: Sequence[Outcome]
    notes: Sequence[str] = hidden(())

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the point of divergence of each method from the first."""
        first, *others = self.methods
        yield Line(f"{self.model} by quantize methods on this machine; compared with {first.name}")
        yield Line(count_text(len(self.samples), "sample"))
        rows = [(one.name, one.title, one.library or "-", one.operators, len(one.left)) for one in self.methods]
        yield Table("Methods", ["method", "arithmetic", "verified against", "layers", "in floating point"], rows)
        for one in others:
            yield from self._method_blocks(one)
        for output in self.outputs:
            yield Line()
            found = [_output_row(output, one.name) for one in others]
            columns = ["method", "elements that differ", "SQNR dB", "top-1 changes"]
            yield Table(f"Output {output.tensor}", columns, found)
        left: dict[LeftInReal, list[str]] = {}
        for method in self.methods:
            for layer in method.left:
                left.setdefault(layer, []).append(method.name)
        entries = [(one.layer, f"by {', '.join(names)}: {one.reason}", "") for one, names in left.items()]
        yield Entries("Layers that stay in floating point", entries)
        yield from failed_blocks(self.conditions)

    def summary_line(self) -> str:
        """Return the number of layers with different codes by method, in one line."""
        return "; ".join(map(_differing_text, self.methods[1:]))

    def _method_blocks(self, method: ComparedMethod) -> Iterator[Block]:
        """Return the point where a method diverges from the first."""
        name = method.name
        yield Line()
        found = [(one, one.differences[name]) for one in self.layers]
        rows = [_row(one, difference) for one, difference in found if difference is None or difference.is_any]
        if rows:
            yield Table(f"Layers where {name} differs", _COLUMNS, rows)
        yield Line(_differing_text(method))
        if method.first_parting is not None:
            parting = next(one for one in self.layers if one.tensor == method.first_parting)
            yield Line(f"First mismatching layer: {parting.layer} ({parting.operator})")
            pair = (self.methods[0].name, name)
            yield Entries("Its formulas", [(one, parting.formulas.get(one, "in floating point"), "") for one in pair])


def compare_methods(
    model: Model,
    methods: Sequence[str],
    *,
    data: Samples,
    limit: int | None = None,
    tolerance: float = 0.0,
    fail_below: float | None = None,
    threads: int | None = None,
    **options: Unpack[Options],
) -> CompareMethodsAnswer:
    """Run a quantized model with several quantize methods on this machine, and compare their codes.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        methods: names of the methods; the others are compared with the first.
        data: samples; see `dryfit.answers.compare.Samples`.
        limit: maximum number of samples to read from the start of a folder or file.
        tolerance: largest difference between codes that still count as equal.
        fail_below: minimum signal-to-noise ratio of each output, in dB; see `CompareMethodsAnswer.conditions`.
        threads: number of host threads; None for one per CPU.
        options: keyword arguments named like the options of `dryfit compare`.

    Raises:
        ConfigError: An option cannot be used with methods, the file is an engine, or fewer than two methods are given.
        CalibrationError, ExecutionError: Samples cannot be read or do not match the network's inputs.
        DryfitError: The network cannot be built.
        UnknownNameError: A method does not exist.

    Example:
        >>> dryfit.compare_methods("digits-qdq.onnx", ["tflite", "onnx"], data="images.npy").methods[1].first_parting
        'relu1_out_QuantizeLinear_Output'
    """
    if isinstance(model, str | os.PathLike) and not is_model_file(model):
        raise ConfigError(
            "The quantize methods of a built engine cannot be changed",
            where=f"--methods, {model}",
            remedy="Compare the model: dryfit compare MODEL.onnx --methods ...",
        )
    subject = asked(model, None, _on_host(options, methods), defaults=no_defaults)
    sides = method_sides(methods, subject.network, subject.config, threads)
    found = compared(sides, samples_of(data, subject.network, sides[0].plan, limit), tolerance)
    outputs = {one.tensor: one.differences for one in found.outputs}
    return CompareMethodsAnswer(
        model=subject.name,
        device=registry.host().device,
        plugins=registry.active_plugins(),
        samples=found.samples,
        methods=[_method(side, found, is_first=side is sides[0]) for side in sides],
        layers=found.codes,
        outputs=found.outputs,
        conditions=[] if fail_below is None else ratio_outcomes(outputs, fail_below),
        notes=subject.notes,
    )


def _on_host(options: Options, methods: Sequence[str]) -> Options:
    """Return the options for a build on this machine, where quantize methods run.

    Raises:
        ConfigError: An option cannot be used with methods.
    """
    host = registry.host().device
    said = NetworkOptions.said({name: value for name, value in options.items() if name != EXAMPLE_INPUTS})
    if said.device is not None and said.device.upper() != host.upper():
        raise ConfigError(
            f"Quantize methods are computed on the {host}",
            found=f"--device {said.device}",
            remedy="Leave out --device, or compare devices with --against",
        )
    if any(not pattern for pattern, _ in said.quantize_method):
        raise ConfigError(
            f"With --methods {METHOD_OPTION} names the methods of single layers: LAYER=NAME",
            remedy=f"Write {METHOD_OPTION} LAYER=NAME, or put the method into --methods",
        )
    first = [("", method) for method in methods[:1]]
    return {**options, "device": host, "quantize_method": [*first, *said.quantize_method]}


def _method(side: MethodSide, found: MethodComparison, *, is_first: bool) -> ComparedMethod:
    known = [] if is_first else [one for code in found.codes if (one := code.differences[side.name]) is not None]
    parting = None if is_first else found.first_parting(side.name)
    return ComparedMethod(
        name=side.name,
        title=side.method.title,
        library=side.method.library,
        version=side.method.version,
        operators=len({rule.layer for rule in side.operators.values()}),
        left=[LeftInReal(one.layer, one.reason) for one in side.left],
        compared=len(known),
        differing=sum(one.whole.differing > 0 for one in known),
        first_parting=None if parting is None else parting.tensor,
    )


def _differing_text(method: ComparedMethod) -> str:
    return f"{method.name}: {method.differing} of {count_text(method.compared, 'layer')} give different codes"


def _row(one: ComparedCodes, found: CodeDifference | None) -> tuple[object, ...]:
    start = (one.layer, one.operator, one.dtype.text)
    if found is None:
        return (*start, "not quantized there", "-", "-", "-")
    return (
        *start,
        _share(found.differing, found.elements),
        found.largest,
        "-" if found.own_differing is None else _share(found.own_differing, found.elements),
        "-" if found.own_largest is None else found.own_largest,
    )


def _share(count: int, elements: int) -> str:
    """Format a share, without rounding a nonzero one to 0."""
    share = count / max(1, elements)
    return f"<{_LEAST_SHARE:.3%}" if 0 < share < _LEAST_SHARE else f"{share:.3%}"


def _output_row(output: ComparedOutput, name: str) -> tuple[object, ...]:
    found = output.differences[name]
    top = "-" if output.top_1 is None else f"{output.top_1[name].changed} of {output.top_1[name].decisions}"
    return name, _share(found.differing, found.elements), found.ratio_text, top
