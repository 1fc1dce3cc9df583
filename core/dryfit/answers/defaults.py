"""The defaults of questions about a model, shared by check, build, explain and estimate and shown as options.

For a named board, the default device is its accelerator. A device that does not support FP32 gets FP16, as trtexec does
for a DLA, and also INT8 if scales are given. Layers that an accelerator rejects fall back to the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.answers.options import BEST, NO_FALLBACK, PRECISION_FLAGS, NetworkOptions
from dryfit.errors import UnknownNameError
from dryfit.plugins import registry

DEFAULT_FALLBACK = "GPU"

_WORDS = {"HALF": "fp16", **{flag: word for word, flag in PRECISION_FLAGS.items()}}


def with_defaults(options: NetworkOptions, precision: str | None = "") -> tuple[NetworkOptions, list[str]]:
    """Return the options with defaults filled in, and these defaults as command-line options.

    Args:
        options: the given options.
        precision: default precision; "" for the device's own, None for none.

    Raises:
        UnknownNameError: The device or platform does not exist.
    """
    asked = _with_device(options)
    asked = attrs.evolve(asked, precision=without_best(asked.precision, asked.default_device))
    if not asked.precision and not asked.strongly_typed and not asked.quantize_method:
        words = _own_precisions(asked) if precision == "" else tuple(filter(None, [precision]))
        asked = attrs.evolve(asked, precision=words)
    if asked.fallback is None and _falls_back(asked):
        asked = attrs.evolve(asked, fallback=DEFAULT_FALLBACK)
    return asked, _differences(options, asked)


def with_every_precision(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    """Return the defaults for questions about what a board can do: its accelerator with all supported types."""
    asked = options if options.names_device else attrs.evolve(options, device=accelerator(options.platform))
    if not asked.precision and not asked.strongly_typed:
        asked = attrs.evolve(asked, precision=device_words(asked.default_device))
    asked, _ = with_scales(asked)
    return asked, _differences(options, asked)


def with_scales(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    """Return the defaults for an estimate. Scale values do not matter, so every tensor is assumed to have one."""
    asked, _ = with_defaults(options)
    if "int8" in asked.precision and not has_scales(asked):
        asked = attrs.evolve(asked, assume_scales=True)
    return asked, _differences(options, asked)


def with_overlay_board(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    """Return the options with the board of the overlays where none was given, and what was filled in as options."""
    asked, filled = options, list[str]()
    for field in ("platform", "software"):
        named = {value for one in options.overlays if (value := getattr(one, field))}
        # Overlays of two boards are refused where the config applies them.
        if getattr(options, field) is None and len(named) == 1:
            asked = attrs.evolve(asked, **{field: named.pop()})
            filled.append(f"--{field} {getattr(asked, field)}")
    return asked, filled


def has_scales(options: NetworkOptions) -> bool:
    """Return whether the options provide INT8 scales."""
    return options.assume_scales or options.calibration_cache is not None or options.ranges is not None


def device_words(device: str) -> tuple[str, ...]:
    """Return the option values for the types that a device supports besides FP32.

    Raises:
        UnknownNameError: The device does not exist.
    """
    names = (dtype.name for dtype in registry.target(device).precisions)
    return tuple(_WORDS[name] for name in names if name in _WORDS)


def without_best(precisions: Sequence[str], device: str) -> tuple[str, ...]:
    """Return the values with `best` replaced by the types of the device."""
    if BEST not in precisions:
        return tuple(precisions)
    named = [word for word in precisions if word != BEST]
    return tuple(dict.fromkeys((*named, *device_words(device))))


def accelerator(platform: str | None) -> str:
    """Return the device besides the GPU that the board has cores of and that can be estimated; else the GPU."""
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
    """Set the accelerator of the named board, or the device of a standalone loadable, if no device was given."""
    if options.names_device or options.quantize_method:
        return options
    if options.platform is not None:
        return attrs.evolve(options, device=accelerator(options.platform))
    if options.is_standalone:
        with_loadables = (target.device for target in registry.targets_in_turn() if target.has_loadables)
        return attrs.evolve(options, device=next(with_loadables, None))
    return options


def _own_precisions(options: NetworkOptions) -> tuple[str, ...]:
    """Return None if the device supports FP32; else FP16, and INT8 if scales are given or nothing else is supported."""
    names = [dtype.name for dtype in registry.target(options.default_device).precisions]
    if "FLOAT" in names:
        return ()
    words = device_words(options.default_device)
    return words if has_scales(options) else tuple(word for word in words if word != "int8") or words


def _falls_back(options: NetworkOptions) -> bool:
    """Return whether fallback applies: the device is an accelerator, and other devices may run layers."""
    target = registry.target(options.default_device)
    return (
        target.device != DEFAULT_FALLBACK
        and not target.segment_rules.is_host
        and not options.is_standalone
        and registry.find_target(DEFAULT_FALLBACK) is not None
    )


def _differences(said: NetworkOptions, asked: NetworkOptions) -> list[str]:
    """Return the defaults that were filled in, as options."""
    pairs = [
        ("--device", asked.default_device, not said.names_device),
        ("--precision", ",".join(asked.precision) or "fp32", not said.precision and not asked.strongly_typed),
        ("--fallback", asked.fallback or NO_FALLBACK, said.fallback is None),
    ]
    filled = [f"{option} {value}" for option, value, is_default in pairs if is_default]
    return [*filled, *(["--assume-scales"] if asked.assume_scales and not said.assume_scales else [])]
