"""The options that every command about a model shares: devices, precisions, shapes, scales, formats, engine.

A command gets those that were given as keyword arguments of the question that it asks; see `dryfit.answers.options`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import click
from click.shell_completion import CompletionItem

from dryfit.answers.options import (
    BEST,
    CAPABILITIES,
    CONSTRAINTS,
    NO_FALLBACK,
    PRECISION_FLAGS,
    SPARSITY,
    NetworkOptions,
    Options,
    Shapes,
    parse_named_shapes,
)
from dryfit.cli import completion

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NamedShapes = tuple[tuple[str, Shapes], ...]


class PrecisionList(click.ParamType):
    """`fp16,int8` as a tuple of words."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words, in lower case."""
        if isinstance(value, tuple):
            return value
        words = tuple(word.strip().lower() for word in str(value).split(",") if word.strip())
        for word in words:
            if word not in PRECISION_FLAGS and word not in ("fp32", BEST):
                self.fail(f"{word!r} is not one of fp32, {', '.join(PRECISION_FLAGS)}, {BEST}", param, ctx)
        return words

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  click's
        """The words that the last one can become."""
        before, comma, word = incomplete.rpartition(",")
        names = [name for name in ("fp32", *PRECISION_FLAGS, BEST) if name.startswith(word.lower())]
        return [CompletionItem(f"{before}{comma}{name}") for name in names]


class NamedShape(click.ParamType):
    """`x=1x3x224x224`, a range `x=1x8:4x8:16x8`, or trtexec's `x:1x3x224x224,y:1x8`, as ((name, shapes), ...).

    Args:
        holds_values: whether the numbers are values, which may be negative or 0, and not extents.
        example: what an error shows.
    """

    name = "shape"

    def __init__(self, *, holds_values: bool = False, example: str = "x=1x3x224x224 or x=1x8:4x8:16x8") -> None:
        self._holds_values = holds_values
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NamedShapes:
        """The names, which may contain any character, each with one shape or three."""
        if isinstance(value, tuple):
            return value
        found = parse_named_shapes(str(value))
        if found is None:
            self.fail(f"{value!r} must be like {self._example}", param, ctx)
        if not self._holds_values and any(extent < 1 for _, shapes in found for shape in shapes for extent in shape):
            self.fail(f"every extent of a shape must be greater than 0 (found {value!r})", param, ctx)
        return found


