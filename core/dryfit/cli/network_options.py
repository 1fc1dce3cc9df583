"""The options that every command about a model shares: which device, which rules, which precision, which shapes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from dryfit.cli.device_options import NO_FALLBACK, NamedDevice, device_options
from dryfit.cli.engine_options import EngineOptions, engine_options
from dryfit.cli.io_format_options import IoFormatOptions, io_format_options
from dryfit.cli.layer_type_options import layer_type_options
from dryfit.cli.precision_options import precision_options, taken_precisions
from dryfit.cli.quantize_method_options import METHODS, network_method, quantize_method_option
from dryfit.cli.shape_options import Shapes, flat_shapes, shape_options, taken_shapes
from dryfit.cli.sparsity_options import sparsity_options


@attrs.frozen
class NetworkOptions:
    """What the shared options said.

    Attributes:
        device: default device of the layers.
        platform, software: variant and software version of that device; None for its defaults.
        precisions: allowed computation types.
        fallback: device of the layers that the default device refuses, or `NO_FALLBACK`; None where nothing was said,
            which is no fallback but for the commands that have a default.
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
        is_device_default: whether no option named the device.
        dla_core: which DLA of the board; None where nothing was said.
        precision_constraints: a word of `dryfit.cli.precision_options.CONSTRAINTS`; None where nothing was said.
        no_tf32: whether the flag TF32 is cleared.
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
    is_device_default: bool = attrs.field(default=False, eq=False)
    dla_core: int | None = None
    precision_constraints: str | None = None
    no_tf32: bool = False

    @property
    def fallback_device(self) -> str | None:
        """The device of refused layers; None for no fallback."""
        return None if self.fallback is None or self.fallback.lower() == NO_FALLBACK else self.fallback

    @property
    def network_method(self) -> str:
        """The quantize method of the network."""
        return network_method(self.quantize_methods)

    @property
    def creation_flags(self) -> int:
        """The creation flags of the network."""
        from dryfit.network.creation_flags import NetworkDefinitionCreationFlag

        return self.strongly_typed << NetworkDefinitionCreationFlag.STRONGLY_TYPED


def network_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the shared options; it gets them as `options`."""

    @functools.wraps(command)
    def with_options(**values: Any) -> Any:
        return command(options=_taken(values), **values)

    # click reads the command's name and text from the function, and nothing else.
    with_options.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    decorated: Callable[..., Any] = with_options
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _taken(values: dict[str, Any]) -> NetworkOptions:
    """Take the shared options out of the values of all options."""
    device = NamedDevice.taken(values)
    formats = (values.pop(name) for name in ("input_io_formats", "output_io_formats", "direct_io"))
    engine = (values.pop(name) for name in ("engine_capability", "standalone", "mem_pool_size"))
    own: dict[str, Any] = {
        "device": device.name,
        "is_device_default": device.is_default,
        "fallback": device.fallback,
        "dla_core": device.dla_core,
        "precisions": taken_precisions(values),
        "shapes": taken_shapes(values),
        "shape_values": flat_shapes(values.pop("shape_values")),
        "io_formats": IoFormatOptions(*formats),
        "engine": EngineOptions(*engine),
    }
    plain = [field.name for field in attrs.fields(NetworkOptions) if field.name not in own]
    return NetworkOptions(**own, **{name: values.pop(name) for name in plain})


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    *device_options,
    *precision_options,
    click.option("--assume-scales", is_flag=True, help="Take every tensor to have an INT8 scale."),
    *shape_options,
    click.option(
        "--placement",
        type=_FILE,
        metavar="FILE",
        help="Devices of single layers: a script (.py) with place(network, config), or rules, one a line: "
        "pattern = DEVICE, by layer name, kind:KIND or onnx:NODE; the last match wins.",
    ),
    click.option(
        "--layer-device-types",
        "--layerDeviceTypes",
        metavar="NAME:DEVICE,...",
        help="Devices of single layers, as trtexec spells them; wins over --placement.",
    ),
    click.option(
        "--calibration-cache",
        "--calib",
        "calibration_cache",
        type=_FILE,
        metavar="FILE",
        help="INT8 scales that calibration found, as `dryfit calibrate` or TensorRT wrote them.",
    ),
    click.option(
        "--ranges",
        type=_FILE,
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
)
