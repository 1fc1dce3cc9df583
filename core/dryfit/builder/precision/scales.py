"""The scales of a network for a build: set by hand, from a cache, or given by whoever ran its calibrator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.computation_type import computes_on_codes
from dryfit.builder.config.enumerations import QuantizationFlag
from dryfit.builder.config.quantization_mode import QuantizationMode, is_explicit, quantization_mode
from dryfit.builder.placement.assign import Assignment
from dryfit.errors import CalibrationError, NetworkError
from dryfit.network.copying import given_types, with_network_types
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.integer_inputs import (
    check_scaled_inputs,
    check_unscaled_inputs,
    integer_inputs,
    unscaled_input,
)
from dryfit.quantization.range_sharing import floating_point_network
from dryfit.quantization.scale_table import RangeOrigin, ScaleTable, scale_table
from dryfit.target.target import Target

FoundRanges = Mapping[str, Solution]
"""Tensor name to what a calibrator found for it."""


@frozen(eq=False)
class NetworkScales:
    """The scales of a network that is built, and the types in which its caller gives and takes tensors.

    Attributes:
        table: the INT8 scales of the user's tensors.
        given_types: name of each network input that the caller gives in another type than the network computes on, to
            that type.
        wanted_types: name of each network output whose type on the caller's side was stated, to that type.
        warnings: what is probably wrong with the scales, in sentences.
    """

    table: ScaleTable
    given_types: Mapping[str, DataType]
    wanted_types: Mapping[str, DataType]
    warnings: Sequence[str]

    def lines(self) -> Iterator[str]:
        """Each tensor with its scale and where that comes from, then what contradicts itself."""
        for entry in self.table.entries.values():
            scale = "no scale" if entry.dynamic_range is None else f"{entry.dynamic_range.scale:.9g}"
            yield f"{entry.tensor}: {scale}, {entry.words}"
        yield from map(str, self.table.conflicts)


def scaled(network: Network, work: Network, config: BuilderConfig, found: FoundRanges | None = None) -> NetworkScales:
    """Find the scales of a network, and give the network that is built its ranges.

    Args:
        network: the user's; it stays as it is.
        work: a copy of it after the passes.
        config: has the cache, and says how ranges are shared.
        found: what the config's calibrator found; None where it has none.

    Raises:
        CalibrationError: as `network_scales`.
        NetworkError: an INT8 input or output that stands for real numbers has no scale.
    """
    table = network_scales(network, config, found)
    whole_inputs = int8_inputs(network, table, config)
    doubts = scale_warnings(network, table)
    apply_scales(table, work, whole_inputs)
    given = {**given_types(network), **dict.fromkeys(whole_inputs, DataType.INT8)}
    return NetworkScales(table, given, wanted_types(network, work, config), doubts)


def network_scales(network: Network, config: BuilderConfig, found: FoundRanges | None = None) -> ScaleTable:
    """The scales of a network: stated for its tensors, from a cache, and what a calibrator found.

    A network with quantize and dequantize layers says itself what is quantized: it is not calibrated, and caches do not
    count. Neither do they without the flag INT8.

    Args:
        network: the user's; it stays as it is.
        config: has the cache, and says how ranges are shared.
        found: what the config's calibrator found; None where it has none.

    Raises:
        CalibrationError: ranges are missing that the config's calibrator finds, and were not given.
    """
    solutions = _cached(config)
    if not needs_calibration(network, config):
        return scale_table(_ranged(network, config), solutions if _is_implicit(network, config) else {})
    if found is None:
        raise CalibrationError(
            "The config has a calibrator that was not run before the build",
            where=f"network {network.name!r}",
            remedy="Build with dryfit.Builder, or assess with dryfit.assess: both run the calibrator first",
        )
    return scale_table(_ranged(network, config), {**found, **solutions}, shares_ranges=calibrates_before_fusion(config))


def needs_calibration(network: Network, config: BuilderConfig) -> bool:
    """Whether a config has a calibrator for ranges that neither the network nor its cache states.

    Raises:
        CalibrationError, UnknownNameError: the config asks for a calibrator that is not there.
    """
    if not _is_implicit(network, config) or config.calibration() is None:
        return False
    return bool(scale_table(_ranged(network, config), _cached(config)).missing)


def calibrates_before_fusion(config: BuilderConfig) -> bool:
    """Whether ranges are found for all tensors, which then may share them, rather than for those left after fusion."""
    calibration = config.calibration()
    is_flagged = config.get_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    return is_flagged or (calibration is not None and calibration[0].before_fusion)


def _is_implicit(network: Network, config: BuilderConfig) -> bool:
    return quantization_mode(network, config) is QuantizationMode.IMPLICIT


def _ranged(network: Network, config: BuilderConfig) -> Network:
    """The network in the types in which its tensors have ranges."""
    integers = integer_inputs(network)
    stated = any(network.tensor(name).dynamic_range is not None for name in integers)
    # Else an INT8 input is what it says: whole numbers, which may meet other whole numbers.
    stand_for_real = bool(integers) and (stated or _is_implicit(network, config))
    return floating_point_network(network) if stand_for_real else with_network_types(network)


def int8_inputs(network: Network, scales: ScaleTable, config: BuilderConfig) -> frozenset[str]:
    """Names of the INT8 inputs of an implicitly quantized network: whole numbers that stand for real ones.

    Raises:
        NetworkError: such an input meets whole numbers that have no scale, or has none though the network computes on
            real numbers.
    """
    ranged = frozenset(scales.ranged)
    found = frozenset(integer_inputs(network))
    assumed = config.assume_scales and quantization_mode(network, config) is QuantizationMode.IMPLICIT
    if not assumed:
        found &= ranged
    by_hand = {tensor.name for tensor in network.inputs if tensor.dynamic_range is not None}
    check_scaled_inputs(network, found | by_hand)
    for name, dtype in given_types(network).items():
        if dtype is DataType.INT8 and name not in found:
            raise unscaled_input(name, "the network, which computes in floating point there")
    return found


def wanted_types(network: Network, work: Network, config: BuilderConfig) -> dict[str, DataType]:
    """Name to type of the network outputs whose type on the caller's side was stated.

    Args:
        network: the user's.
        work: a copy of it in the types in which it computes, with its ranges.
        config: whether scales are assumed.

    Raises:
        NetworkError: outputs are wanted in INT8 for real numbers, or the other way round, that have no scale.
    """
    wanted = {tensor.name: tensor.io_dtype for tensor in network.outputs if tensor.io_dtype is not None}
    unscaled = [
        f"{name!r}: {tensor.dtype.text} requested as {dtype.text}"
        for name, dtype in wanted.items()
        if (tensor := work.tensor(name)).dtype is not dtype
        and DataType.INT8 in (tensor.dtype, dtype)
        and tensor.dynamic_range is None
    ]
    if unscaled and not config.assume_scales:
        raise NetworkError(
            "Network outputs converted from INT8 must have a scale",
            where=f"network {network.name!r}",
            found=", ".join(unscaled),
            allowed="a dynamic range for each of them",
            remedy="Calibrate, call set_dynamic_range on these tensors, or set their type to the type that they have",
        )
    return wanted


def check_unscaled(network: Network, assignment: Assignment) -> None:
    """Refuse INT8 inputs of a network that is not quantized explicitly whose codes nobody could read.

    Args:
        network: as it was placed, with its scales.
        assignment: its devices.

    Raises:
        NetworkError: such an input has no scale, and stands for real numbers.
    """
    if not is_explicit(network):
        # A device that needs a flag to know its type computes on real numbers only: there INT8 is a way to store them.
        check_unscaled_inputs(
            network, lambda layer: layer.name not in assignment.devices or _has_integers(assignment.target(layer))
        )


def _has_integers(target: Target) -> bool:
    return target.default_precision is not None or computes_on_codes(target)


def apply_scales(scales: ScaleTable, network: Network, int8_inputs: Collection[str]) -> None:
    """Give the network that is built the ranges of the user's tensors.

    Args:
        scales: of the user's network.
        network: a copy of it, which may have fewer tensors.
        int8_inputs: names of its inputs that are computed on as the real numbers that they stand for.
    """
    scales.apply_to(network)
    for name in int8_inputs:
        network.tensor(name).dtype = DataType.FLOAT
    network.refresh_shapes()


def _cached(config: BuilderConfig) -> dict[str, Solution]:
    cache = config.calibration_cache
    return {} if cache is None else {name: cache.solution(name) for name in cache.scales}


LEAST_RANGE, LARGEST_RANGE = 2.0**-14, 65504.0
"""Our choice: below the one, everything that the scale covers is subnormal in FP16; beyond the other, it overflows."""
_LARGEST_INPUT = 128.0


def scale_warnings(network: Network, scales: ScaleTable) -> list[str]:
    """Warnings, one sentence each.

    Args:
        network: the user's.
        scales: its scales.
    """
    return [*_unlikely_ranges(scales), *_wide_inputs(network, scales), *_wrong_axes(network)]


def _unlikely_ranges(scales: ScaleTable) -> Sequence[str]:
    found = [
        f"{name!r} {entry.dynamic_range.threshold:.4g}"
        for name, entry in scales.ranged.items()
        if entry.dynamic_range is not None and not LEAST_RANGE <= entry.dynamic_range.threshold <= LARGEST_RANGE
    ]
    if not found:
        return []
    others = f" and {len(found) - 1} more" if len(found) > 1 else ""
    where = f"{LEAST_RANGE:.4g} to {LARGEST_RANGE:g}, which FP16 holds"
    return [f"INT8 range outside {where}: {found[0]}{others}. Check the unit of the ranges and the calibration data"]


def _wide_inputs(network: Network, scales: ScaleTable) -> Sequence[str]:
    """INT8 inputs whose calibration data INT8 does not hold.

    Source: TensorRT 8 developer guide, INT8 calibration: data of INT8 inputs are FP32 values of -128 to 127.
    """
    entries = {
        name: scales.ranged[name]
        for name, dtype in given_types(network).items()
        if dtype is DataType.INT8 and name in scales.ranged
    }
    found = [
        f"{name!r} (up to {entry.dynamic_range.threshold:.4g})"
        for name, entry in entries.items()
        if entry.dynamic_range is not None
        and entry.origin is RangeOrigin.CALIBRATED
        and entry.dynamic_range.threshold > _LARGEST_INPUT
    ]
    allowed = "must be FP32 values from -128 to 127"
    return [f"Calibration data of INT8 inputs {allowed}: they are not for {', '.join(found)}"] if found else []


def _wrong_axes(network: Network) -> Sequence[str]:
    """Weights whose scales follow another axis than that of the output channels."""
    if not is_explicit(network):
        return []
    from dryfit.quantization.lint.catalogue import findings_of
    from dryfit.quantization.lint.network_view import NetworkView
    from dryfit.quantization.lint.weights import weights_axis

    return [
        f"Scales of the weights of {one.layer!r} must follow the output channels: {one.found}. It is not INT8"
        for one in findings_of(weights_axis, NetworkView(network))
    ]