class MethodOfLayers(click.ParamType):
    """`tflite`, or `conv1=onnx` for the layers that a pattern matches, as (pattern, name)."""

    name = "method"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The pattern, which may contain any character, and the name."""
        if isinstance(value, tuple):
            return value
        pattern, equals, method = (part.strip() for part in str(value).rpartition("="))
        if not method or bool(pattern) != bool(equals):
            self.fail(f"{value!r} must be like tflite or conv1=onnx", param, ctx)
        return pattern, method


def flat_shapes(given: Iterable[NamedShapes]) -> dict[str, Shapes]:
    """The shapes of an option that may be given several times, by input."""
    return {name: shapes for several in given for name, shapes in several}


# The options ----------------------------------------------------------------------------------------------------------


def _profile_option(which: str, trtexec: str, text: str) -> Callable[[Any], Any]:
    shape = NamedShape(example="x:1x3x224x224,y:1x8")
    return click.option(which, trtexec, multiple=True, type=shape, metavar="NAME:SHAPE,...", help=text)


_DEFAULTS = (
    "GPU; with --platform the board's accelerator in check, build, explain and estimate; CPU with --quantize-method"
)
_SPELLING = (
    "as trtexec spells them: fp16:chw16 for all, or one for each, separated by commas; + between several formats."
)

overlay_option: Callable[[Any], Any] = click.option(
    "--overlay",
    "overlays",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="Corrections of rules and cost parameters from a board: a file written by `dryfit board learn`. May be "
    "given several times. Without --platform and --software, the overlay's apply.",
)

_device_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--device",
        show_default=_DEFAULTS,
        metavar="NAME",
        shell_complete=completion.devices,
        help="Default device of the layers.",
    ),
    click.option(
        "--platform",
        metavar="NAME",
        shell_complete=completion.platforms,
        help="Board, such as agx-orin-64 or orin-nx.",
    ),
    click.option(
        "--power-mode",
        metavar="NAME",
        shell_complete=completion.power_modes,
        help="Power mode of the board for estimates, such as MAXN.",
    ),
    click.option(
        "--software",
        metavar="VERSION",
        help="Software version whose rules apply, such as 10.3, TensorRT-8.6 or jetpack-6.1.",
    ),
    click.option(
        "--fallback",
        metavar="NAME",
        shell_complete=completion.devices,
        help=f"Device of layers that cannot run on --device, such as GPU; {NO_FALLBACK} for no fallback.",
    ),
    overlay_option,
    click.option("--allow-gpu-fallback", "--allowGPUFallback", is_flag=True, help="Shorthand for --fallback GPU."),
    click.option(
        "--use-dla-core",
        "--useDLACore",
        type=click.IntRange(min=-1),
        metavar="N",
        help="DLA core of the board; without --device, all layers are placed on the DLA, as in trtexec.",
    ),
)

_precision_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--precision",
        type=PrecisionList(),
        default=(),
        metavar="LIST",
        help="Allowed precisions besides FP32, such as fp16 or fp16,int8; best allows all that the device supports.",
    ),
    *(
        click.option(f"--{word}", is_flag=True, help=f"Shorthand for --precision {word}.")
        for word in (*PRECISION_FLAGS, BEST)
    ),
    click.option(
        "--precision-constraints",
        "--precisionConstraints",
        type=click.Choice(tuple(CONSTRAINTS)),
        help="Action if a layer's precision cannot be used, as in trtexec: obey raises an error, prefer warns.",
    ),
    click.option(
        "--no-tf32",
        "--noTF32",
        "no_tf32",
        is_flag=True,
        help="Clear the flag TF32 (no effect: no device here uses TF32).",
    ),
    click.option("--assume-scales", is_flag=True, help="Assume that every tensor has an INT8 scale."),
)

shape_option: Callable[[Any], Any] = click.option(
    "--shape",
    "--shapes",
    "shape",
    multiple=True,
    type=NamedShape(),
    metavar="NAME=SHAPE",
    help="Shape of an input, such as x=1x3x224x224, or min:opt:max, as x=1x8:4x8:16x8. trtexec's list also works: "
    "x:1x3x224x224,y:1x8.",
)

_shape_options: tuple[Callable[[Any], Any], ...] = (
    shape_option,
    _profile_option("--min-shapes", "--minShapes", "Minimum shapes of dynamic inputs, in trtexec's syntax."),
    _profile_option(
        "--opt-shapes", "--optShapes", "Optimum shapes of dynamic inputs; given alone, they are the only shapes."
    ),
    _profile_option("--max-shapes", "--maxShapes", "Maximum shapes of dynamic inputs."),
    click.option(
        "--shape-values",
        multiple=True,
        type=NamedShape(holds_values=True, example="size=2x3 or size=1x1:2x3:4x6"),
        metavar="NAME=VALUES",
        help="Values of an input that carries dimensions, such as size=2x3, or a range: size=1x1:2x3:4x6.",
    ),
)

_layer_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--placement",
        type=_FILE,
        metavar="FILE",
        help="Devices of single layers: a script (.py) with place(network, config), or rules, one per line: "
        "pattern = DEVICE, by layer name, kind:KIND or onnx:NODE; the last match wins.",
    ),
    click.option(
        "--layer-device-types",
        "--layerDeviceTypes",
        metavar="NAME:DEVICE,...",
        help="Devices of single layers, in trtexec's syntax; overrides --placement.",
    ),
    click.option(
        "--calibration-cache",
        "--calib",
        "calibration_cache",
        type=_FILE,
        metavar="FILE",
        help="Calibration cache with INT8 scales, written by `dryfit calibrate` or TensorRT.",
    ),
    click.option(
        "--ranges",
        type=_FILE,
        metavar="FILE",
        help="Dynamic ranges, one `tensor: range` per line; they override --calibration-cache.",
    ),
    click.option(
        "--layer-precisions",
        "--layerPrecisions",
        metavar="NAME:TYPE,...",
        help="Precisions of single layers (fp32, fp16, bf16, int8), as trtexec spells them, or @FILE with such a list; "
        "NAME may be a pattern, as in --placement.",
    ),
    click.option(
        "--layer-output-types",
        "--layerOutputTypes",
        metavar="NAME:TYPE,...",
        help="Output types of single layers, in the same syntax.",
    ),
)

_engine_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--input-io-formats",
        "--inputIOFormats",
        "input_io_formats",
        metavar="LIST",
        help=f"Types and formats of inputs, {_SPELLING}",
    ),
    click.option(
        "--output-io-formats",
        "--outputIOFormats",
        "output_io_formats",
        metavar="LIST",
        help="Types and formats of outputs, in the same syntax.",
    ),
    click.option(
        "--direct-io",
        "--directIO",
        "direct_io",
        is_flag=True,
        help="Do not insert copies at inputs or outputs whose formats are set; fail if one is needed.",
    ),
    click.option(
        "--engine-capability",
        type=click.Choice(CAPABILITIES, case_sensitive=False),
        default="standard",
        show_default=True,
        help="Kind of engine to build; dla_standalone builds one loadable.",
    ),
    click.option(
        "--standalone",
        "--buildDLAStandalone",
        "--safe",
        "standalone",
        is_flag=True,
        help="One loadable for --device, as trtexec builds it: capability dla_standalone, DIRECT_IO, and FP16 where no "
        "precision is given.",
    ),
    click.option(
        "--mem-pool-size",
        "--memPoolSize",
        "mem_pool_size",
        metavar="POOL:SIZE,...",
        help="Limits of memory pools in MiB, in trtexec's syntax, such as dlaSRAM:1,dlaGlobalDRAM:512. dlaSRAM is "
        "rounded down to a power of two, as in trtexec; the others must be powers of two.",
    ),
    click.option(
        "--sparsity",
        type=click.Choice(SPARSITY),
        default="disable",
        show_default=True,
        help="Whether devices skip zero weights if they can: disable, enable, or force, which prunes a "
        "copy of the weights first. It changes estimates; force changes results too.",
    ),
    click.option(
        "--quantize-method",
        "quantize_method",
        multiple=True,
        type=MethodOfLayers(),
        metavar="[LAYER=]NAME",
        shell_complete=completion.quantize_methods,
        help="Compute quantized layers exactly as a library or device does: all of them (tflite, onnx, ...), or "
        "those that match a pattern as in --placement (conv1=onnx); none for no method. Runs on this "
        "machine's CPU unless --device is given. Also imports QLinear operators.",
    ),
    click.option(
        "--strongly-typed",
        "--stronglyTyped",
        is_flag=True,
        help="Compute every layer in the types of the model; cannot be combined with --precision or scales.",
    ),
)


# Taking them ----------------------------------------------------------------------------------------------------------


VARIANTS = ("platform", "software", "precision")
"""Options that a command about several variants of a board takes several times."""


def network_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the shared options; it gets those that were given as `options`, a dictionary of keywords."""

    @functools.wraps(command)
    def with_options(**values: Any) -> Any:
        return command(options=_taken(values), **values)

    return _decorated(with_options)


