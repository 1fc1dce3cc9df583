"""What a config asks for and a build does not do: the user is told, once for each, instead of being left to believe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import (
    FLAGS_WITH_EFFECT,
    BuilderFlag,
    DeviceType,
    EngineCapability,
    QuantizationFlag,
)
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.builder.design import Design
from dryfit.builder.fusion.groups import FusedGroup
from dryfit.builder.fusion.lowering import LoweredNetwork
from dryfit.engine.stored_tensors import stored_tensors
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import registry
from dryfit.quantization.int8_steps import has_scales
from dryfit.quantization.network_ranges import clipping_text
from dryfit.reference.inference import infer_specs

EXPLICIT_FLAGS = {BuilderFlag.FP8: DataType.FP8, BuilderFlag.INT4: DataType.INT4, BuilderFlag.FP4: DataType.FP4}
"""Flags to the types that they permit. A network that is quantized to one of them needs no flag, and may have it."""


def unused_settings(config: BuilderConfig, design: Design) -> Sequence[str]:
    """The flags and settings of a config that change nothing in an engine, in words."""
    types = {tensor.dtype for tensor in design.network.tensors}
    warnings = [
        f"The flag {flag.name} has no effect in this version"
        for flag in sorted(BuilderFlag)
        if config.get_flag(flag) and flag not in FLAGS_WITH_EFFECT and EXPLICIT_FLAGS.get(flag) not in types
    ]
    if config.get_flag(BuilderFlag.INT8) and not config.assume_scales and not _has_int8(design):
        warnings.append(
            "The flag INT8 has no effect, because no layer has a scale for each of its tensors: calibrate, set "
            "dynamic ranges, or quantize the network"
        )
    if config.get_flag(BuilderFlag.SPARSE_WEIGHTS) and not design.sparse_layers:
        warnings.append(
            "The flag SPARSE_WEIGHTS has no effect: no layer has weights whose zeros its device skips; "
            "`dryfit sparsity check` shows why"
        )
    warnings += _unused_scales(config, design)
    is_safe = config.engine_capability is EngineCapability.SAFETY
    # The rules of the DLA ask for the capability; no other device has any that do.
    if is_safe and not any(DeviceType.DLA in verdicts for verdicts in design.assignment.verdicts.values()):
        warnings.append("The engine capability SAFETY has no effect in this version without layers on the DLA")
    return warnings


def _unused_scales(config: BuilderConfig, design: Design) -> Sequence[str]:
    """What was given to find scales by and is not looked at, and scales that could not be taken as they are."""
    calibration = [
        ("The calibrator", config.has_calibrator),
        ("The calibration cache", config.calibration_cache is not None),
    ]
    settings = [
        ("The setting assume_scales", config.assume_scales),
        ("The calibration profile", config.get_calibration_profile() is not None),
        *((f"The quantization flag {flag.name}", config.get_quantization_flag(flag)) for flag in QuantizationFlag),
    ]
    warnings = []
    if not config.get_flag(BuilderFlag.INT8):
        warnings += [f"{name} has no effect without the flag INT8" for name, is_given in calibration if is_given]
    elif is_explicit(design.network):
        because = "because the network has quantize and dequantize layers"
        warnings += [f"{name} has no effect, {because}" for name, is_given in settings if is_given]
    warnings += [f"Two ranges contradict each other: {conflict}" for conflict in design.network_scales.table.conflicts]
    warnings += [clipping_text(design.network_scales.table.clipped)] if design.network_scales.table.clipped else []
    if design.network_scales.table.unknown:
        names = design.network_scales.table.unknown
        others = f" and {len(names) - 1} others" if len(names) > 1 else ""
        warnings.append(f"Scales are given for tensors that are not in the network: {names[0]!r}{others}")
    return warnings


def exceeded_workspaces(
    config: BuilderConfig, design: Design, lowered: LoweredNetwork, groups: Sequence[FusedGroup]
) -> Sequence[str]:
    """The limits of scratch memory that kernels exceed: kernels have no smaller variant to choose instead.

    Reckoned at the shapes that the engine is optimised for, with one thread.
    """
    warnings = []
    shapes = {tensor.name: design.specs[tensor.name].shape for tensor in design.network.inputs}
    specs = None
    for device in dict.fromkeys(fused.place.device for fused in groups):
        for pool in registry.target(device).memory_pools:
            limit = config.get_memory_pool_limit(pool.name, device) if pool.holds == "workspace" else None
            if limit is None:
                continue
            specs = specs or infer_specs(lowered.network, shapes)
            needs = {
                fused.group.name: fused.kernel.workspace_bytes(fused.group, specs, 1)
                for fused in groups
                if fused.place.device == device and _is_static(fused, specs)
            }
            name = max(needs, key=needs.__getitem__, default="")
            if needs.get(name, 0) > limit:
                warnings.append(
                    f"The limit of {limit} bytes of memory pool {pool.name} is not kept: {name!r} takes "
                    f"{needs[name]} bytes on {device}"
                )
    return warnings


def _is_static(fused: FusedGroup, specs: Mapping[str, TensorSpec]) -> bool:
    """Whether the group's extents are known: what depends on data gets its scratch memory at run time."""
    return all(specs[tensor.name].is_static for tensor in (*fused.group.inputs, *fused.group.outputs))


def _has_int8(design: Design) -> bool:
    """Whether something of the network is computed in INT8, or has the scales for it."""
    return any(
        layer.kind in ("quantize", "dequantize") or has_scales(layer)
        for layer in design.network.layers
        if layer.outputs and design.assignment.carries_data(layer.outputs[0])
    )


LARGEST_FP16 = 65504.0
"""The largest finite number of FP16."""
_LISTED = 3
"""So many tensors are named; the others are counted."""


def overflow_warnings(network: Network, lowered: Network) -> list[str]:
    """A warning that names the first of these tensors, in the order of execution; none where there are none.

    Args:
        network: that is built, with the ranges of its tensors.
        lowered: the engine's.
    """
    declared = {tensor.name: tensor.dtype for tensor in network.tensors}
    found = dict[str, float]()
    for stored in stored_tensors(lowered, declared).values():
        given = network.tensor(stored.of).dynamic_range
        if stored.dtype is DataType.HALF and given is not None:
            largest = max(map(abs, given))
            if largest > LARGEST_FP16:
                found[stored.of] = largest
    if not found:
        return []
    named = [f"{name!r} ({largest:.6g})" for name, largest in list(found.items())[:_LISTED]]
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    text = f"FP16 overflow: tensors stored in FP16 have ranges larger than {LARGEST_FP16:g}: {', '.join(named)}{more}"
    return [f"{text}. Compute their layers in FP32, or scale their inputs or weights down"]
