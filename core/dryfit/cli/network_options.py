"""The options that every command about a model shares: which device, which rules, which precision, which shapes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from dryfit.cli.engine_options import EngineOptions, engine_options
from dryfit.cli.io_format_options import IoFormatOptions, io_format_options
from dryfit.cli.layer_type_options import layer_type_options, take_layer_types
from dryfit.cli.placement_file import apply_placement
from dryfit.cli.sparsity_options import sparsity_options, take_sparsity
from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.network.network import Network
    from dryfit.onnx.model_file import ModelSource

Shapes = tuple[tuple[int, ...], ...]
"""One shape, or (minimum, optimum, maximum)."""

PRECISION_FLAGS = {"fp16": "FP16", "int8": "INT8", "bf16": "BF16", "fp8": "FP8"}
"""The words of `--precision` to builder flags; `fp32` needs none."""


@attrs.frozen
class NetworkOptions:
    """What the shared options said.

    Attributes:
        device: default device of the layers.
        platform, software: variant and software version of that device; None for its defaults.
        precisions: allowed computation types.
        fallback: device of the layers that the default device refuses; None for no fallback.
        assume_scales: whether every tensor is taken to have an INT8 scale.
        shapes: input name to its shape or to (minimum, optimum, maximum).
        placement: a script, rules or JSON that say where single layers run; see `dryfit.cli.placement_file`.
        shape_values: name of an input that carries dimensions to its values or to (minimum, optimum, maximum).
        layer_device_types: the same for single layers in one line, as trtexec spells it.
        calibration_cache: a file of scales that calibration found.
        ranges: a file of dynamic ranges, which win over the cache.
        strongly_typed: whether every layer is computed in the types that the model has.
        layer_precisions, layer_output_types: types of single layers and of their outputs, as trtexec spells them, or @
            and the name of a file with such a list.
        power_mode: of the board, for estimates; None for the platform's default.
        io_formats: types and formats of inputs and outputs.
        engine: what kind of engine is built, and limits of memory pools.
        sparsity: `disable`, `enable` or `force`: whether zeros of weights count, and are made by pruning.
    """

    device: str
    platform: str | None
    software: str | None
    precisions: tuple[str, ...]
    fallback: str | None
    assume_scales: bool
    shapes: Mapping[str, Shapes]
    placement: Path | None
    layer_device_types: str | None = None
    shape_values: Mapping[str, Shapes] = attrs.field(factory=dict)
    calibration_cache: Path | None = None
    ranges: Path | None = None
    strongly_typed: bool = False
    layer_precisions: str | None = None
    layer_output_types: str | None = None
    power_mode: str | None = None
    io_formats: IoFormatOptions = attrs.field(factory=IoFormatOptions)
    engine: EngineOptions = attrs.field(factory=EngineOptions)
    sparsity: str = "disable"

    @property
    def creation_flags(self) -> int:
        """The creation flags of the network."""
        from dryfit.network.creation_flags import NetworkDefinitionCreationFlag

        return self.strongly_typed << NetworkDefinitionCreationFlag.STRONGLY_TYPED


class PrecisionList(click.ParamType):
    """`fp16,int8` as a tuple of words."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words, in lower case."""
        if isinstance(value, tuple):
            return value
        words = tuple(word.strip().lower() for word in str(value).split(",") if word.strip())
        for word in words:
            if word not in PRECISION_FLAGS and word != "fp32":
                self.fail(f"{word!r} is none of fp32, {', '.join(PRECISION_FLAGS)}", param, ctx)
        return words


class NamedShape(click.ParamType):
    """`x=1x3x224x224`, or the least, the best and the largest shape `x=1x8:4x8:16x8`, as (name, shapes).

    Args:
        is_signed: whether the numbers may be negative, as values may and extents may not.
    """

    name = "shape"

    def __init__(self, *, is_signed: bool = False) -> None:
        self._pattern = r"-?\d+(x-?\d+)*" if is_signed else r"\d+(x\d+)*"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Shapes]:
        """The name, which may contain any character, and one shape or three."""
        name, equals, text = str(value).rpartition("=")
        parts = text.split(":")
        if not equals or len(parts) not in (1, 3) or not all(re.fullmatch(self._pattern, part) for part in parts):
            self.fail(f"{value!r} is not like x=1x3x224x224 or x=1x8:4x8:16x8", param, ctx)
        return name, tuple(tuple(int(extent) for extent in part.split("x")) for part in parts)


