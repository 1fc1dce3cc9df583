"""Convert a network and its config to a build for the board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dryfit.attrs_classes import frozen
from dryfit.board.board_build import BoardBuild
from dryfit.board.versions import Version, require_known, words_by_name
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag, DeviceType, QuantizationFlag
from dryfit.builder.config.quantization_mode import QuantizationMode, quantization_mode
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization.int8_steps import DynamicRange

TENSORRT_DEVICES = (str(DeviceType.GPU), str(DeviceType.DLA))

HOST_SETTINGS: Mapping[str, str] = {
    "kernels": "Host kernels chosen for layers are left out",
    "forbidden_kernels": "Forbidden host kernels are left out",
    "platforms": "",
    "power_mode": "",
}
"""Settings that the board is not told of, with the note that they are worth."""


@frozen
class ExportedBuild:
    """The build of a config, with notes.

    Attributes:
        build: build for the board.
        notes: config settings without effect on the board, in sentences.
    """

    build: BoardBuild
    notes: tuple[str, ...] = ()


def board_build(network: Network, config: BuilderConfig, software: Version) -> ExportedBuild:
    """Return the board build that a config describes.

    Args:
        network: the user's network, imported from ONNX, with dynamic inputs left dynamic.
        config: config of the network.
        software: TensorRT version of the board.

    Raises:
        ConfigError: This version is not supported, or the config uses devices that TensorRT does not have, sets
            conflicting values for the layers of one ONNX node, or has a calibrator that has not run. The message lists
            all reasons.
    """
    require_known(software)
    explicit = config.explicit_device_types(network)
    devices, contradictions, notes = words_by_name(
        network, [(network.layer(name), device) for name, device in explicit.items()], "The device"
    )
    precisions, more, partial = words_by_name(
        network, [(layer, layer.precision) for layer in network.layers if layer.precision is not None], "The precision"
    )
    output_types, others, parts = words_by_name(network, _output_types(network), "The output types")
    problems = [*contradictions, *more, *others, *_foreign(config, explicit)]
    mode = quantization_mode(network, config)
    is_implicit = mode is QuantizationMode.IMPLICIT
    scales = _scales(network, config)
    if is_implicit and config.has_calibrator:
        problems.append("the config has a calibrator; run `dryfit calibrate` and give its cache instead")
    if problems:
        raise ConfigError(
            "TensorRT does not support this config",
            found="; ".join(problems),
            remedy="Change these settings of the config",
        )
    settings = config.settings(network)
    notes += [*partial, *parts, *(text for key, text in HOST_SETTINGS.items() if text and settings.get(key))]
    notes += _scale_notes(mode, config) if scales else ()
    build = BoardBuild(
        software,
        frozenset(flag for flag in BuilderFlag if config.get_flag(flag)),
        config.default_device_type,
        config.DLA_core,
        config.engine_capability,
        devices,
        precisions,
        output_types,
        _formats(network.inputs),
        _formats(network.outputs),
        settings["memory_pool_limits"],
        tuple(_profiles(network, config)),
        scales if is_implicit and scales else None,
        is_implicit and config.assume_scales and not scales,
        network.is_strongly_typed,
        frozenset(flag for flag in QuantizationFlag if config.get_quantization_flag(flag)),
        config.profiling_verbosity,
        config.builder_optimization_level,
    )
    return ExportedBuild(build, tuple(dict.fromkeys(notes)))


def _scale_notes(mode: QuantizationMode, config: BuilderConfig) -> Iterator[str]:
    """Return notes on the given scales."""
    if mode is not QuantizationMode.IMPLICIT:
        because = "the model has Q and DQ nodes" if mode is QuantizationMode.EXPLICIT else "the flag INT8 is off"
        yield f"The scales are left out, because {because}"
    elif config.assume_scales:
        yield "Placeholder scales cannot be combined with given scales"


def _foreign(config: BuilderConfig, explicit: Mapping[str, str]) -> Iterator[str]:
    """Return the devices that TensorRT does not have."""
    known = " and ".join(TENSORRT_DEVICES)
    if config.default_device_type not in TENSORRT_DEVICES:
        yield f"the default device is {config.default_device_type}, and TensorRT has {known}"
    if config.fallback_device not in (None, DeviceType.GPU):
        yield f"layers fall back to {config.fallback_device}, and TensorRT has the GPU for that"
    for name, device in explicit.items():
        if device not in TENSORRT_DEVICES:
            yield f"layer {name!r} is for {device}, and TensorRT has {known}"


def _output_types(network: Network) -> Iterator[tuple[Layer, tuple[DataType, ...]]]:
    """Return layers with their output types; types of the network's outputs are part of their formats."""
    for layer in network.layers:
        tensors = [layer.outputs[index] for index in layer.output_types]
        if any(not one.is_network_output or (one.allowed_formats is None and one.io_dtype is None) for one in tensors):
            yield layer, tuple(map(layer.get_output_type, range(len(layer.outputs))))


def _formats(tensors: tuple[Tensor, ...] | list[Tensor]) -> tuple[IoFormat, ...]:
    """Return the types and formats of all inputs or outputs; empty if the network sets none."""
    is_stated = any(one.allowed_formats is not None or one.io_dtype is not None for one in tensors)
    return tuple(map(IoFormat.of, tensors)) if is_stated else ()


def _profiles(network: Network, config: BuilderConfig) -> Iterator[ProfileShapes]:
    """Return the profiles, without inputs that have a fixed shape; none if no input is left."""
    dynamic = {tensor.name for tensor in network.inputs if -1 in tensor.shape}
    for index in range(config.num_optimization_profiles):
        profile = config.get_optimization_profile(index)
        shapes = {name: triple for name, triple in profile.shapes.items() if name in dynamic}
        if shapes or profile.shape_values:
            yield ProfileShapes(shapes, dict(profile.shape_values))


def _scales(network: Network, config: BuilderConfig) -> dict[str, float]:
    """Return scale by tensor: those of the cache, overridden by those set by the user."""
    cache = config.calibration_cache
    by_hand = {
        tensor.name: DynamicRange(*tensor.dynamic_range).scale
        for tensor in network.tensors
        if tensor.dynamic_range is not None
    }
    return {**({} if cache is None else cache.scales), **by_hand}
