"""Convert between explicit and implicit quantization: `dryfit.translate` and `dryfit translate`.

Scales and precisions are converted to Q/DQ nodes, or Q/DQ nodes to scales and precisions. Both networks are then built
and compared in integer arithmetic.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Unpack

import attrs

from dryfit.answers.asked import EXAMPLE_INPUTS, Model, form_of, format_of, load_network, model_source, require_shapes
from dryfit.answers.builder_config import config_of, refuse_quantize_methods
from dryfit.answers.conditions import TRANSLATE_SUBJECTS, FailCondition, counted_outcomes
from dryfit.answers.defaults import with_overlay_board
from dryfit.answers.options import ALGORITHMS, NetworkOptions, Options, one_of
from dryfit.answers.translation import (
    IntegerBorder,
    ProofSamples,
    TranslateAnswer,
    TranslatedFile,
    TranslatedTensor,
    proof_of,
)
from dryfit.attrs_classes import frozen
from dryfit.builder.decisions import layer_placements
from dryfit.builder.design import Design
from dryfit.building import designed
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.onnx.model_file import ModelSource, read_model, write_model
from dryfit.onnx.translation.agreement import ProvedTensor
from dryfit.onnx.translation.carried_scales import CarriedConflict, UnequalScales
from dryfit.onnx.translation.explicit_model import ExplicitModel, explicit_model
from dryfit.onnx.translation.implicit_model import ImplicitModel, ImplicitPolicy, implicit_model, write_implicit_files
from dryfit.onnx.translation.implicit_precisions import ImplicitPrecision, inlined, prepared_model
from dryfit.plugins import registry
from dryfit.plugins.model_importers import DEFAULT_FORMAT
from dryfit.quantization.cache_header import CacheHeader, parse_version
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.scale_table import RangeOrigin

FORMS = ("qdq", "implicit")


@frozen(kw_only=True)
class _Translation:
    """The settings of a translation."""

    name: str
    source: ModelSource
    folder: Path | None
    output: Path
    options: NetworkOptions
    weights: str = attrs.field(validator=one_of(("int8", "fp32")))
    unequal_scales: str = attrs.field(validator=one_of(tuple(one.value for one in UnequalScales)))
    strict: bool
    clip_weights: bool
    every_rounding: bool
    unit_scales: bool
    real_precision: str | None = attrs.field(validator=one_of(("fp32", "fp16")))
    tensorrt_version: str
    algorithm: str = attrs.field(validator=one_of(tuple(ALGORITHMS)))
    samples: ProofSamples

    @property
    def home(self) -> Path:
        """Folder of the model's external data."""
        return self.folder or self.output.parent

    @property
    def stem(self) -> str:
        """Prefix of the names of written files."""
        return Path(self.name).stem if isinstance(self.source, Path) else self.name

    @property
    def shapes(self) -> NetworkOptions:
        """Options with shapes only, for networks that get their scales and types otherwise."""
        return NetworkOptions(shape=self.options.shape)


