"""What a build refuses of a design: the errors that it raises, and that an assessment tells in the same words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.optimization_profile import require_profile
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
    return [*(_errors_of_broken(design, config) if design.broken else _errors(design, config))]


def refusals_of(design: Design) -> list[str]:
    """What unplaced, plugins, operators, copies and segments that cannot be as they are: each in words."""
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
    errors = [*_errors_of_broken(design, config)]
    if errors:
        raise one_error(f"The network {design.network.name!r} cannot be built", errors)


def _errors_of_broken(design: Design, config: BuilderConfig) -> Iterator[DryfitError]:
    """What is told of a network and a config that break rules: copies, segments and types follow from what is amiss."""
    yield from design.broken
    yield from _placement(design, config)


def _errors(design: Design, config: BuilderConfig) -> Iterator[DryfitError]:
    """All that is told of a network and a config that break no rule."""
    try:
        require_profile(design.network, config)
    except ConfigError as error:
        yield error
    yield from _placement(design, config)
    yield from _one_of_all("Some segments cannot be built", design.problems)
    yield from _one_of_all(
        "Plugin layers do not support the quantized types that their outputs were set to",
        design.canonical.found.claims.problems,
        "Quantize their inputs and outputs, or call reset_output_type on them",
    )
    yield from _one_of_all(
        "The quantize methods of these layers do not support them",
        design.canonical.found.operators.problems,
        'Quantize their inputs and outputs, or set their quantize_method to another one, or to ""',
    )
    yield from _one_of_all(
        "Tensors need copies to another type or format that are not allowed", design.formats.problems
    )
    if design.precisions.problems:
        yield BuildError(
            "The precision constraints cannot be obeyed (OBEY_PRECISION_CONSTRAINTS is set)",
            found="; ".join(design.precisions.problems),
            remedy=f"Change them, or set {BuilderFlag.PREFER_PRECISION_CONSTRAINTS.name} instead",
        )
    yield from _assumed_scales(design)
    if design.error is not None:  # no kernel runs a group, where groups were looked at already
        yield design.error


def _placement(design: Design, config: BuilderConfig) -> Iterator[PlacementError]:
    """Layers and segments that unplaced."""
    if design.refusals:
        yield placement_error(
            [*design.assignment.refused, *design.partition.refused],
            config.fallback_device,
            config.default_device_type,
            is_explicit=is_explicit(design.network),
            has_zero_points=has_zero_points(design.network),
            may_fall_back=not is_standalone(config),
        )


ASSUMED_SCALES = "Tensors of INT8 layers must have scales; assume_scales is for assessment only"
"""Message of the error of a build whose scales were only assumed."""


def _assumed_scales(design: Design) -> Iterator[BuildError]:
    """Tensors that would be stored in INT8 by scales that were assumed."""
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
            ASSUMED_SCALES,
            found=", ".join(map(repr, lacking)),
            allowed="a dynamic range for each of them",
            remedy="Clear assume_scales and calibrate, or set dynamic ranges; assess() needs no scales",
        )


def _one_of_all(message: str, problems: Sequence[str], remedy: str | None = None) -> Iterator[BuildError]:
    """One error that lists all problems, one a line; none where there are none."""
    if problems:
        yield BuildError(message, found="\n  " + "\n  ".join(problems) + "\n", remedy=remedy)
