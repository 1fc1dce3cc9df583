"""`--kernel`, `--forbid-kernel`, `--timing-cache`: which kernels run the layers, and what is known of their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.network.network import Network

OPTION = "--kernel"


class NamedKernel(click.ParamType):
    """`LAYER=NAME` as (pattern of layers, name of the kernel)."""

    name = "kernel"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Pattern and name; the last `=` is between them."""
        if isinstance(value, tuple):
            return value
        pattern, _, name = (part.strip() for part in str(value).rpartition("="))
        if not pattern or not name:
            self.fail(f"{value!r} is not like conv1=cpu.convolution", param, ctx)
        return pattern, name


def kernel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options; it gets them as `kernels`, `forbidden_kernels` and `timing_cache`."""
    kernels = click.option(
        OPTION,
        "kernels",
        multiple=True,
        type=NamedKernel(),
        metavar="LAYER=NAME",
        help="Host kernel of a layer, instead of the fastest. LAYER is a name or a pattern, as in --placement; of "
        "several that fit, the last holds.",
    )
    forbidden = click.option(
        "--forbid-kernel",
        "forbidden_kernels",
        multiple=True,
        metavar="PATTERN",
        help="Host kernels that are not chosen, such as cpu.winograd_*; those that --kernel names run all the same.",
    )
    timing_cache = click.option(
        "--timing-cache",
        "--timingCacheFile",
        "timing_cache",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="How long kernels take: read where it exists, and completed. Builds share one in the user's cache folder.",
    )
    return kernels(forbidden(timing_cache(command)))


def name_kernels(kernels: Sequence[tuple[str, str]], network: Network, config: BuilderConfig) -> None:
    """Name the kernels of layers.

    Raises:
        ConfigError: patterns fit no layer; all of them are listed, and nothing is named.
    """
    from dryfit.builder.config.layer_rules import LayerPattern

    patterns = [(LayerPattern(pattern, f"{pattern}={name}"), name) for pattern, name in kernels]
    problems = [pattern.problem(network.layers) for pattern, _ in patterns if not pattern.layers_in(network.layers)]
    if problems:
        raise ConfigError("The kernels do not fit the network", where=OPTION, found="; ".join(problems))
    for pattern, name in patterns:
        for layer in pattern.layers_in(network.layers):
            config.set_kernel(layer, name)


@contextmanager
def timing_cache_file(path: Path | None, config: BuilderConfig) -> Iterator[None]:
    """Build by the cache of a file, and complete the file afterwards; nothing for None.

    Raises:
        ConfigError: the file is no timing cache, was measured on another processor, or cannot be read or written.
    """
    if path is None:
        yield
        return
    from dryfit.builder.config.timing_cache import load_timing_cache, save_timing_cache

    cache = load_timing_cache(path)
    config.set_timing_cache(cache)
    yield
    save_timing_cache(cache, path)