def translate(
    model: Model,
    output: str | os.PathLike[str],
    *,
    to: Literal["qdq", "implicit"],
    fail_on: str | Sequence[str | FailCondition] = (),
    weights: str = "int8",
    unequal_scales: str = "largest",
    strict: bool = False,
    clip_weights: bool = False,
    every_rounding: bool = False,
    unit_scales: bool = False,
    real_precision: str | None = None,
    tensorrt_version: str = "8.6.0",
    algorithm: str = "entropy2",
    data: str | os.PathLike[str] | None = None,
    samples: int = 2,
    seed: int = 0,
    **options: Unpack[Options],
) -> TranslateAnswer:
    """Convert the quantization of an ONNX model to the other form, and compare both forms in integer arithmetic.

    Args:
        model: a path, an ONNX model, or a PyTorch module with `example_inputs`.
        output: path of the Q/DQ model, or folder for the files of the implicit form.
        to: target form. `qdq`: a model with Q/DQ nodes, from a cache or ranges. `implicit`: a model without, plus
            files.
        fail_on: conditions, such as `"codes>1,lost"`; see `TranslateAnswer.conditions`.
        weights: for `qdq`: `int8` weights with a DQ, or `fp32` weights with Q and DQ.
        unequal_scales: for `implicit`: `largest`, `refuse` or `keep`, if a concatenation or one tensor has several
            scales.
        strict: for `implicit`: fail if a layer would lose its INT8 precision.
        clip_weights: for `implicit`: replace the weight code -128 by -127.
        every_rounding: for `implicit`: keep roundings inside fused layers, by output types of layers.
        unit_scales: for `implicit`: set the scale 1 for values that a convolution adds to another tensor without
            rounding.
        real_precision: for `implicit`: `fp32` or `fp16` for layers that are not INT8; None for the device's default.
        tensorrt_version: for `implicit`: version in the cache.
        algorithm: for `implicit`: algorithm in the cache, such as `entropy2`.
        data: samples for the comparison: a folder, a file, or `module:function`; None for random samples.
        samples: number of samples to compare; 0 to skip the comparison.
        seed: seed of random samples.
        options: keyword arguments named like the options of `dryfit translate`.

    Raises:
        ConfigError: Scales are missing, or given although the model has them, or the options conflict with the model.
        OnnxImportError: The model is corrupt, has unsupported operators, or contains settings that the other form
            cannot express.
        CalibrationError: Scales or samples cannot be read.
        UnknownNameError: A device, platform or option value does not exist.

    Example:
        >>> answer = dryfit.translate("digits.onnx", "qdq.onnx", to="qdq", calibration_cache="digits.cache")
        >>> answer.summary.different
        0
    """
    conditions = TRANSLATE_SUBJECTS.conditions(fail_on)
    if to not in FORMS:
        raise UnknownNameError("form", to, FORMS, where="--to")
    rest = {name: value for name, value in options.items() if name != EXAMPLE_INPUTS}
    said, _ = with_overlay_board(NetworkOptions.said(rest))
    refuse_quantize_methods(said, "Both forms are compared with the arithmetic of the device")
    _require_scales(said, to)
    source, folder, name = model_source(model, options.get(EXAMPLE_INPUTS))
    if isinstance(source, Network) or format_of(source) != DEFAULT_FORMAT:
        raise ConfigError(
            "Only ONNX models can be translated",
            where="model",
            found=form_of(source),
            remedy="Pass the path of the ONNX model, or an onnx.ModelProto",
        )
    asked = _Translation(
        name=name,
        source=source,
        folder=folder,
        output=Path(output),
        options=said if "int8" in said.precision else attrs.evolve(said, precision=(*said.precision, "int8")),
        weights=weights,
        unequal_scales=unequal_scales,
        strict=strict,
        clip_weights=clip_weights,
        every_rounding=every_rounding,
        unit_scales=unit_scales,
        real_precision=real_precision,
        tensorrt_version=tensorrt_version,
        algorithm=algorithm,
        samples=ProofSamples(None if data is None else os.fspath(data), samples, seed),
    )
    answer = _to_qdq(asked) if to == "qdq" else _to_implicit(asked)
    counts = {subject: getattr(answer.summary, subject) for subject in TRANSLATE_SUBJECTS.texts}
    return attrs.evolve(answer, conditions=counted_outcomes(conditions, counts))


def _require_scales(options: NetworkOptions, to: str) -> None:
    """Reject a translation with missing or duplicate scales.

    Raises:
        ConfigError: Scales are missing or duplicate; the message names the options.
    """
    has_scales = options.calibration_cache is not None or options.ranges is not None
    if to == "qdq" and not has_scales:
        raise ConfigError(
            "A translation to qdq requires scales", found="none", remedy="Pass --calibration-cache or --ranges"
        )
    if to == "implicit" and has_scales:
        raise ConfigError(
            "A translation to implicit must take its scales from the model",
            found=str(options.calibration_cache or options.ranges),
            remedy="Leave out --calibration-cache and --ranges",
        )


