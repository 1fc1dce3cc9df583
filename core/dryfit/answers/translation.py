"""The answer of `dryfit.translate`: the files, the settings that were lost, and the agreement of both forms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import attrs
import numpy as np

from dryfit.answers.asked import quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.conditions import Outcome
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.options import NetworkOptions
from dryfit.answers.text import Answer, Block, Entries, Line, Table, overlay_lines, scale_text
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.network.layer import LAYER_KINDS
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.onnx.translation.agreement import Agreement, ProvedTensor, TensorAgreement, compare_engines
from dryfit.onnx.translation.carried_scales import CarriedConflict
from dryfit.onnx.translation.implicit_precisions import ImplicitPrecision
from dryfit.onnx.translation.quantization_nodes import RequantizedWeights
from dryfit.plugins import registry
from dryfit.quantization.calibration_data import source_of


@frozen
class TranslatedFile:
    """A file that was written.

    Attributes:
        file: path of the file.
        use: purpose of the file.
    """

    file: Path
    use: str


@frozen
class TranslatedTensor:
    """The scale of a floating-point tensor of the implicit network.

    Attributes:
        name: name of the tensor.
        scale: scale as a binary32 number; None if missing.
        origin: `stated` for a Q/DQ pair; other values as in quantization.schema.json.
        source: tensor that a propagated or shared scale comes from.
        rule: kind of the layer that propagates the scale.
        stated: scale in the Q/DQ model, if it was replaced or adopted.
        codes: value of the Q/DQ model that contains the tensor's codes.
    """

    name: str
    scale: float | None
    origin: str
    source: str
    rule: str
    stated: float | None
    codes: str | None


@frozen
class IntegerBorder:
    """An input or output that is INT8 in the Q/DQ model.

    Attributes:
        name: name of the tensor.
        scale: scale of its codes.
    """

    name: str
    scale: float


@frozen
class TranslationSummary:
    """Counts over a translation.

    Attributes:
        layers: number of layers that compute on floating-point values or INT8.
        int8: number of INT8 layers.
        tensors: number of floating-point tensors of the implicit network.
        scales: number of tensors with a scale.
        codes: largest difference of a tensor, in INT8 codes.
        different: number of codes that differ.
        missing: number of tensors without a scale.
        lost: number of layers that are INT8 in the Q/DQ model but floating point in the other.
        unequal: number of scales that implicit quantization merges into one.
        weights: number of weight codes that an implicit build would compute differently.
        notes: number of settings that the other form cannot express.
    """

    layers: Count
    int8: Count
    tensors: Count
    scales: Count
    codes: Count
    different: Count
    missing: Count
    lost: Count
    unequal: Count
    weights: Count
    notes: Count


@frozen(repr=False, kw_only=True)
class TranslateAnswer(Answer):
    """A translated model with its files, its losses, and a comparison of both forms in integer arithmetic.

    Attributes:
        model: path of the model, or name of the network.
        to: target form of the translation.
        device: device that both forms target.
        overlays: active overlays, each with its author, its board and a digest.
        files: files that were written.
        tensors: floating-point tensors of the implicit network, in network order.
        layers: layers that compute on floating-point values or INT8.
        weights: for `implicit`: outcome of the quantized weights.
        unequal: scales that implicit quantization merges into one.
        borders: inputs and outputs that are INT8 in the Q/DQ model.
        notes: settings that the other form cannot express.
        proof: comparison of both forms; None without samples.
        summary: totals of the translation.
        conditions: results of the requested conditions, in the requested order.
        option_notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.translate("digits-qdq.onnx", "implicit", to="implicit")
        >>> [layer.name for layer in answer.layers if layer.missing]
        []
    """

    COMMAND: ClassVar[str] = "translate"

    model: str
    to: Literal["qdq", "implicit"]
    device: str
    overlays: Sequence[str]
    files: Sequence[TranslatedFile]
    tensors: Sequence[TranslatedTensor]
    layers: Sequence[ImplicitPrecision]
    weights: Sequence[RequantizedWeights]
    unequal: Sequence[CarriedConflict]
    borders: Sequence[IntegerBorder]
    notes: Sequence[str]
    proof: Agreement | None
    summary: TranslationSummary = attrs.field()
    conditions: Sequence[Outcome] = ()
    _keeps_every_rounding: bool = False
    option_notes: Sequence[str] = hidden(())

    @summary.default
    def _counts(self) -> TranslationSummary:
        return TranslationSummary(
            layers=len(self.layers),
            int8=sum(one.precision.name == "INT8" for one in self.layers),
            tensors=len(self.tensors),
            scales=sum(one.scale is not None for one in self.tensors),
            codes=0 if self.proof is None else self.proof.largest_codes,
            different=0 if self.proof is None else self.proof.different,
            missing=sum(one.scale is None for one in self.tensors),
            lost=sum(bool(one.missing) for one in self.layers),
            unequal=len(self.unequal),
            weights=sum(one.changed_codes for one in self.weights),
            notes=len(self.notes),
        )

    def summary_line(self) -> str:
        """Return a one-line summary of the counts."""
        counts, words = self.summary, "a Q/DQ model" if self.to == "qdq" else "implicit scales"
        return (
            f"{self.model} as {words}: {counts.int8} of {counts.layers} layers INT8, "
            f"{counts.scales} of {counts.tensors} tensors with scales"
        )

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the files, the losses and the comparison."""
        yield Line(self.summary_line())
        yield from overlay_lines(self.overlays)
        yield Table("Files", ["file", "use"], [(one.file, one.use) for one in self.files])
        yield Entries("Missing scales", [(one.name, "in floating point", "") for one in self.tensors if not one.scale])
        lost = [one for one in self.layers if one.missing]
        yield Entries(
            "Layers that lose INT8",
            [(one.layer, f"no scale for {', '.join(map(repr, one.missing))}", "") for one in lost],
        )
        yield Entries("Unequal scales", [(one.tensor, _unequal(one), "") for one in self.unequal])
        changed = [(one.node, _weights(one), "") for one in self.weights if one.changed_codes]
        yield Entries("Weights whose codes differ in an implicit build", changed)
        borders = [
            (one.name, f"was INT8 and is now floating point: code times {scale_text(one.scale)}", "")
            for one in self.borders
        ]
        yield Entries("Inputs and outputs", borders)
        yield Entries("Notes", [("note", note, "") for note in self.notes])
        if self.proof is not None:
            yield from _proof_blocks(self.proof)
            if self.to == "implicit" and self.proof.largest_codes > 1 and not self._keeps_every_rounding:
                yield Line(
                    "Most such differences come of roundings inside of what devices fuse, which are left out; "
                    "--every-rounding keeps them, and nothing is fused there"
                )


