"""The keyword arguments of questions about a model, which are also the command line's options.

`Options` types the keywords of public functions; `NetworkOptions` stores the given options in one canonical form.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.target.overlay_file import read_overlay
from dryfit.target.overlays import Overlay

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.network.network import Network

NO_FALLBACK = "none"
"""The word for no fallback at all."""
PRECISION_FLAGS = {"fp16": "FP16", "int8": "INT8", "bf16": "BF16", "fp8": "FP8"}
"""Words of `precision` to builder flags; `fp32` needs none."""
BEST = "best"
"""The word for every type that the device computes in."""
CONSTRAINTS = {"obey": "OBEY_PRECISION_CONSTRAINTS", "prefer": "PREFER_PRECISION_CONSTRAINTS", "none": None}
"""Words of `precision_constraints` to builder flags."""
CAPABILITIES = ("standard", "safety", "dla_standalone")
INPUT_FORMATS, OUTPUT_FORMATS, DIRECT_IO = "--input-io-formats", "--output-io-formats", "--direct-io"
SPARSITY = ("disable", "enable", "force")
Sparsity = Literal["disable", "enable", "force"]
ALGORITHMS = {
    "entropy": "ENTROPY_CALIBRATION",
    "entropy2": "ENTROPY_CALIBRATION_2",
    "minmax": "MINMAX_CALIBRATION",
    "legacy": "LEGACY_CALIBRATION",
}
"""Names of calibrators to TensorRT's algorithms."""

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]
"""One shape, or (minimum, optimum, maximum)."""
ShapesSaid = Mapping[str, "str | Sequence[int] | Sequence[Sequence[int]]"] | str
"""`{"x": (1, 3, 224, 224)}`, `{"x": ((1, 8), (4, 8), (16, 8))}`, or the command line's `"x=1x8:4x8:16x8"`."""
OverlaysSaid = str | os.PathLike[str] | Overlay | Sequence[str | os.PathLike[str] | Overlay]
"""Overlays, or paths of their files."""
Place = Callable[["Network", "BuilderConfig"], object]
"""A placement script's function: it sets devices of layers."""

_NUMBERS = r"-?\d+(?:x-?\d+)*"
_ONE_OR_THREE = rf"{_NUMBERS}(?::{_NUMBERS}:{_NUMBERS})?"
_EQUALS = re.compile(rf"(?P<name>.+)=(?P<shapes>{_ONE_OR_THREE})", re.DOTALL)
_COLON_RANGE = re.compile(rf"(?P<name>.+):(?P<shapes>{_NUMBERS}:{_NUMBERS}:{_NUMBERS})", re.DOTALL)
_COLON = re.compile(rf"(?P<name>.+):(?P<shapes>{_NUMBERS})", re.DOTALL)


class Options(TypedDict, total=False):
    """Keyword arguments of questions about a model, named like the command-line options; a missing one has its default.

    `example_inputs` applies to PyTorch modules only: tensors, in the form that torch.onnx.export expects.
    """

    device: str | None
    platform: str | None
    power_mode: str | None
    software: str | None
    fallback: str | None
    use_dla_core: int | None
    precision: str | Iterable[str]
    precision_constraints: str | None
    no_tf32: bool
    strongly_typed: bool
    assume_scales: bool
    calibration_cache: str | os.PathLike[str] | None
    ranges: str | os.PathLike[str] | None
    shape: ShapesSaid
    shape_values: ShapesSaid
    placement: str | os.PathLike[str] | Mapping[str, str] | Place | None
    layer_device_types: str | None
    layer_precisions: str | None
    layer_output_types: str | None
    input_io_formats: str | None
    output_io_formats: str | None
    direct_io: bool
    engine_capability: str
    standalone: bool
    mem_pool_size: str | Mapping[str, float] | None
    sparsity: str
    quantize_method: str | Mapping[str, str] | Sequence[tuple[str, str]]
    overlays: OverlaysSaid
    example_inputs: Any


def parse_named_shapes(text: str) -> tuple[tuple[str, Shapes], ...] | None:
    """Parse names and shapes: `x=1x3x8x8`, `x=1x8:4x8:16x8` or trtexec's `x:1x3x8x8,y:1x8`; None for other strings."""
    whole = _EQUALS.fullmatch(text) or _COLON_RANGE.fullmatch(text)
    matches = [whole] if whole else [_COLON.fullmatch(entry) for entry in text.split(",")]
    found = [match for match in matches if match is not None]
    if len(found) != len(matches):
        return None
    return tuple((match["name"], _shapes(match["shapes"])) for match in found)


def shape_text(shape: Iterable[int | str]) -> str:
    """Format a shape for the command line: `1x3x224x224`."""
    return "x".join(map(str, shape))


