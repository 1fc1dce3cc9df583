"""Restore a builder config from the settings stored in an engine, as written by `BuilderConfig.settings`.

The settings may come from an untrusted file, so each one goes through the setter that a user would call. Calibrators
and timing caches are not part of the settings: the engine contains their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability, ProfilingVerbosity, QuantizationFlag
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.errors import DryfitError, EngineFileError
from dryfit.network.network import Network

NOT_OF_A_CONFIG = frozenset({"passes"})
"""Settings of an engine that its config does not have."""


def config_from_settings(settings: Mapping[str, Any], network: Network) -> BuilderConfig:
    """Return the config that these settings describe for a network.

    Args:
        settings: settings of an engine.
        network: the user's network, whose layer names the settings use.

    Raises:
        EngineFileError: The data does not describe a config, or belongs to another version of dryfit.
    """
    try:
        config = _config(settings, network)
        found = config.settings(network)
    except (DryfitError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _refusal(f"{type(error).__name__}: {error}") from error
    stated = {key: value for key, value in settings.items() if key not in NOT_OF_A_CONFIG}
    other = sorted(key for key in found.keys() | stated.keys() if _plain(found.get(key)) != _plain(stated.get(key)))
    if other:
        raise _refusal(", ".join(f"{key} {str(stated.get(key))[:100]}" for key in other))
    return config


def _config(settings: Mapping[str, Any], network: Network) -> BuilderConfig:
    config = BuilderConfig()
    config.flags = sum(1 << BuilderFlag[name] for name in settings["flags"])
    for name in settings["quantization_flags"]:
        config.set_quantization_flag(QuantizationFlag[name])
    config.default_device_type = settings["default_device_type"]
    if not config.get_flag(BuilderFlag.GPU_FALLBACK):
        config.allow_fallback(settings["fallback_device"])
    for name, device in settings["device_types"].items():
        config.set_device_type(network.layer(name), device)
    for name, kernel in settings["kernels"].items():
        config.set_kernel(network.layer(name), kernel)
    for pattern in settings["forbidden_kernels"]:
        config.forbid_kernels(pattern)
    for device, platform in settings["platforms"].items():
        config.set_platform(device, platform)
    for device, version in settings["software"].items():
        if version:  # a device without versions has ""
            config.set_software(device, version)
    config.power_mode = settings["power_mode"]
    config.DLA_core = settings["DLA_core"]
    config.engine_capability = EngineCapability[settings["engine_capability"]]
    for pool, limit in settings["memory_pool_limits"].items():
        config.set_memory_pool_limit(pool, limit)
    for stated in settings["optimization_profiles"]:
        profile = OptimizationProfile()
        for name, shapes in stated["shapes"].items():
            profile.set_shape(name, *shapes)
        for name, values in stated["shape_values"].items():
            profile.set_shape_input(name, *values)
        config.add_optimization_profile(profile)
    config.profiling_verbosity = ProfilingVerbosity[settings["profiling_verbosity"]]
    config.builder_optimization_level = settings["builder_optimization_level"]
    config.assume_scales = settings["assume_scales"]
    return config


def _plain(value: Any) -> Any:
    """Return data as stored in a file, with lists for tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _refusal(found: str) -> EngineFileError:
    return EngineFileError(
        "The engine was built with settings that this version of dryfit does not support",
        found=found,
        remedy="Build the engine again from the new weights, with this version of dryfit",
    )
