"""What the options that every command about a model shares describe: the network of a file, and a builder config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dryfit.cli.console import print_note
from dryfit.cli.layer_type_options import take_layer_types
from dryfit.cli.network_options import NetworkOptions
from dryfit.cli.placement_file import apply_placement
from dryfit.cli.precision_options import CONSTRAINTS, PRECISION_FLAGS, without_best
from dryfit.cli.quantize_method_options import take_quantize_methods
from dryfit.cli.shape_options import Shapes, shape_text
from dryfit.cli.sparsity_options import take_sparsity
from dryfit.errors import ConfigError
from dryfit.plugins import registry
from dryfit.short_text import count_text
from dryfit.target.target import platform_key

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.network.network import Network
    from dryfit.onnx.model_file import ModelSource


def load_model(
    source: ModelSource,
    shapes: Mapping[str, Shapes],
    folder: Path | None = None,
    flags: int = 0,
    quantize_method: str = "",
) -> Network:
    """The network of an ONNX file, its inputs set to the shapes that were asked for.

    Args:
        source: a path, or a model that was read already.
        shapes: what `--shape` said.
        folder: where the external data of a model that was read lie.
        flags: creation flags of the network.
        quantize_method: of the network.

    Raises:
        OnnxImportError: the file is damaged or has operators that are not supported.
        ConfigError: an input that was named does not exist, or its shape does not fit.
    """
    from dryfit.onnx.parser import network_from_onnx

    network = network_from_onnx(source, folder=folder, flags=flags, quantize_method=quantize_method)
    inputs = {tensor.name: tensor for tensor in network.inputs}
    for name, asked in shapes.items():
        if name not in inputs:
            raise ConfigError("The model has no such input", where="--shape", found=name, allowed=", ".join(inputs))
        tensor = inputs[name]
        for shape in asked:
            if len(shape) != len(tensor.shape) or any(
                fixed not in (-1, extent) for fixed, extent in zip(tensor.shape, shape, strict=True)
            ):
                raise ConfigError(
                    "The shape does not fit the model's input",
                    where=f"--shape {name}",
                    found=shape_text(shape),
                    allowed=_open_shape(tensor.shape),
                )
        if len(asked) == 1:
            tensor.shape = asked[0]
    return network


def require_shapes(network: Network, shapes: Mapping[str, Shapes]) -> None:
    """Refuse dynamic inputs of which `--shape` says nothing.

    Raises:
        ConfigError: names the inputs and the options that are missing.
    """
    from dryfit.builder.canonicalise import suggested_shape

    open_inputs = [tensor for tensor in network.inputs if -1 in tensor.shape and tensor.name not in shapes]
    if open_inputs:
        examples = [suggested_shape(tensor) for tensor in open_inputs]
        raise ConfigError(
            "Dynamic inputs need shapes",
            where="--shape",
            found=", ".join(f"{tensor.name} {_open_shape(tensor.shape)}" for tensor in open_inputs),
            remedy=f"Add {' '.join(examples)} (with the extents you need), or a range: --shape NAME=MIN:OPT:MAX",
        )


def _open_shape(shape: Sequence[int]) -> str:
    """A shape for people: `Nx3xHxW` has no names here, so that each unknown extent is an N."""
    return shape_text("N" if extent < 0 else extent for extent in shape)


def create_config(network: Network, options: NetworkOptions) -> BuilderConfig:
    """The builder config that the options describe.

    Raises:
        UnknownNameError: a device, platform or power mode does not exist.
        ConfigError: what was asked for does not fit together, or the placement fails.
        CalibrationError: a file of scales or ranges is damaged, or not of this network.
    """
    from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag

    config = BuilderConfig()
    config.default_device_type = options.device
    if options.platform is not None:
        config.set_platform(options.device, options.platform)
        _note_platform(config, options)
    if options.software is not None:
        config.set_software(options.device, options.software)
    if options.power_mode is not None:
        config.platform(options.device).power_mode(options.power_mode)  # refuses a name that the board does not have
        config.power_mode = options.power_mode
    for word in without_best(options.precisions, options.device):
        if word in PRECISION_FLAGS:
            config.set_flag(BuilderFlag[PRECISION_FLAGS[word]])
    constraint = CONSTRAINTS[options.precision_constraints or "none"]
    if constraint is not None:
        config.set_flag(BuilderFlag[constraint])
    if options.no_tf32:
        config.clear_flag(BuilderFlag.TF32)
    if options.dla_core is not None:
        config.DLA_core = options.dla_core
    config.allow_fallback(options.fallback_device)
    config.assume_scales = options.assume_scales
    _add_profile(config, options.shapes, options.shape_values)
    _take_scales(network, config, options)
    take_layer_types(network, options.layer_precisions, options.layer_output_types)
    take_quantize_methods(network, options.quantize_methods)
    options.io_formats.take(network, config)
    options.engine.take(config)
    # Last, so that a script can ask the config what can run where.
    apply_placement(options.placement, options.layer_device_types, network, config)
    take_sparsity(options.sparsity, network, config)
    return config


def _note_platform(config: BuilderConfig, options: NetworkOptions) -> None:
    """Say which board a name of several stands for."""
    asked, platform = platform_key(str(options.platform)), config.platform(options.device)
    target = registry.target(options.device)
    alike = [one for one in target.platforms if one.name.startswith(f"{asked}-")]
    if asked in platform.aliases and platform in alike[:1] and alike[1:]:
        boards = ", ".join(f"{one.name} ({count_text(one.cores, f'{target.device} core')})" for one in alike)
        print_note(f"Note: --platform {options.platform} is taken as {platform.name}. Boards of this name: {boards}.")


def _take_scales(network: Network, config: BuilderConfig, options: NetworkOptions) -> None:
    """Set the ranges of the files that the options name."""
    if options.calibration_cache is not None:
        config.calibration_cache = options.calibration_cache
    if options.ranges is not None:
        from dryfit.quantization.cache_forms import read_ranges, set_ranges

        set_ranges(network, read_ranges(options.ranges), str(options.ranges))


def _add_profile(config: BuilderConfig, shapes: Mapping[str, Shapes], values: Mapping[str, Shapes]) -> None:
    """One optimization profile of the inputs for which a range, or values, were given."""
    from dryfit.builder.config.optimization_profile import OptimizationProfile

    ranges = {name: asked for name, asked in shapes.items() if len(asked) == 3}
    if ranges or values:
        profile = OptimizationProfile()
        for name, (least, best, largest) in ranges.items():
            profile.set_shape(name, least, best, largest)
        for name, asked in values.items():
            profile.set_shape_input(name, asked[0], asked[len(asked) // 2], asked[-1])
        config.add_optimization_profile(profile)
