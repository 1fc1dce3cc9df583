"""`--input-io-formats`, `--output-io-formats`, `--direct-io`: how a network's inputs and outputs lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import click

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.network.network import Network

INPUT_FORMATS, OUTPUT_FORMATS, DIRECT_IO = "--input-io-formats", "--output-io-formats", "--direct-io"

_SPELLING = (
    "as trtexec spells them: fp16:chw16 for all, or one for each, separated by commas; + between several formats."
)

io_format_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        INPUT_FORMATS,
        "--inputIOFormats",
        "input_io_formats",
        metavar="LIST",
        help=f"Types and formats of inputs, {_SPELLING}",
    ),
    click.option(
        OUTPUT_FORMATS,
        "--outputIOFormats",
        "output_io_formats",
        metavar="LIST",
        help="Types and formats of outputs, in the same spelling.",
    ),
    click.option(
        DIRECT_IO,
        "--directIO",
        "direct_io",
        is_flag=True,
        help="Make no copy where formats of an input or output are set; it is an error where one is needed.",
    ),
)


@attrs.frozen
class IoFormatOptions:
    """What the options said.

    Attributes:
        inputs, outputs: lists of types and formats; None where nothing was said.
        is_direct: whether copies are forbidden.
    """

    inputs: str | None = None
    outputs: str | None = None
    is_direct: bool = False

    def take(self, network: Network, config: BuilderConfig) -> None:
        """Set types and formats of the network's inputs and outputs, and the flag DIRECT_IO.

        Raises:
            ConfigError: a list is none, or does not fit the network.
        """
        from dryfit.builder.config.builder_config import BuilderFlag
        from dryfit.builder.config.trtexec_spellings import parse_io_formats, set_io_formats

        inputs, outputs = (
            [] if text is None else parse_io_formats(text, option)
            for text, option in ((self.inputs, INPUT_FORMATS), (self.outputs, OUTPUT_FORMATS))
        )
        set_io_formats(network, inputs, outputs)
        if self.is_direct:
            config.set_flag(BuilderFlag.DIRECT_IO)
