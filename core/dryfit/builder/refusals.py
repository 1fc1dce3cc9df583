"""What a build refuses of a design: the errors that it raises, and that an assessment tells in the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.profile_shapes import require_profile
from dryfit.builder.config.quantization_mode import has_zero_points, is_explicit
from dryfit.builder.config.standalone import is_standalone
from dryfit.builder.design import Design
from dryfit.builder.placement.assign import placement_error
from dryfit.errors import BuildError, ConfigError, DryfitError, PlacementError, one_error
from dryfit.quantization.int8_steps import missing_scales


def require_buildable(design: Design, config: BuilderConfig) -> None:
    """Refuse what was decided but cannot be built.

    Raises:
        PlacementError: parts of the network have no place.
        BuildError: a plugin layer cannot have a quantized type, a copy is needed that may not be made, a wish that has
            to be obeyed cannot be granted, scales were assumed, or what is to be one loadable is none.
        ConfigError: profiles leave open what inputs take, or rules on standalone loadables are broken.
    """
    errors = build_errors(design, config)
    if errors:
        raise one_error(f"The network {design.network.name!r} cannot be built", errors)


def build_errors(design: Design, config: BuilderConfig) -> list[DryfitError]:
    """Everything that a build of these decisions raises; none where it goes on to choose kernels."""
    checks = _CHECKS_OF_BROKEN if design.broken else _CHECKS
    return [error for find in checks for error in find(design, config)]


def refusals_of(design: Design) -> list[str]:
    """What can run nowhere, plugins, operators, copies and segments that cannot be as they are: each in words."""
    return [
        *design.refusals,
        *design.canonical.found.claims.problems,
        *design.canonical.found.operators.problems,
        *design.formats.problems,
        *design.problems,
    ]


def require_places(design: Design, config: BuilderConfig) -> None:
    """Refuse a design of which parts have no place.

    Raises:
        ConfigError: network and config break rules on standalone loadables.
        PlacementError: names the parts.
    """
    errors = [error for find in _CHECKS_OF_BROKEN for error in find(design, config)]
    if errors:
        raise one_error(f"The network {design.network.name!r} cannot be built", errors)


def _broken_rules(design: Design, config: BuilderConfig) -> Sequence[ConfigError]:
    """Rules on standalone loadables that are broken."""
    del config
    return design.broken


def _placement(design: Design, config: BuilderConfig) -> Iterator[PlacementError]:
    """Layers and segments that can run nowhere."""
    if design.refusals:
        yield placement_error(
            [*design.assignment.refused, *design.partition.refused],
            config.fallback_device,
            config.default_device_type,
            is_explicit=is_explicit(design.network),
            has_zero_points=has_zero_points(design.network),
            may_fall_back=not is_standalone(config),
        )


def _segments(design: Design, config: BuilderConfig) -> Iterator[BuildError]:
    """Segments that have a place each and cannot be as they are together."""
    del config
    return _one_of_all("The segments cannot be as they are", design.problems)


def _quantized_plugins(design: Design, config: BuilderConfig) -> Iterator[BuildError]:
    """Plugin layers that do not take the types that their outputs were set to."""
    del config
    return _one_of_all(
        "Plugin layers cannot have the quantized types that their outputs were set to",
        design.canonical.found.claims.problems,
        "Quantize what they read and give, or call reset_output_type on them",
    )


def _quantize_methods(design: Design, config: BuilderConfig) -> Iterator[BuildError]:
    """Layers that ask for a quantize method and are not what it is about."""
    del config
    return _one_of_all(
        "Layers cannot be computed by the quantize methods that they ask for",
        design.canonical.found.operators.problems,
        'Quantize what they read and give, or set their quantize_method to another one, or to ""',
    )


def _copies(design: Design, config: BuilderConfig) -> Iterator[BuildError]:
    """Copies between types and formats that may not be made."""
    del config
    return _one_of_all("Tensors need copies to another type or format that may not be made", design.formats.problems)


def _constraints(design: Design, config: BuilderConfig) -> Iterator[BuildError]:
    """Types of layers that were asked for, must be obeyed and cannot."""
    del config
    if design.precisions.problems:
        yield BuildError(
            "The flag OBEY_PRECISION_CONSTRAINTS is on, and these constraints cannot be obeyed",
            found="; ".join(design.precisions.problems),
            remedy=f"Change them, or set {BuilderFlag.PREFER_PRECISION_CONSTRAINTS.name} instead",
        )


def _assumed_scales(design: Design, config: BuilderConfig) -> Iterator[BuildError]:
    """Tensors that would be stored in INT8 by scales that were assumed."""
    del config
    precisions = design.precisions
    stored = (
        tensor.name
        for layer in design.network.layers
        if layer.name in precisions.layers and precisions.is_int8(layer)
        for tensor in missing_scales(layer)
        if tensor.name not in precisions.real_tensors
    )
    lacking = list(dict.fromkeys(stored))
    if lacking:
        yield BuildError(
            "Layers would be computed in INT8 whose tensors have no scale: scales were assumed",
            found=", ".join(map(repr, lacking)),
            allowed="a dynamic range for each of them",
            remedy="Calibrate, or set dynamic ranges; clear assume_scales. assess() tells the placement as it would be",
        )


def _fusing(design: Design, config: BuilderConfig) -> Iterator[DryfitError]:
    """What no kernel runs, where what runs as one was looked at already."""
    del config
    if design.error is not None:
        yield design.error


def _profiles(design: Design, config: BuilderConfig) -> Iterator[ConfigError]:
    """Dynamic inputs of which no profile speaks."""
    try:
        require_profile(design.network, config)
    except ConfigError as error:
        yield error


_Check = Callable[[Design, BuilderConfig], Iterable[DryfitError]]

_CHECKS_OF_BROKEN: tuple[_Check, ...] = (_broken_rules, _placement)
"""What is told of a network and a config that break rules: copies, segments and types follow from what is amiss."""

_CHECKS: tuple[_Check, ...] = (
    _profiles,
    _placement,
    _segments,
    _quantized_plugins,
    _quantize_methods,
    _copies,
    _constraints,
    _assumed_scales,
    _fusing,
)


def _one_of_all(message: str, problems: Sequence[str], remedy: str | None = None) -> Iterator[BuildError]:
    """One error that lists all problems, one a line; none where there are none."""
    if problems:
        yield BuildError(message, found="\n  " + "\n  ".join(problems) + "\n", remedy=remedy)
