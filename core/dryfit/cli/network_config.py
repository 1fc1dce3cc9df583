"""The config that options describe, with its notes on stderr, for commands whose question is asked here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryfit.answers.builder_config import config_of
from dryfit.cli.console import print_note

if TYPE_CHECKING:
    from dryfit.answers.options import NetworkOptions
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.network.network import Network


def create_config(network: Network, options: NetworkOptions) -> BuilderConfig:
    """The builder config that the options describe. Raises what `dryfit.answers.builder_config.config_of` raises."""
    config, notes = config_of(network, options)
    for note in notes:
        print_note(note)
    return config