def variant_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the shared options, with platforms, software versions and precisions that may be repeated.

    It gets those three as `variants`, keyword to a tuple of values, and the others as `options`.
    """

    @functools.wraps(command)
    def with_options(**values: Any) -> Any:
        variants = {name: values[name] for name in VARIANTS}
        variants["precision"] = tuple(",".join(words) for words in variants["precision"])
        options = _taken(values | {"platform": None, "software": None, "precision": ()})
        taken = values.keys() - attrs.fields_dict(NetworkOptions).keys() - _SHORTHANDS
        return command(variants=variants, options=options, **{name: values[name] for name in taken})

    decorated = _decorated(with_options)
    # click keeps a command's options here until the command is made.
    for option in decorated.__click_params__:  # type: ignore[attr-defined]
        if option.name in VARIANTS:
            option.multiple, option.default = True, ()
    return decorated


_SECTIONS: Mapping[str, tuple[Callable[[Any], Any], ...]] = {
    "Device and board": _device_options,
    "Precision": _precision_options,
    "Shapes": _shape_options,
    "Layers and scales": _layer_options,
    "Engine": _engine_options,
}


@functools.cache
def shared_sections() -> Mapping[str, Sequence[click.Option]]:
    """The shared options by the section of a command's help that shows them."""

    def options_of(decorators: Iterable[Callable[[Any], Any]]) -> list[click.Option]:
        def command() -> None: ...

        for option in decorators:
            option(command)
        # click keeps a command's options here until the command is made.
        return cast("list[click.Option]", vars(command)["__click_params__"])

    return {section: options_of(decorators) for section, decorators in _SECTIONS.items()}


