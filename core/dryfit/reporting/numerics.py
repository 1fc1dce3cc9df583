"""What INT8 and a device's arithmetic do to the numbers of a model: facts of a report that need samples, or Q/DQ."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from dryfit.answers.asked import Asked, LoadedModel, Model, asked, quiet_log
from dryfit.answers.calibrate import calibrate
from dryfit.answers.calibration import CalibrationAnswer
from dryfit.answers.check import CheckAnswer
from dryfit.answers.compare import Samples, compare
from dryfit.answers.compare_methods import CompareMethodsAnswer, compare_methods
from dryfit.answers.compare_versions import CompareVersionsAnswer, compare_versions
from dryfit.answers.comparison.answer import CompareAnswer
from dryfit.answers.comparison.sides import DEFINITION, Feeds
from dryfit.answers.explain_quantization import QuantizationAnswer, explain_quantization
from dryfit.answers.json_data import Amount, Count, Share
from dryfit.answers.lint import LintAnswer, lint
from dryfit.answers.quantize_methods import quantize_methods
from dryfit.answers.run_inputs import random_inputs
from dryfit.attrs_classes import frozen
from dryfit.engine.engine import Engine
from dryfit.engine.plan import Plan
from dryfit.errors import BuildError, ConfigError, PlacementError
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.network import Network
from dryfit.quantization.calibration_data import SampleSource, source_of
from dryfit.quantization.histogram import BINS, SHOWN_BINS, Histogram
from dryfit.quantization.int8_weights import LARGEST, channel_magnitudes, constant_weights
from dryfit.quantization.network_ranges import saturated_share, sqnr_db
from dryfit.quantization.picture_preparation import PicturePreparation

COMPARED_SAMPLES = 4
"""Samples on which arithmetic is compared: the reference of the model is slow. Our choice."""

SEED = 0
"""Of the random inputs that are compared where there are no samples."""


@frozen(kw_only=True)
class TensorRange:
    """The values of a tensor that samples gave, and the INT8 range that was chosen for it.

    Attributes:
        tensor: name of the tensor.
        values: number of values that were seen.
        zeros: number of them that are zero.
        largest: largest magnitude.
        threshold: the range is [-threshold, threshold]; None if the tensor has none.
        origin: where the range comes from, or why there is none.
        sqnr_db: signal-to-quantization-noise ratio of INT8 in this range, estimated from the histogram; None without
            a range, or without a value other than zero.
        saturated: share of the values other than zero beyond the range; None as above.
        best_threshold: the one of `thresholds` with the largest ratio; None if all values are zero.
        best_sqnr_db: that ratio.
        bin_width: width of a bin of `counts`; 0 if all values are zero.
        counts: magnitudes in each bin, from 0 on; without the zeros.
        thresholds: upper ends of the bins up to the largest magnitude.
        losses_db: the ratio at each of `thresholds`.
    """

    tensor: str
    values: Count
    zeros: Count
    largest: Amount
    threshold: Amount | None
    origin: str
    sqnr_db: float | None
    saturated: Share | None
    best_threshold: Amount | None
    best_sqnr_db: float | None
    bin_width: Amount
    counts: Sequence[Count]
    thresholds: Sequence[float]
    losses_db: Sequence[float]


@frozen
class WeightRange:
    """The largest magnitude of the weights of each output channel.

    Attributes:
        layer: name of the layer.
        kind: kind of the layer.
        is_stated: whether the magnitudes are those that the scales of Q/DQ allow, instead of those of the weights.
        magnitudes: largest magnitude by channel; a single one if all channels share it.
    """

    layer: str
    kind: str
    is_stated: bool
    magnitudes: Sequence[float]

    @property
    def largest(self) -> float:
        """The magnitude of the widest channel."""
        return max(self.magnitudes)

    @property
    def smallest(self) -> float:
        """The magnitude of the narrowest channel that is not zero; 0 if all are."""
        return min(filter(None, self.magnitudes), default=0.0)

    @property
    def spread(self) -> float:
        """How many times wider the widest channel is than the narrowest."""
        return self.largest / self.smallest if self.smallest else 1.0


@frozen(kw_only=True)
class Numerics:
    """Answers about the numbers of a model; each is None if it was not asked.

    Attributes:
        calibration: ranges from the samples; not for models whose Q/DQ hold the scales.
        tensors: values and range of each calibrated tensor, in execution order.
        quantization: precisions, scales and Q/DQ.
        weights: weights of the layers that sum products.
        comparison: arithmetic of the device beside the model's definition, and beside other devices.
        versions: placement and outputs in several versions of TensorRT.
        methods: codes of the arithmetic of devices and of ONNX Runtime, for a model with Q/DQ.
        inputs: inputs of the comparison, in words.
        lint: findings about Q/DQ; None for models without.
        problems: questions that could not be answered, and why.
        assumes_scales: whether every tensor is assumed to have an INT8 scale.
    """

    calibration: CalibrationAnswer | None = None
    tensors: Sequence[TensorRange] = ()
    quantization: QuantizationAnswer | None = None
    weights: Sequence[WeightRange] = ()
    comparison: CompareAnswer | None = None
    versions: CompareVersionsAnswer | None = None
    methods: CompareMethodsAnswer | None = None
    inputs: str = ""
    lint: LintAnswer | None = None
    problems: Sequence[str] = ()
    assumes_scales: bool = False

    @property
    def definition_text(self) -> str:
        """What the side `fp32` is: for a model with Q/DQ its definition includes their rounding."""
        return "FP32" if self.lint is None else "the model with its Q/DQ"


@frozen(kw_only=True)
class NumericsRequest:
    """What a report was given to answer questions about numbers.

    Attributes:
        data: samples: a folder, a file, `module:function`, or a source of samples; None for none.
        limit: maximum number of samples to read from the start.
        preparation: how pictures become inputs.
        against: sides to compare with, beside the model's definition, as for `dryfit.compare`.
        engine: engine to compare instead of one that is built from the model.
    """

    data: str | SampleSource | None = None
    limit: int | None = None
    preparation: PicturePreparation | None = None
    against: Sequence[str] = ()
    engine: str | None = None

    @property
    def compares(self) -> bool:
        """Whether arithmetic is to be compared."""
        return self.data is not None or self.engine is not None or bool(self.against)

    @property
    def source(self) -> SampleSource | None:
        """The samples."""
        return source_of(self.data, self.preparation) if isinstance(self.data, str) else self.data


def gather_numerics(
    model: Model, options: Mapping[str, Any], check: CheckAnswer, request: NumericsRequest, others: Sequence[str]
) -> Numerics:
    """Ask the questions about numbers that the model, its precisions and what was given allow.

    Args:
        model: as for `dryfit.check`.
        options: options of the first variant.
        check: placement of the first variant.
        request: samples and sides.
        others: sides to compare with if samples are given and no sides are.

    Raises:
        CalibrationError, ExecutionError: Samples cannot be read or do not match the network's inputs.
        ConfigError, UnknownNameError: A side, an engine or an option does not exist.
    """
    is_stated = any(layer.kind in ("quantize", "dequantize") for layer in check.layers)
    shape = options.get("shape")
    linted = lint(model, shape=shape, example_inputs=options.get("example_inputs")) if is_stated else None
    if not (is_stated or "int8" in check.precisions or request.compares):
        return Numerics()
    with tempfile.TemporaryDirectory() as folder, quiet_log():
        given: dict[str, Any] = {**options, "assume_scales": False} if is_stated else dict(options)
        calibration = None
        if request.data is not None and not is_stated:
            cache = Path(folder) / "calibration.cache"
            calibration = _calibrated(model, cache, options, request)
            words = check.precisions if "int8" in check.precisions else [*check.precisions, "int8"]
            given = {**given, "precision": ",".join(words)}
            if not any(map(given.get, ("calibration_cache", "ranges"))):
                given = {**given, "calibration_cache": cache, "assume_scales": False}
        subject = asked(model, None, given, needs_shapes=request.compares)
        problems: list[str] = []
        wanted = is_stated or "int8" in subject.precisions
        quantization = _answered("Precisions", problems, lambda: _explained(model, given)) if wanted else None
        compared = _answered("Comparison", problems, lambda: _compared(subject, request, others))
        versions = methods = None
        if request.data is not None:
            versions = _answered("Versions of TensorRT", problems, lambda: _versions(model, given, check, request))
            if is_stated:
                methods = _answered("Quantize methods", problems, lambda: _methods(model, given, request))
    return Numerics(
        calibration=calibration,
        tensors=() if calibration is None else tensor_ranges(calibration, quantization),
        quantization=quantization,
        weights=list(weight_ranges(subject.network)) if wanted else (),
        comparison=compared,
        versions=versions,
        methods=methods,
        inputs="" if compared is None else _inputs_text(request, compared),
        lint=linted,
        problems=problems,
        assumes_scales=bool(given.get("assume_scales")),
    )


def _explained(model: Model, given: Mapping[str, Any]) -> QuantizationAnswer:
    return explain_quantization(model, **given)


def _answered(name: str, problems: list[str], ask: Callable[[], Any]) -> Any:
    """The answer; None if the network cannot be built, and then the problem is listed."""
    try:
        return ask()
    except (BuildError, PlacementError) as error:
        problems.append(f"{name}: {error}")
        return None


# Ranges ---------------------------------------------------------------------------------------------------------------


def _calibrated(
    model: Model, cache: Path, options: Mapping[str, Any], request: NumericsRequest
) -> CalibrationAnswer | None:
    """The ranges of the tensors, written to a cache; without what differs from run to run."""
    if isinstance(model.source if isinstance(model, LoadedModel) else model, Network):
        raise ConfigError(
            "Networks are calibrated with dryfit.calibration",
            where="data",
            remedy="Pass the path of the ONNX model, or leave out data",
        )
    found = calibrate(
        model,
        request.source,
        output=cache,
        limit=request.limit,
        shape=options.get("shape"),
        example_inputs=options.get("example_inputs"),
    )
    return attrs.evolve(found, cache=None, state=None, run=None)


def tensor_ranges(calibration: CalibrationAnswer, quantization: QuantizationAnswer | None) -> list[TensorRange]:
    """Return the values of each calibrated tensor beside its range, in execution order.

    Args:
        calibration: ranges from samples, with what was seen.
        quantization: ranges that the network has; None for those of the calibration.
    """
    entries = {} if quantization is None else {one.tensor: one for one in quantization.tensors}
    found = []
    for one in calibration.tensors:
        seen, entry = calibration.collectors.get(one.name), entries.get(one.name)
        if isinstance(seen, Histogram):
            stated = one.threshold if entry is None else None
            if entry is not None and entry.dynamic_range is not None:
                stated = entry.dynamic_range.threshold
            found.append(tensor_range(one.name, seen, stated, one.reason if entry is None else entry.words))
    return found


def tensor_range(tensor: str, seen: Histogram, threshold: float | None, origin: str) -> TensorRange:
    """Return the values of a tensor beside its range.

    Args:
        tensor: name of the tensor.
        seen: its values.
        threshold: end of its range; None for none.
        origin: where the range comes from, or why there is none.
    """
    width = seen.bin_width * (BINS // SHOWN_BINS)
    used = int(seen.magnitude / width) + 1 if width else 0
    ends = [width * (place + 1) for place in range(used)]
    losses = [sqnr_db(seen, end) for end in ends]
    best = int(np.argmax(losses)) if losses else None
    is_known = threshold is not None and bool(width)
    return TensorRange(
        tensor=tensor,
        values=seen.count,
        zeros=seen.zeros,
        largest=seen.magnitude,
        threshold=threshold,
        origin=origin,
        sqnr_db=sqnr_db(seen, threshold) if is_known and threshold is not None else None,
        saturated=saturated_share(seen, threshold) if is_known and threshold is not None else None,
        best_threshold=None if best is None else ends[best],
        best_sqnr_db=None if best is None else losses[best],
        bin_width=width,
        counts=seen.shown_counts(),
        thresholds=ends,
        losses_db=losses,
    )


def weight_ranges(network: Network) -> Iterator[WeightRange]:
    """Return the ranges of the weights of each layer that has some, in network order."""
    for layer in network.layers:
        if not layer.sums_products:
            continue
        weights = constant_weights(layer)
        if weights is not None and weights.size and np.isfinite(weights).all():
            yield WeightRange(layer.name, layer.kind, False, channel_magnitudes(layer, weights).tolist())
            continue
        tensor = layer.inputs[1] if len(layer.inputs) > 1 else None
        scale = None
        if tensor is not None and isinstance(tensor.producer, Dequantize):
            source = tensor.producer.inputs[1]
            scale = None if source is None else source.spec.value
        if scale is not None and scale.size:
            stated = np.abs(scale.astype(np.float64)).reshape(-1) * LARGEST
            yield WeightRange(layer.name, layer.kind, True, stated.tolist())


# Comparison -----------------------------------------------------------------------------------------------------------


def _compared(subject: Asked, request: NumericsRequest, others: Sequence[str]) -> CompareAnswer | None:
    if not request.compares:
        return None
    # What an engine falls back to is known only from itself.
    usual = others if request.data is not None and request.engine is None else ()
    named = [DEFINITION, *(request.against or usual)]
    sides = list({name.lower(): name for name in named}.values())
    samples = _samples(request)
    if request.engine is not None:
        return compare(Engine.load(request.engine), data=samples, against=sides)
    return compare(subject.network, subject.config, data=samples, against=sides)


def _samples(request: NumericsRequest) -> Samples:
    source = request.source

    def drawn(network: Network, plan: Plan) -> Iterable[tuple[str, Feeds]]:
        if source is None:
            yield f"random inputs of seed {SEED}", random_inputs(Engine(plan), SEED)
        else:
            most = min(COMPARED_SAMPLES, request.limit or COMPARED_SAMPLES)
            yield from source.samples(list(source.names(network))[:most], network)

    return drawn


def _versions(
    model: Model, given: Mapping[str, Any], check: CheckAnswer, request: NumericsRequest
) -> CompareVersionsAnswer:
    """The model in each version of TensorRT, with the device, precisions and fallback of the report."""
    others = {name: value for name, value in given.items() if name not in ("software", "precision")}
    options = {"device": check.device, "fallback": check.fallback, **others, "precision": ",".join(check.precisions)}
    return compare_versions(model, data=_samples(request), **options)


def _methods(model: Model, given: Mapping[str, Any], request: NumericsRequest) -> CompareMethodsAnswer | None:
    """The codes by ONNX Runtime's arithmetic, in which models are usually checked, and by that of each device."""
    known = quantize_methods().methods
    first = [one.name for one in known if one.library.split(" ")[0] == REFERENCE_LIBRARY]
    computes = {one.name for one in known if any(rule.operator == "convolution" for rule in one.rules)}
    own = [one.name for one in known if not one.library and one.name in computes]
    names = [*first[:1], *own]
    kept = {name: value for name, value in given.items() if name in ("shape", "shape_values")}
    return compare_methods(model, names, data=_samples(request), **kept) if len(names) > 1 else None


REFERENCE_LIBRARY = "onnxruntime"
"""Library whose arithmetic those of devices are compared with: models with Q/DQ are mostly tried there first."""


def _inputs_text(request: NumericsRequest, found: CompareAnswer) -> str:
    return f"random inputs of seed {SEED}" if request.data is None else f"the first {len(found.samples)} samples"