def network_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the shared options; it gets them as `options`."""

    @functools.wraps(command)
    def with_options(
        device: str,
        platform: str | None,
        power_mode: str | None,
        software: str | None,
        precision: tuple[str, ...],
        fallback: str | None,
        assume_scales: bool,
        shape: tuple[tuple[str, Shapes], ...],
        shape_values: tuple[tuple[str, Shapes], ...],
        placement: Path | None,
        layer_device_types: str | None,
        int8: bool,
        calibration_cache: Path | None,
        ranges: Path | None,
        strongly_typed: bool,
        layer_precisions: str | None,
        layer_output_types: str | None,
        input_io_formats: str | None,
        output_io_formats: str | None,
        direct_io: bool,
        engine_capability: str,
        standalone: bool,
        mem_pool_size: str | None,
        sparsity: str,
        **others: Any,
    ) -> Any:
        options = NetworkOptions(
            device,
            platform,
            software,
            (*precision, "int8") if int8 and "int8" not in precision else precision,
            fallback,
            assume_scales,
            dict(shape),
            placement,
            layer_device_types,
            dict(shape_values),
            calibration_cache,
            ranges,
            strongly_typed,
            layer_precisions,
            layer_output_types,
            power_mode,
            IoFormatOptions(input_io_formats, output_io_formats, direct_io),
            EngineOptions(engine_capability, standalone, mem_pool_size),
            sparsity,
        )
        return command(options=options, **others)

    decorated: Callable[..., Any] = with_options
    for option in reversed(
        [
            click.option("--device", default="GPU", show_default=True, metavar="NAME", help="Device of the layers."),
            click.option("--platform", metavar="NAME", help="Variant of the device, such as agx-orin-64."),
            click.option("--power-mode", metavar="NAME", help="Power mode of the board, for estimates, such as MAXN."),
            click.option("--software", metavar="VERSION", help="Software version whose rules hold, such as 10.3."),
            click.option(
                "--precision", type=PrecisionList(), default=(), metavar="LIST", help="Such as fp16 or fp16,int8."
            ),
            click.option("--fallback", metavar="NAME", help="Device of layers that cannot run on --device."),
            click.option("--assume-scales", is_flag=True, help="Take every tensor to have an INT8 scale."),
            click.option(
                "--shape",
                multiple=True,
                type=NamedShape(),
                metavar="NAME=SHAPE",
                help="Shape of an input, such as x=1x3x224x224, or its least, best and largest: x=1x8:4x8:16x8.",
            ),
            click.option(
                "--shape-values",
                multiple=True,
                type=NamedShape(is_signed=True),
                metavar="NAME=VALUES",
                help="Values of an input that carries dimensions, such as size=2x3, or a range: size=1x1:2x3:4x6.",
            ),
            click.option(
                "--placement",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE",
                help="Devices of single layers: a script (.py) with place(network, config), or rules, one a line: "
                "pattern = DEVICE, by layer name, kind:KIND or onnx:NODE; the last match wins.",
            ),
            click.option(
                "--layer-device-types",
                metavar="NAME:DEVICE,...",
                help="Devices of single layers, as trtexec spells them; wins over --placement.",
            ),
            click.option("--int8", is_flag=True, help="The same as int8 in --precision."),
            click.option(
                "--calibration-cache",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE",
                help="INT8 scales that calibration found, as `dryfit calibrate` or TensorRT wrote them.",
            ),
            click.option(
                "--ranges",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE",
                help="Dynamic ranges, `tensor: range` a line; they win over --calibration-cache.",
            ),
            *layer_type_options,
            *io_format_options,
            *engine_options,
            *sparsity_options,
            click.option(
                "--strongly-typed",
                "--stronglyTyped",
                is_flag=True,
                help="Compute every layer in the types that the model has; excludes --precision and scales.",
            ),
        ]
    ):
        decorated = option(decorated)
    return decorated


def load_model(
    source: ModelSource, shapes: Mapping[str, Shapes], folder: Path | None = None, flags: int = 0
) -> Network:
    """The network of an ONNX file, its inputs set to the shapes that were asked for.

    Args:
        source: a path, or a model that was read already.
        shapes: what `--shape` said.
        folder: where the external data of a model that was read lie.
        flags: creation flags of the network.

    Raises:
        OnnxImportError: the file is damaged or has operators that are not supported.
        ConfigError: an input that was named does not exist, or its shape does not fit.
    """
    from dryfit.onnx.parser import network_from_onnx

    network = network_from_onnx(source, folder=folder, flags=flags)
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
                    found="x".join(map(str, shape)),
                    allowed="x".join("any" if extent < 0 else str(extent) for extent in tensor.shape),
                )
        if len(asked) == 1:
            tensor.shape = asked[0]
    return network


def require_shapes(network: Network, shapes: Mapping[str, Shapes]) -> None:
    """Refuse dynamic inputs of which `--shape` says nothing.

    Raises:
        ConfigError: names the inputs and the options that are missing.
    """
    open_inputs = [tensor for tensor in network.inputs if -1 in tensor.shape and tensor.name not in shapes]
    if open_inputs:
        examples = [
            f"--shape {tensor.name}={'x'.join('N' if extent < 0 else str(extent) for extent in tensor.shape)}"
            for tensor in open_inputs
        ]
        raise ConfigError(
            "A model's dynamic inputs need shapes",
            where="--shape",
            found=", ".join(f"{tensor.name!r} {tensor.shape}" for tensor in open_inputs),
            remedy=f"Add {' '.join(examples)}, with a number for each N, or the least, best and largest shape: "
            "--shape NAME=LEAST:BEST:LARGEST",
        )


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
    if options.software is not None:
        config.set_software(options.device, options.software)
    if options.power_mode is not None:
        config.platform(options.device).power_mode(options.power_mode)  # refuses a name that the board does not have
        config.power_mode = options.power_mode
    for word in options.precisions:
        if word in PRECISION_FLAGS:
            config.set_flag(BuilderFlag[PRECISION_FLAGS[word]])
    config.allow_fallback(options.fallback)
    config.assume_scales = options.assume_scales
    _add_profile(config, options.shapes, options.shape_values)
    _take_scales(network, config, options)
    take_layer_types(network, options.layer_precisions, options.layer_output_types)
    options.io_formats.take(network, config)
    options.engine.take(config)
    # Last, so that a script can ask the config what can run where.
    apply_placement(options.placement, options.layer_device_types, network, config)
    take_sparsity(options.sparsity, network, config)
    return config


def _take_scales(network: Network, config: BuilderConfig, options: NetworkOptions) -> None:
    """Set the ranges of the files that the options name."""
    if options.calibration_cache is not None:
        config.calibration_cache = options.calibration_cache
    if options.ranges is not None:
        from dryfit.quantization.range_file import read_ranges, set_ranges

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
