"""The defaults of `check`, `build`, `explain` and `estimate`: one set, stated as the options that say the same.

A board that is named is asked about its accelerator. A device that does not compute FP32 gets FP16, as trtexec sets it
for a DLA, and INT8 too where scales are given. Layers that an accelerator refuses fall back to the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.cli.console import print_line
from dryfit.cli.device_options import NO_FALLBACK
from dryfit.cli.network_options import NetworkOptions
from dryfit.cli.precision_options import device_words, without_best

QUANTIZED_PRECISION, DEFAULT_FALLBACK = "int8", "GPU"


def with_defaults(options: NetworkOptions, precision: str | None = "") -> tuple[NetworkOptions, list[str]]:
    """The options with the defaults of what was left out, and these as options of the command line.

    Args:
        options: what was said.
        precision: the default precision; "" for the device's own, None for none.

    Raises:
        UnknownNameError: there is no such device or platform.
    """
    asked = _with_device(options)
    asked = attrs.evolve(asked, precisions=without_best(asked.precisions, asked.device))
    if not asked.precisions and not asked.strongly_typed and not asked.quantize_methods:
        words = _own_precisions(asked) if precision == "" else tuple(filter(None, [precision]))
        asked = attrs.evolve(asked, precisions=words)
    if asked.fallback is None and _falls_back(asked):
        asked = attrs.evolve(asked, fallback=DEFAULT_FALLBACK)
    return asked, _differences(options, asked)


def with_every_precision(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    """The defaults of commands that weigh what a board could do: its accelerator, in all types that it computes in."""
    asked = attrs.evolve(options, device=accelerator(options.platform)) if options.is_device_default else options
    if not asked.precisions and not asked.strongly_typed:
        asked = attrs.evolve(asked, precisions=device_words(asked.device))
    asked, _ = with_scales(asked)
    return asked, _differences(options, asked)


def with_scales(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    """The defaults for an estimate, whose figures do not depend on the scales: INT8 is taken to have them all."""
    asked, _ = with_defaults(options)
    if "int8" in asked.precisions and not has_scales(asked):
        asked = attrs.evolve(asked, assume_scales=True)
    return asked, _differences(options, asked)


def has_scales(options: NetworkOptions) -> bool:
    """Whether the options say where INT8 scales come from."""
    return options.assume_scales or options.calibration_cache is not None or options.ranges is not None


def print_defaults(defaults: Sequence[str]) -> None:
    """One line with the defaults that were used; nothing where everything was said."""
    if defaults:
        print_line(f"Defaults: {' '.join(defaults)}")


def accelerator(platform: str | None) -> str:
    """The device that a board has cores of besides the GPU, and whose costs can be estimated; else the GPU.

    Args:
        platform: of the board; None for any.
    """
    from dryfit.errors import UnknownNameError
    from dryfit.plugins import registry

    for target in registry.targets_in_turn():
        if target.device == DEFAULT_FALLBACK or target.segment_rules.is_host or target.estimate_cost_at is None:
            continue
        try:
            if target.platform(platform).cores:
                return target.device
        except UnknownNameError:
            continue
    return DEFAULT_FALLBACK


def _with_device(options: NetworkOptions) -> NetworkOptions:
    """The accelerator of the board that was named, where no device was."""
    if not options.is_device_default or options.platform is None or options.quantize_methods:
        return options
    return attrs.evolve(options, device=accelerator(options.platform))


def _own_precisions(options: NetworkOptions) -> tuple[str, ...]:
    """None where the device computes FP32; else FP16, and INT8 where scales are given or it computes nothing else."""
    from dryfit.plugins import registry

    names = [dtype.name for dtype in registry.target(options.device).precisions]
    if "FLOAT" in names:
        return ()
    words = device_words(options.device)
    return words if has_scales(options) else tuple(word for word in words if word != "int8") or words


def _falls_back(options: NetworkOptions) -> bool:
    """Whether there is something to fall back from: an accelerator, beside which something else may run."""
    from dryfit.plugins import registry

    target = registry.target(options.device)
    return (
        target.device != DEFAULT_FALLBACK
        and not target.segment_rules.is_host
        and not options.engine.has_no_fallback
        and registry.find_target(DEFAULT_FALLBACK) is not None
    )


def _differences(said: NetworkOptions, asked: NetworkOptions) -> list[str]:
    """What was filled in, as options."""
    pairs = [
        ("--device", asked.device, said.is_device_default),
        ("--precision", ",".join(asked.precisions) or "fp32", not said.precisions and not asked.strongly_typed),
        ("--fallback", asked.fallback or NO_FALLBACK, said.fallback is None),
    ]
    told = [f"{option} {value}" for option, value, is_default in pairs if is_default]
    return [*told, *(["--assume-scales"] if asked.assume_scales and not said.assume_scales else [])]