class ModelCommand(click.Command):
    """A command about a model: its help shows its own options first, and the shared ones behind them by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        shared = {option.name: section for section, options in shared_sections().items() for option in options}
        records: dict[str, list[tuple[str, str]]] = {section: [] for section in ("Options", *_SECTIONS)}
        for parameter in self.get_params(ctx):
            record = None if isinstance(parameter, click.Argument) else parameter.get_help_record(ctx)
            if record is not None:
                records[shared.get(parameter.name, "Options")].append(record)
        for section, rows in records.items():
            with formatter.section(section):
                formatter.write_dl(rows)


def _decorated(command: Callable[..., Any]) -> Callable[..., Any]:
    # click reads the command's name and text from the function, and nothing else.
    command.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    for option in reversed([option for options in _SECTIONS.values() for option in options]):
        command = option(command)
    return command


_SHORTHANDS = {*PRECISION_FLAGS, BEST, "allow_gpu_fallback", "min_shapes", "opt_shapes", "max_shapes"}
"""Options that stand for others."""


def _taken(values: dict[str, Any]) -> Options:
    """Take the shared options out of the values of all options; shorthands become what they stand for."""
    words = [word for word in (*PRECISION_FLAGS, BEST) if values.pop(word)]
    values["precision"] = tuple(dict.fromkeys((*values["precision"], *words)))
    values["fallback"] = _fallback(values)
    values["shape"] = taken_shapes(values)
    values["shape_values"] = flat_shapes(values["shape_values"])
    plain = {field.name: field.default for field in attrs.fields(NetworkOptions)}
    given = {name: values.pop(name) for name in plain}
    said = {name: value for name, value in given.items() if value != plain[name] and value not in ((), {})}
    return cast("Options", said)


def _fallback(values: dict[str, Any]) -> str | None:
    fallback: str | None = values["fallback"]
    if not values.pop("allow_gpu_fallback"):
        return fallback
    if fallback is not None and fallback.upper() != "GPU":
        raise click.UsageError(f"--allowGPUFallback and --fallback {fallback} cannot be combined: leave one out")
    return "GPU"


def taken_shapes(values: dict[str, Any]) -> dict[str, Shapes]:
    """Take the shapes out of the options' values: those of `--shape`, and the ranges of the three lists.

    Raises:
        UsageError: the lists do not name the same inputs, or an input has its shape twice.
    """
    shapes = flat_shapes(values["shape"])
    least, best, largest = (_single(values.pop(f"{which}_shapes"), which) for which in ("min", "opt", "max"))
    if not least and not largest:
        least = largest = best
    if not least.keys() == best.keys() == largest.keys():
        raise click.UsageError("--minShapes, --optShapes and --maxShapes must name the same inputs")
    twice = sorted(shapes.keys() & best.keys())
    if twice:
        raise click.UsageError(f"{twice[0]!r} has two shapes, from --shape and from --optShapes: leave one out")
    ranges = {
        name: (shape,) if least[name] == shape == largest[name] else (least[name], shape, largest[name])
        for name, shape in best.items()
    }
    return {**shapes, **ranges}


def _single(given: Iterable[NamedShapes], which: str) -> Mapping[str, tuple[int, ...]]:
    found = flat_shapes(given)
    ranges = [name for name, shapes in found.items() if len(shapes) > 1]
    if ranges:
        raise click.UsageError(
            f"--{which}Shapes takes one shape per input, but {ranges[0]!r} has a range: write one shape, or use --shape"
        )
    return {name: shapes[0] for name, shapes in found.items()}
