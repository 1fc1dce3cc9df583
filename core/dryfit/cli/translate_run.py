"""What `dryfit translate` does: translate, write, build both networks, compare them, and say all of it as data."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import click
import numpy as np

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.options import NetworkOptions
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_config import create_config
from dryfit.cli.translate_report import agreement_data, from_design, from_implicit, summary
from dryfit.onnx.model_file import read_model, write_model
from dryfit.onnx.translation.agreement import Agreement, TranslatedTensor, compare_engines

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.cli.translate import TranslateOptions
    from dryfit.engine.engine import Engine
    from dryfit.network.data_types import DataType
    from dryfit.network.network import Network

Report = dict[str, Any]
Array = np.ndarray[Any, Any]


def translate_to_qdq(own: TranslateOptions, options: NetworkOptions) -> Report:
    """From a model with scales to one with Q/DQ nodes.

    Raises:
        DryfitError: the model cannot be imported, the options do not fit it, or a tensor cannot be quantized in ONNX.
    """
    from dryfit.building import designed
    from dryfit.onnx.translation.explicit_model import explicit_model
    from dryfit.onnx.translation.prepared_model import prepared_model

    if options.calibration_cache is None and options.ranges is None:
        raise click.UsageError("--to qdq needs scales: --calibration-cache or --ranges")
    options = _with_int8(options)
    model, external = read_model(own.model)
    folder = own.model.parent
    prepared = prepared_model(model)
    network = load_network(prepared, NetworkOptions(shape=options.shape), folder)
    require_shapes(network, options.shape)
    config = create_config(network, options)
    design = designed(network, config, f"Translating {network.name}")
    translated = explicit_model(prepared, external, design, stores_integers=own.weights == "int8")
    write_model(translated.model, own.output, external, folder)
    tensors = {
        name: TranslatedTensor(translated.quantized[name], scale, scale) for name, scale in translated.scales.items()
    }
    explicit = load_network(translated.model, NetworkOptions(shape=options.shape), folder)
    agreement = _compared(own, network, config, explicit, options, tensors)
    report = {
        **_head(own, options, "qdq"),
        "files": [{"file": str(own.output), "use": "the Q/DQ model"}],
        **from_design(design, translated),
        "proof": agreement_data(agreement),
    }
    return {**report, "summary": summary(report)}


def translate_to_implicit(own: TranslateOptions, options: NetworkOptions) -> Report:
    """From a model with Q/DQ nodes to scales and precisions.

    Raises:
        DryfitError: the model cannot be imported, or says what implicit quantization cannot.
    """
    from dryfit.cli.cache_convert import ALGORITHMS
    from dryfit.onnx.translation.carried_scales import UnequalScales
    from dryfit.onnx.translation.implicit_model import ImplicitPolicy, implicit_model, write_implicit_files
    from dryfit.onnx.translation.prepared_model import inlined
    from dryfit.quantization.cache_header import CacheHeader, parse_version
    from dryfit.quantization.calibration_stream import CalibrationAlgoType

    if options.calibration_cache is not None or options.ranges is not None:
        raise click.UsageError(
            "--to implicit takes its scales from the model, not from --calibration-cache or --ranges"
        )
    options = _with_int8(options)
    model, external = read_model(own.model)
    folder = own.model.parent
    explicit = load_network(own.model, NetworkOptions(shape=options.shape))
    require_shapes(explicit, options.shape)
    header = CacheHeader(CalibrationAlgoType[ALGORITHMS[own.algorithm]], parse_version(own.tensorrt_version))
    policy = ImplicitPolicy(
        UnequalScales(own.unequal_scales),
        is_strict=own.strict,
        clips_weights=own.clip_weights,
        rounds_all=own.every_rounding,
        real_type=_real_type(own, options),
    )
    fixed = {name: asked[0] for name, asked in options.shape.items() if len(asked) == 1}
    translated = implicit_model(inlined(model), external, policy, fixed, folder)
    written = write_implicit_files(
        translated, own.output, own.model.stem, header, external, folder, unit_scales=own.unit_scales
    )
    config = create_config(translated.network, options)
    agreement = _compared(own, translated.network, config, explicit, options, translated.compared)
    report = {
        **_head(own, options, "implicit"),
        "files": [{"file": str(path), "use": use} for path, use in written.files.items()],
        **from_implicit(translated, written.notes),
        "proof": agreement_data(agreement),
    }
    return {**report, "summary": summary(report)}


def _with_int8(options: NetworkOptions) -> NetworkOptions:
    words = options.precision if "int8" in options.precision else (*options.precision, "int8")
    return attrs.evolve(options, precision=words)


def _real_type(own: TranslateOptions, options: NetworkOptions) -> DataType:
    """The type of layers that are not INT8."""
    from dryfit.network.data_types import DataType
    from dryfit.plugins import registry

    precisions = registry.target(options.default_device).precisions
    has_float = not precisions or DataType.FLOAT in precisions
    word = own.real_precision or ("fp32" if has_float else "fp16")
    return DataType.HALF if word == "fp16" else DataType.FLOAT


def _head(own: TranslateOptions, options: NetworkOptions, form: str) -> Report:
    return {"model": str(own.model), "to": form, "device": options.default_device.upper()}


# The comparison -------------------------------------------------------------------------------------------------------


def _compared(
    own: TranslateOptions,
    implicit: Network,
    config: BuilderConfig,
    explicit: Network,
    options: NetworkOptions,
    tensors: Mapping[str, TranslatedTensor],
) -> Agreement | None:
    """Build and run both; None where no samples were asked for."""
    if not own.samples:
        return None
    from dryfit.building import Builder

    config.builder_optimization_level = 0
    with log_to_stderr(logging.WARNING):
        first = Builder().build_engine(implicit, config)
    # Where the device takes no Q/DQ, every layer would say so.
    with log_to_stderr(logging.ERROR):
        second = _explicit_engine(explicit, options)
    return compare_engines(first, second, tensors, _samples(own, implicit, tensors))


def _explicit_engine(network: Network, options: NetworkOptions) -> Engine:
    """The Q/DQ network on the device, or where that takes no Q/DQ on the host, whose kernels compute the same."""
    from dryfit.building import Builder, assess
    from dryfit.network.layer import LAYER_KINDS
    from dryfit.plugins import registry

    plain = attrs.evolve(
        options, precision=(), layer_precisions=None, layer_output_types=None, calibration_cache=None, ranges=None
    )
    config = create_config(network, plain)
    placed = assess(network, config)
    quantizing = [one for one in placed.layers if LAYER_KINDS[one.kind].is_quantization]
    away = [one for one in quantizing if one.device != config.default_device_type]
    if away or not placed.can_be_built:
        host = registry.host().device
        plain = attrs.evolve(plain, device=host, platform=None, software=None, fallback=None, placement=None)
        config = create_config(network, attrs.evolve(plain, layer_device_types=None))
    config.builder_optimization_level = 0
    return Builder().build_engine(network, config)


def _samples(
    own: TranslateOptions, network: Network, tensors: Mapping[str, TranslatedTensor]
) -> Iterator[Mapping[str, Array]]:
    """Samples from the place that the user names, or random ones: normal, a third of the range its deviation."""
    if own.data is not None:
        from dryfit.quantization.calibration_data import source_of

        source = source_of(own.data)
        names = list(source.names(network))[: own.samples]
        yield from (feeds for _, feeds in itertools.islice(source.samples(names, network), own.samples))
        return
    random = np.random.default_rng(own.seed)
    for _ in range(own.samples):
        feeds: dict[str, Array] = {}
        for tensor in network.inputs:
            shape = tuple(max(extent, 1) for extent in tensor.shape)
            if tensor.dtype.is_floating_point:
                deviation = 127 / 3 * tensors[tensor.name].scale if tensor.name in tensors else 1.0
                feeds[tensor.name] = (random.standard_normal(shape) * deviation).astype(tensor.dtype.numpy)
            else:
                feeds[tensor.name] = random.integers(0, 2, shape).astype(tensor.dtype.numpy)
        yield feeds