def _to_qdq(asked: _Translation) -> TranslateAnswer:
    """Convert a model with scales to one with Q/DQ nodes."""
    model, external = read_model(asked.source, asked.folder)
    prepared = prepared_model(model)
    network = load_network(prepared, asked.shapes, asked.folder)
    require_shapes(network, asked.options.shape)
    config, notes = config_of(network, asked.options)
    design = designed(network, config, f"Translating {network.name}")
    translated = explicit_model(prepared, external, design, stores_integers=asked.weights == "int8")
    write_model(translated.model, asked.output, external, asked.home)
    compared = {
        name: ProvedTensor(translated.quantized[name], scale, scale) for name, scale in translated.scales.items()
    }
    explicit = load_network(translated.model, asked.shapes, asked.folder)
    converted = design.precisions.converted
    return TranslateAnswer(
        model=asked.name,
        to="qdq",
        device=asked.options.default_device.upper(),
        overlays=config.overlay_labels,
        files=[TranslatedFile(asked.output, "the Q/DQ model")],
        tensors=_designed_tensors(design, translated),
        layers=[
            ImplicitPrecision(one.layer, one.onnx_nodes, one.precision)
            for one in layer_placements(design)
            if one.layer in converted
        ],
        weights=[],
        unequal=[CarriedConflict(*attrs.astuple(one)) for one in design.network_scales.table.conflicts],
        borders=[],
        notes=list(translated.notes),
        proof=proof_of(asked.samples, network, config, explicit, asked.options, compared),
        option_notes=notes,
    )


def _to_implicit(asked: _Translation) -> TranslateAnswer:
    """Convert a model with Q/DQ nodes to scales and precisions."""
    model, external = read_model(asked.source, asked.folder)
    explicit = load_network(asked.source, asked.shapes, asked.folder)
    require_shapes(explicit, asked.options.shape)
    header = CacheHeader(CalibrationAlgoType[ALGORITHMS[asked.algorithm]], parse_version(asked.tensorrt_version))
    policy = ImplicitPolicy(
        UnequalScales(asked.unequal_scales),
        is_strict=asked.strict,
        clips_weights=asked.clip_weights,
        rounds_all=asked.every_rounding,
        real_type=_real_type(asked),
    )
    fixed = {name: shapes[0] for name, shapes in asked.options.shape.items() if len(shapes) == 1}
    translated = implicit_model(inlined(model), external, policy, fixed, asked.home)
    written = write_implicit_files(
        translated, asked.output, asked.stem, header, external, asked.home, unit_scales=asked.unit_scales
    )
    config, notes = config_of(translated.network, asked.options)
    return TranslateAnswer(
        model=asked.name,
        to="implicit",
        device=asked.options.default_device.upper(),
        overlays=config.overlay_labels,
        files=[TranslatedFile(path, use) for path, use in written.files.items()],
        tensors=_carried_tensors(translated),
        layers=translated.layers,
        weights=translated.plain.requantized,
        unequal=translated.carried.conflicts,
        borders=[IntegerBorder(name, scale) for name, scale in translated.plain.integer_borders.items()],
        notes=list(written.notes),
        proof=proof_of(asked.samples, translated.network, config, explicit, asked.options, translated.compared),
        keeps_every_rounding=asked.every_rounding,
        option_notes=notes,
    )


def _real_type(asked: _Translation) -> DataType:
    """Return the type of layers that are not INT8."""
    precisions = registry.target(asked.options.default_device).precisions
    has_float = not precisions or DataType.FLOAT in precisions
    word = asked.real_precision or ("fp32" if has_float else "fp16")
    return DataType.HALF if word == "fp16" else DataType.FLOAT


def _designed_tensors(design: Design, translated: ExplicitModel) -> list[TranslatedTensor]:
    return [
        TranslatedTensor(
            name=one.tensor,
            scale=None if one.dynamic_range is None else one.dynamic_range.scale,
            origin=one.origin.value,
            source=", ".join(one.sources),
            rule=one.rule,
            stated=None,
            codes=translated.quantized.get(one.tensor),
        )
        for one in design.network_scales.table.entries.values()
    ]


def _carried_tensors(translated: ImplicitModel) -> list[TranslatedTensor]:
    return [
        TranslatedTensor(
            name=one.tensor,
            scale=one.scale,
            origin="stated" if one.origin is RangeOrigin.CALIBRATED else one.origin.value,
            source=one.source,
            rule=one.rule,
            stated=one.scale if one.origin is RangeOrigin.CALIBRATED else one.stated,
            codes=translated.plain.quantized.get(one.tensor),
        )
        for one in translated.carried.entries.values()
    ]
