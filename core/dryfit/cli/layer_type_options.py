"""`--layer-precisions`, `--layer-output-types`: types of single layers, as trtexec spells them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.network.network import Network

PRECISIONS, OUTPUT_TYPES = "--layer-precisions", "--layer-output-types"

layer_type_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        PRECISIONS,
        "--layerPrecisions",
        metavar="NAME:TYPE,...",
        help="Precisions of single layers (fp32, fp16, bf16, int8), as trtexec spells them, or @FILE with such a list; "
        "NAME may be a pattern, as in --placement.",
    ),
    click.option(
        OUTPUT_TYPES,
        "--layerOutputTypes",
        metavar="NAME:TYPE,...",
        help="Types of the outputs of single layers, in the same spelling.",
    ),
)


def take_layer_types(network: Network, precisions: str | None, output_types: str | None) -> None:
    """Set the types that the options state for single layers.

    Raises:
        ConfigError: a file cannot be read, or an entry is none or fits no layer.
    """
    from dryfit.builder.config.layer_rules import PrecisionRules

    if precisions is not None:
        PrecisionRules.parse(*_listed(precisions, PRECISIONS)).set_precisions(network)
    if output_types is not None:
        PrecisionRules.parse(*_listed(output_types, OUTPUT_TYPES)).set_output_types(network)


def _listed(given: str, option: str) -> tuple[str, str]:
    """(a list of layers, where it comes from): the option's own text, or that of the file behind an @."""
    if not given.startswith("@"):
        return given, option
    path = Path(given[1:])
    try:
        return path.read_text(encoding="utf-8").replace("\n", ","), f"{option}, {path}"
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("The list of layers cannot be read", where=f"{option}, {path}", found=error) from error
