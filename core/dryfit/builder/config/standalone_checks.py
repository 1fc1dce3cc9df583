"""What the rules on standalone loadables look at in a network and its config. Each check returns what it found."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.network.copying import io_type
from dryfit.network.network import Network
from dryfit.plugins import registry


def other_devices(network: Network, config: BuilderConfig) -> Sequence[str]:
    """A default device that writes no loadables, and layers that were put on another one."""
    default = config.default_device_type
    found = []
    if not registry.target(default).has_loadables:
        found.append(f"default device {default}, which has no loadables")
    others = config.explicit_device_types(network)
    return found + [f"{device} for layer {name!r}" for name, device in others.items() if device != default]


def fallback(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The device to fall back to."""
    del network
    return [] if config.fallback_device is None else [f"fallback to {config.fallback_device}"]


def no_precision(network: Network, config: BuilderConfig) -> Sequence[str]:
    """That no flag permits a type which the default device computes in, where it needs one."""
    target = registry.target(config.default_device_type)
    flags = {"HALF": BuilderFlag.FP16, "INT8": BuilderFlag.INT8}
    is_open = target.default_precision is None and not network.is_strongly_typed
    permitted = [name for name, flag in flags.items() if config.get_flag(flag)]
    return ["neither FP16 nor INT8"] if is_open and not permitted else []


def no_direct_io(network: Network, config: BuilderConfig) -> Sequence[str]:
    """That inputs and outputs may be copied."""
    del network
    return [] if config.get_flag(BuilderFlag.DIRECT_IO) else ["DIRECT_IO is off"]


def open_formats(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Inputs and outputs whose type is none of the device, or whose formats are not stated or none of the device."""
    target = registry.target(config.default_device_type)
    if not target.has_loadables:
        return []  # which other_devices tells
    reads = ((tensor, target.input_formats) for tensor in network.inputs)
    writes = ((tensor, target.output_formats) for tensor in network.outputs)
    found = []
    for tensor, formats in (*reads, *writes):
        dtype = io_type(tensor)
        known = {one.name for one in formats.get(dtype, ())}
        possible = ", ".join(sorted(known))
        strange = sorted((tensor.allowed_formats or frozenset()) - known)
        if not known:
            types = ", ".join(sorted(one.name for one in formats))
            found.append(f"tensor {tensor.name!r} is {dtype.name}, where {types} are possible")
        elif tensor.allowed_formats is None:
            found.append(f"tensor {tensor.name!r} states none of {possible}")
        elif strange:
            found.append(f"{', '.join(strange)} of tensor {tensor.name!r}, where {possible} are possible")
    return found


def left_over_constants(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Layers of explicit quantization, and constants that are outputs or that nobody reads."""
    del config
    found = [f"layer {one.name!r}" for one in network.layers if one.kind in ("quantize", "dequantize")]
    outputs = {tensor.name for tensor in network.outputs}
    return found + [
        f"constant {one.name!r}"
        for one in network.layers
        if one.kind == "constant" and (one.outputs[0].name in outputs or not one.outputs[0].consumers)
    ]


def open_shapes(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Inputs whose extents no profile fixes."""
    profiles = [config.get_optimization_profile(index) for index in range(config.num_optimization_profiles)]
    fixed = profiles[0].fixed_shapes if len(profiles) == 1 else {}
    return [
        f"input {tensor.name!r} {tensor.shape}"
        for tensor in network.inputs
        if -1 in tensor.shape and tensor.name not in fixed
    ]