def _shapes(said: str | Sequence[int] | Sequence[Sequence[int]]) -> Shapes:
    if isinstance(said, str):
        return tuple(tuple(int(extent) for extent in shape.split("x")) for shape in said.split(":"))
    parts = [tuple(part) if isinstance(part, Sequence) else part for part in said]
    found: Any = tuple(parts) if parts and isinstance(parts[0], tuple) else (tuple(parts),)
    if len(found) not in (1, 3) or not all(isinstance(one, int) for shape in found for one in shape):
        raise ValueError(said)
    return tuple(found)


def _named_shapes(said: ShapesSaid) -> dict[str, Shapes]:
    try:
        if isinstance(said, str):
            return dict(parse_named_shapes(said) or _malformed(said))
        return {name: _shapes(one) for name, one in said.items()}
    except (TypeError, ValueError) as error:
        raise _wrong("shape", said, "x=1x3x224x224, or {'x': (1, 3, 224, 224)}; three shapes for a range") from error


def _malformed(said: str) -> Any:
    raise ValueError(said)


def _precisions(said: str | Iterable[str]) -> tuple[str, ...]:
    parts = said.split(",") if isinstance(said, str) else said
    words = tuple(dict.fromkeys(word.strip().lower() for word in parts if word.strip()))
    known = ("fp32", *PRECISION_FLAGS, BEST)
    for word in words:
        if word not in known:
            raise UnknownNameError("precision", word, known, where="--precision")
    return words


