"""`--kernel`, `--forbid-kernel`, `--timing-cache`: which kernels run the layers, and what is known of their times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class NamedKernel(click.ParamType):
    """`LAYER=NAME` as (pattern of layers, name of the kernel)."""

    name = "kernel"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Pattern and name; the last `=` is between them."""
        if isinstance(value, tuple):
            return value
        pattern, _, name = (part.strip() for part in str(value).rpartition("="))
        if not pattern or not name:
            self.fail(f"{value!r} must be like conv1=cpu.convolution", param, ctx)
        return pattern, name


def kernel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options; it gets them as `kernels`, `forbidden_kernels` and `timing_cache`."""
    kernels = click.option(
        "--kernel",
        "kernels",
        multiple=True,
        type=NamedKernel(),
        metavar="LAYER=NAME",
        help="Host kernel of a layer, instead of the fastest. LAYER is a name or a pattern, as in --placement; the "
        "last match wins.",
    )
    forbidden = click.option(
        "--forbid-kernel",
        "forbidden_kernels",
        multiple=True,
        metavar="PATTERN",
        help="Host kernels to exclude, such as cpu.winograd_*; kernels given by --kernel are still used.",
    )
    timing_cache = click.option(
        "--timing-cache",
        "--timingCacheFile",
        "timing_cache",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Timing cache of kernels: read if it exists, and updated. By default, builds "
        "share one in the user's cache folder.",
    )
    return kernels(forbidden(timing_cache(command)))
