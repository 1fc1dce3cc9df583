"""The requirements of a standalone loadable on a network and its config: the engine capability DLA_STANDALONE.

The rules are a table, like those on modes. Each one checks the network and config and returns its findings in words.
They are checked before placement, and all violations are reported together.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, EngineCapability
from dryfit.errors import BuildError
from dryfit.network.copying import io_type
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.rule import Rule


def other_devices(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return a default device that cannot write loadables, and layers that are assigned to another device."""
    default = config.default_device_type
    found = []
    if not registry.target(default).has_loadables:
        found.append(f"default device {default}, which does not support loadables")
    others = config.explicit_device_types(network)
    return found + [f"{device} for layer {name!r}" for name, device in others.items() if device != default]


def fallback(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the fallback device."""
    del network
    return [] if config.fallback_device is None else [f"fallback to {config.fallback_device}"]


def no_precision(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Report that no flag allows a type of the default device, although the device requires one."""
    target = registry.target(config.default_device_type)
    flags = {"HALF": BuilderFlag.FP16, "INT8": BuilderFlag.INT8}
    is_open = target.default_precision is None and not network.is_strongly_typed
    permitted = [name for name, flag in flags.items() if config.get_flag(flag)]
    return ["neither FP16 nor INT8"] if is_open and not permitted else []


def no_direct_io(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Report that inputs and outputs may be copied."""
    del network
    return [] if config.get_flag(BuilderFlag.DIRECT_IO) else ["DIRECT_IO is off"]


def open_formats(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return inputs and outputs with an unsupported type, or with formats that are not set or not supported."""
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
            types = ", ".join(sorted(one.text for one in formats))
            found.append(f"tensor {tensor.name!r} is {dtype.text}, where {types} are possible")
        elif tensor.allowed_formats is None:
            found.append(f"tensor {tensor.name!r} sets none of {possible}")
        elif strange:
            found.append(f"{', '.join(strange)} of tensor {tensor.name!r}, where {possible} are possible")
    return found


def left_over_constants(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return layers of explicit quantization, and constants that are outputs or are not used."""
    del config
    found = [f"layer {one.name!r}" for one in network.layers if one.kind in ("quantize", "dequantize")]
    outputs = {tensor.name for tensor in network.outputs}
    return found + [
        f"constant {one.name!r}"
        for one in network.layers
        if one.kind == "constant" and (one.outputs[0].name in outputs or not one.outputs[0].consumers)
    ]


def open_shapes(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return inputs whose extents no profile fixes."""
    profiles = [config.get_optimization_profile(index) for index in range(config.num_optimization_profiles)]
    fixed = profiles[0].fixed_shapes if len(profiles) == 1 else {}
    return [
        f"input {tensor.name!r} {tensor.shape}"
        for tensor in network.inputs
        if -1 in tensor.shape and tensor.name not in fixed
    ]


CHAPTER = "TensorRT 10 developer guide, Working with DLA"
MODE = f"{CHAPTER}: DLA Standalone Mode"

STANDALONE_RULES: Sequence[Rule] = (
    Rule(
        "standalone.device",
        "All layers of a standalone loadable must be on the default device, which must support loadables",
        MODE,
        "Set default_device_type to DLA, and reset the device types of single layers",
        "SA-01",
        finder=other_devices,
    ),
    Rule(
        "standalone.fallback",
        "A standalone loadable must be built without fallback: it runs on one device only",
        MODE,
        "Clear the flag GPU_FALLBACK (on the command line: leave out --fallback)",
        "SA-02",
        finder=fallback,
    ),
    Rule(
        "standalone.precision",
        "A standalone loadable must compute in FP16 or INT8, which a flag permits",
        MODE,
        "Set the flag FP16 or INT8 (on the command line: --precision fp16)",
        "SA-01",
        finder=no_precision,
    ),
    Rule(
        "standalone.direct_io",
        "A standalone loadable must be built with the flag DIRECT_IO: nothing converts formats around it",
        MODE,
        "Set the flag DIRECT_IO (on the command line: --direct-io)",
        "SA-01",
        finder=no_direct_io,
    ),
    Rule(
        "standalone.formats",
        "Each input and output of a standalone loadable must have a type and formats of the device",
        MODE,
        "Set type and allowed_formats of these tensors (on the command line, for example: --input-io-formats "
        "fp16:chw16 --output-io-formats fp16:chw16)",
        "SA-01",
        finder=open_formats,
    ),
    Rule(
        "standalone.fixed_shapes",
        "A standalone loadable must have fixed shapes",
        f"{CHAPTER}: general restrictions",
        "Set one shape for the inputs, or one profile whose minimum, optimum and maximum are equal",
        "SA-03",
        finder=open_shapes,
    ),
    Rule(
        "standalone.left_over_constants",
        "A standalone loadable must not contain Q/DQ layers, or constants left over from them",
        "reports of TensorRT builders: a constant left over from Q/DQ makes a standalone build fail (inferred)",
        "Turn Q/DQ into a calibration cache (`dryfit translate`), and remove unused constants",
        "SA-08",
        finder=left_over_constants,
    ),
)
"""What is known before anything is placed."""

ONE_LOADABLE = Rule(
    "standalone.one_loadable",
    "A standalone loadable must be exactly one segment",
    MODE,
    "Remove what splits the network: a change of the batch, or disconnected layers",
    "SA-02",
)
NO_REFORMATS = Rule(
    "standalone.no_reformats",
    "A standalone loadable must not need copies between types or formats",
    MODE,
    "Set the types and formats of inputs and outputs to those of the layers that read and write them",
    "SA-01",
)

STANDALONE_OUTCOMES: Sequence[Rule] = (ONE_LOADABLE, NO_REFORMATS)
"""What is known only when the segments and the copies around them are."""


def is_standalone(config: BuilderConfig) -> bool:
    """Return whether a config requests a standalone loadable."""
    return config.engine_capability is EngineCapability.DLA_STANDALONE


def refuse_standalone_engine(config: BuilderConfig) -> None:
    """Reject building an engine if a loadable is requested.

    Raises:
        BuildError: The engine capability is DLA_STANDALONE.
    """
    if is_standalone(config):
        raise BuildError(
            "With the engine capability DLA_STANDALONE, a build produces a loadable, not an engine",
            source=MODE,
            remedy="Call build_serialized_network, which returns the loadable's bytes, or set the capability STANDARD",
        )
