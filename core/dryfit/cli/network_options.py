"""The options that every command about a model shares: which device, which rules, which precision, which shapes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from dryfit.cli.engine_options import EngineOptions, engine_options
from dryfit.cli.io_format_options import IoFormatOptions, io_format_options
from dryfit.cli.layer_type_options import layer_type_options
from dryfit.cli.quantize_method_options import METHODS, network_method, quantize_method_option
from dryfit.cli.sparsity_options import sparsity_options

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
        quantize_methods: pattern of layers ("" for all) to name of a quantize method; see
            `dryfit.cli.quantize_method_options`.
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
    quantize_methods: METHODS = ()

    @property
    def network_method(self) -> str:
        """The quantize method of the network."""
        return network_method(self.quantize_methods)

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
        device: str | None,
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
        quantize_methods: METHODS,
        **others: Any,
    ) -> Any:
        options = NetworkOptions(
            device or _default_device(quantize_methods),
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
            quantize_methods,
        )
        return command(options=options, **others)

    decorated: Callable[..., Any] = with_options
    for option in reversed(
        [
            click.option("--device", show_default=_DEFAULTS, metavar="NAME", help="Device of the layers."),
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
            quantize_method_option,
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


_DEFAULTS = "GPU; with --quantize-method CPU"


def _default_device(quantize_methods: METHODS) -> str:
    """The device where none is named: of layers with quantize methods the only one that computes by them."""
    if not quantize_methods:
        return "GPU"
    from dryfit.plugins import registry

    return registry.host().device
