"""`--device`, `--platform`, `--software`, `--fallback`, and trtexec's `--useDLACore` and `--allowGPUFallback`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import click

NO_FALLBACK = "none"
"""The word of `--fallback` for no fallback at all."""
_DEFAULTS = (
    "GPU; with --platform the board's accelerator in check, build, explain and estimate; CPU with --quantize-method"
)

device_options: tuple[Callable[[Any], Any], ...] = (
    click.option("--device", show_default=_DEFAULTS, metavar="NAME", help="Device of the layers."),
    click.option("--platform", metavar="NAME", help="Variant of the device, such as agx-orin-64 or orin-nx."),
    click.option("--power-mode", metavar="NAME", help="Power mode of the board, for estimates, such as MAXN."),
    click.option(
        "--software",
        metavar="VERSION",
        help="Software version whose rules hold, such as 10.3, TensorRT-8.6 or jetpack-6.1.",
    ),
    click.option(
        "--fallback",
        metavar="NAME",
        help=f"Device of layers that cannot run on --device, such as GPU; {NO_FALLBACK} for no fallback.",
    ),
    click.option("--allow-gpu-fallback", "--allowGPUFallback", is_flag=True, help="Shorthand for --fallback GPU."),
    click.option(
        "--use-dla-core",
        "--useDLACore",
        "dla_core",
        type=click.IntRange(min=-1),
        metavar="N",
        help="Which DLA of the board; without --device every layer is to run on the DLA, as in trtexec.",
    ),
)


@attrs.frozen
class NamedDevice:
    """What the options said.

    Attributes:
        name: default device of the layers.
        is_default: whether no option named it.
        fallback: device of layers that it refuses; None where nothing was said.
        dla_core: which DLA of the board; None where nothing was said.
    """

    name: str
    is_default: bool
    fallback: str | None
    dla_core: int | None

    @classmethod
    def taken(cls, values: dict[str, Any]) -> NamedDevice:
        """Take them out of the options' values.

        Raises:
            UsageError: two options name different fallback devices.
        """
        named, core, fallback = values.pop("device"), values.pop("dla_core"), values.pop("fallback")
        if named is None and core is not None and core >= 0:
            named = "DLA"
        if values.pop("allow_gpu_fallback"):
            if fallback is not None and fallback.upper() != "GPU":
                raise click.UsageError(f"--allowGPUFallback and --fallback {fallback} exclude each other")
            fallback = "GPU"
        name = named or _default_device(has_methods=bool(values["quantize_methods"]))
        return cls(name, named is None, fallback, core)


def _default_device(*, has_methods: bool) -> str:
    """The device where none is named: of layers with quantize methods the only one that computes by them."""
    if not has_methods:
        return "GPU"
    from dryfit.plugins import registry

    return registry.host().device