def _methods(said: str | Mapping[str, str] | Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if isinstance(said, str):
        pattern, equals, method = (part.strip() for part in said.rpartition("="))
        if said and (not method or bool(pattern) != bool(equals)):
            raise _wrong("quantize_method", said, "tflite, or conv1=onnx for layers that a pattern matches")
        return ((pattern, method),) if said else ()
    pairs = said.items() if isinstance(said, Mapping) else said
    return tuple((pattern, method) for pattern, method in pairs)


def option_name(name: str) -> str:
    """Return a keyword argument as the option of a command: `--power-mode`."""
    return "--overlay" if name == "overlays" else f"--{name.replace('_', '-')}"


def _overlays(said: Any) -> tuple[Overlay, ...]:
    several = [said] if isinstance(said, str | os.PathLike | Overlay) else said
    return tuple(one if isinstance(one, Overlay) else read_overlay(one) for one in several)


def _pools(said: str | Mapping[str, float] | None) -> str | None:
    return ",".join(f"{pool}:{size}" for pool, size in said.items()) if isinstance(said, Mapping) else said


def _path(said: str | os.PathLike[str] | None) -> Path | None:
    return None if said is None else Path(said)


def _placement(said: Any) -> Any:
    return Path(said) if isinstance(said, str | os.PathLike) else said


def _lower(said: str) -> str:
    return said.lower()


def one_of(allowed: Sequence[str]) -> Callable[[Any, Any, Any], None]:
    """Return a validator that accepts only these words."""

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and value not in allowed:
            raise UnknownNameError("word", str(value), allowed, where=f"--{attribute.name.replace('_', '-')}")

    return check


def _wrong(option: str, found: object, allowed: str) -> ConfigError:
    where = f"--{option.replace('_', '-')}"
    return ConfigError(
        "The option value has the wrong form",
        where=where,
        found=repr(found),
        allowed=allowed,
        remedy="Write the value in the allowed form",
    )


@frozen(kw_only=True)
class NetworkOptions:
    """The given options to place, compute and build a model. None, "" or empty: the option was not given.

    Attributes:
        device: default device of the layers; None to use `default_device`.
        platform: platform of that device, such as `agx-orin-64`.
        power_mode: power mode of the board for estimates, such as `MAXN`.
        software: software version of that device whose rules apply, such as `10.3` or `jetpack-6.1`.
        fallback: device for layers that the default device rejects, or `none`.
        use_dla_core: DLA core of the board; without a device, every layer is assigned to the DLA.
        precision: allowed computation types besides FP32: `fp16`, `int8`, `bf16`, `fp8`; `best` for all types of the
            device.
        precision_constraints: handling of a layer precision that cannot be granted: `obey` or `prefer`.
        no_tf32: whether to clear the TF32 flag.
        strongly_typed: whether to compute every layer in the types of the model.
        assume_scales: whether to assume that every tensor has an INT8 scale.
        calibration_cache: file of scales from a calibration.
        ranges: file of dynamic ranges, which override the cache.
        shape: shape, or (minimum, optimum, maximum) shapes, by input name.
        shape_values: values, or (minimum, optimum, maximum) values, by name of an input that carries dimensions.
        placement: devices of single layers: the path of a script or of rules, a mapping of patterns to devices, or a
            function called with network and config.
        layer_device_types: devices of single layers, in trtexec syntax; they override `placement`.
        layer_precisions, layer_output_types: types of single layers and of their outputs, in trtexec syntax, or @
            followed by the name of a file with such a list.
        input_io_formats, output_io_formats: types and formats of inputs and outputs, in trtexec syntax.
        direct_io: whether a copy at an input or output with a set format is an error.
        engine_capability: `standard`, `safety` or `dla_standalone`.
        standalone: whether to build a single loadable, as trtexec's --buildDLAStandalone does.
        mem_pool_size: memory pool limits in MiB, in trtexec syntax, or MiB by pool.
        sparsity: `disable`, `enable` or `force`: whether weight zeros are used, or also created by pruning.
        quantize_method: name of a quantize method by layer pattern ("" for all).
        overlays: what boards showed, as corrections of rules and cost parameters: overlays, or paths of their files.
    """

    device: str | None = None
    platform: str | None = None
    power_mode: str | None = None
    software: str | None = None
    fallback: str | None = None
    use_dla_core: int | None = None
    precision: tuple[str, ...] = attrs.field(default=(), converter=_precisions)
    precision_constraints: str | None = attrs.field(default=None, validator=one_of(tuple(CONSTRAINTS)))
    no_tf32: bool = False
    strongly_typed: bool = False
    assume_scales: bool = False
    calibration_cache: Path | None = attrs.field(default=None, converter=_path)
    ranges: Path | None = attrs.field(default=None, converter=_path)
    shape: Mapping[str, Shapes] = attrs.field(factory=dict, converter=_named_shapes)
    shape_values: Mapping[str, Shapes] = attrs.field(factory=dict, converter=_named_shapes)
    placement: Path | Mapping[str, str] | Place | None = attrs.field(default=None, converter=_placement)
    layer_device_types: str | None = None
    layer_precisions: str | None = None
    layer_output_types: str | None = None
    input_io_formats: str | None = None
    output_io_formats: str | None = None
    direct_io: bool = False
    engine_capability: str = attrs.field(default="standard", converter=_lower, validator=one_of(CAPABILITIES))
    standalone: bool = False
    mem_pool_size: str | None = attrs.field(default=None, converter=_pools)
    sparsity: Sparsity = attrs.field(default="disable", validator=one_of(SPARSITY))
    quantize_method: tuple[tuple[str, str], ...] = attrs.field(default=(), converter=_methods)
    overlays: tuple[Overlay, ...] = attrs.field(default=(), converter=_overlays)

    @property
    def fingerprint(self) -> str:
        """A text that differs for options that differ."""
        return json.dumps(
            {name: str(value) for name, value in attrs.asdict(self, recurse=False).items()}, sort_keys=True
        )

    @classmethod
    def said(cls, options: Mapping[str, Any]) -> NetworkOptions:
        """Create the record from keyword arguments.

        Raises:
            UnknownNameError: An option or option value does not exist; the message names the closest one.
            ConfigError: An option has the wrong form.
        """
        known = [field.name for field in attrs.fields(cls)]
        for name in options:
            if name not in known:
                raise UnknownNameError("option", name, known)
        return cls(**options)

    @property
    def names_device(self) -> bool:
        """Whether a device was given."""
        return self.device is not None or (self.use_dla_core is not None and self.use_dla_core >= 0)

    @property
    def default_device(self) -> str:
        """Default device of the layers: the given device, else the GPU; the host for quantize methods."""
        if self.device is not None:
            return self.device
        if self.use_dla_core is not None and self.use_dla_core >= 0:
            return "DLA"
        if not self.quantize_method:
            return "GPU"
        from dryfit.plugins import registry

        return registry.host().device

    @property
    def fallback_device(self) -> str | None:
        """Device for rejected layers; None if fallback is disabled."""
        return None if self.fallback is None or self.fallback.lower() == NO_FALLBACK else self.fallback

    @property
    def is_standalone(self) -> bool:
        """Whether a single loadable is requested, with nothing else running."""
        return self.standalone or self.engine_capability == "dla_standalone"

    @property
    def network_method(self) -> str:
        """Quantize method of the network: the last one without a pattern; "none" if only layers have one."""
        own = (method for pattern, method in reversed(self.quantize_method) if not pattern)
        return next(own, "none" if self.quantize_method else "")

    @property
    def fixed_shapes(self) -> dict[str, Shape]:
        """Shape by input name, for inputs with a single shape."""
        return {name: shapes[0] for name, shapes in self.shape.items() if len(shapes) == 1}

    @property
    def creation_flags(self) -> int:
        """Network creation flags."""
        from dryfit.network.creation_flags import NetworkDefinitionCreationFlag

        return self.strongly_typed << NetworkDefinitionCreationFlag.STRONGLY_TYPED