def _proof_blocks(proof: Agreement) -> Iterator[Block]:
    columns = ["tensor", "elements", "different", "largest (codes)", "largest (value)", "dB"]
    rows = [_compared(one) for one in proof.tensors]
    yield Table(f"Both in integer arithmetic, {proof.samples} samples", columns, rows)
    if proof.inside:
        yield Line(f"Not compared, because it exists only inside fused layers: {', '.join(proof.inside)}")
    yield Line(
        f"{proof.different} of {proof.codes} codes differ, by {proof.largest_codes} at most"
        if proof.codes
        else "No tensor is in INT8 in both"
    )


def _compared(one: TensorAgreement) -> tuple[object, ...]:
    decibels = "equal" if one.decibels is None else f"{one.decibels:.1f}"
    return one.tensor, one.elements, one.different, one.largest_codes, f"{one.largest_difference:.6g}", decibels


def _unequal(one: CarriedConflict) -> str:
    scales = f"{scale_text(one.scale)}, and {scale_text(one.other_scale)} for {one.other!r}"
    return f"{scales}, which shares its scale by {one.rule}"


def _weights(one: RequantizedWeights) -> str:
    return (
        f"{one.changed_codes} of {one.codes} codes in {one.channels - one.same_channels} of "
        f"{one.channels} channels, values by {one.largest_difference:.3g} of a step at most"
    )


# Proof ----------------------------------------------------------------------------------------------------------------


@frozen
class ProofSamples:
    """The samples for the comparison of both forms.

    Attributes:
        data: location of the samples; None for random samples.
        count: number of samples.
        seed: seed of random samples.
    """

    data: str | None
    count: int
    seed: int


def proof_of(
    samples: ProofSamples,
    implicit: Network,
    config: BuilderConfig,
    explicit: Network,
    options: NetworkOptions,
    tensors: Mapping[str, ProvedTensor],
) -> Agreement | None:
    """Build and run both forms and compare their stored tensors; None without samples.

    Args:
        samples: samples to run.
        implicit: network with scales.
        config: config of the implicit network.
        explicit: network of the Q/DQ model.
        options: the given options; scales and precisions do not apply to the Q/DQ model.
        tensors: tensors that are quantized in both forms.
    """
    if not samples.count:
        return None
    config.builder_optimization_level = 0
    first = Builder().build_engine(implicit, config)
    with quiet_log():  # where the device takes no Q/DQ, every layer would say so
        second = _explicit_engine(explicit, options)
    return compare_engines(first, second, tensors, _feeds(samples, implicit, tensors))


def _explicit_engine(network: Network, options: NetworkOptions) -> Engine:
    """Build the Q/DQ network for the device, or for the host if the device does not support Q/DQ; results are equal."""
    plain = attrs.evolve(
        options, precision=(), layer_precisions=None, layer_output_types=None, calibration_cache=None, ranges=None
    )
    config, _ = config_of(network, plain)
    placed = assess(network, config)
    quantizing = [one for one in placed.layers if LAYER_KINDS[one.kind].is_quantization]
    away = [one for one in quantizing if one.device != config.default_device_type]
    if away or not placed.can_be_built:
        host = registry.host().device
        plain = attrs.evolve(plain, device=host, platform=None, software=None, fallback=None, placement=None)
        config, _ = config_of(network, attrs.evolve(plain, layer_device_types=None))
    config.builder_optimization_level = 0
    return Builder().build_engine(network, config)


def _feeds(
    samples: ProofSamples, network: Network, tensors: Mapping[str, ProvedTensor]
) -> Iterator[Mapping[str, Array]]:
    """Return the given samples, or random ones: normal, with a third of the range as standard deviation."""
    if samples.data is not None:
        source = source_of(samples.data)
        names = list(source.names(network))[: samples.count]
        yield from (feeds for _, feeds in itertools.islice(source.samples(names, network), samples.count))
        return
    random = np.random.default_rng(samples.seed)
    for _ in range(samples.count):
        feeds: dict[str, Array] = {}
        for tensor in network.inputs:
            shape = tuple(max(extent, 1) for extent in tensor.shape)
            if tensor.dtype.is_floating_point:
                deviation = 127 / 3 * tensors[tensor.name].scale if tensor.name in tensors else 1.0
                feeds[tensor.name] = (random.standard_normal(shape) * deviation).astype(tensor.dtype.numpy)
            else:
                feeds[tensor.name] = random.integers(0, 2, shape).astype(tensor.dtype.numpy)
        yield feeds
