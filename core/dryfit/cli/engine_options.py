"""`--engine-capability` and `--mem-pool-size`: what kind of engine is built, and how much memory it may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import click

from dryfit.cli.console import print_note

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig

CAPABILITY, POOLS = "--engine-capability", "--mem-pool-size"

engine_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        CAPABILITY,
        type=click.Choice(["standard", "safety", "dla_standalone"], case_sensitive=False),
        default="standard",
        show_default=True,
        help="What kind of engine is built; dla_standalone gives one loadable.",
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
        POOLS,
        "--memPoolSize",
        "mem_pool_size",
        metavar="POOL:SIZE,...",
        help="Limits of memory pools in MiB, as trtexec spells them, such as dlaSRAM:1,dlaGlobalDRAM:512. dlaSRAM is "
        "rounded down to a power of two, as trtexec does; the others have to be one.",
    ),
)


@attrs.frozen
class EngineOptions:
    """What the options said.

    Attributes:
        capability: name of the engine capability.
        is_standalone: whether trtexec's switch was given.
        memory_pools: limits of memory pools, as trtexec spells them; None for the defaults.
    """

    capability: str = "standard"
    is_standalone: bool = False
    memory_pools: str | None = None

    @property
    def has_no_fallback(self) -> bool:
        """Whether it is one loadable, beside which nothing runs."""
        return self.is_standalone or self.capability.upper() == "DLA_STANDALONE"

    def take(self, config: BuilderConfig) -> None:
        """Set them.

        Raises:
            ConfigError: a limit is none, or the device would refuse it.
            UnknownNameError: there is no such memory pool.
        """
        from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability
        from dryfit.builder.config.memory_pool_sizes import parse_memory_pool_sizes

        name = "DLA_STANDALONE" if self.is_standalone else self.capability.upper()
        config.engine_capability = EngineCapability[name]
        if self.is_standalone:
            config.set_flag(BuilderFlag.DIRECT_IO)
            if not any(map(config.get_flag, (BuilderFlag.FP16, BuilderFlag.INT8))):
                config.set_flag(BuilderFlag.FP16)
        if self.memory_pools is not None:
            notes: list[str] = []
            sizes = parse_memory_pool_sizes(self.memory_pools, POOLS, notes)
            for note in notes:
                print_note(note)
            for pool, size in sizes.items():
                config.set_memory_pool_limit(pool, size)
