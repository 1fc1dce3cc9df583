"""The scales of a network for a build: set by hand, from a cache, or found by running the network on samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import QuantizationFlag
from dryfit.builder.explicit_quantization.mode import QuantizationMode, is_explicit, quantization_mode
from dryfit.builder.placement.assign import Assignment
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.io_types import given_types, with_network_types
from dryfit.network.network import Network
from dryfit.network.tensor import Shape
from dryfit.passes.specialise import specialise
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.integer_inputs import (
    check_scaled_inputs,
    check_unscaled_inputs,
    integer_inputs,
    unscaled_input,
)
from dryfit.quantization.observed_tensors import floating_point_network
from dryfit.quantization.sample_arrays import Samples
from dryfit.quantization.scale_table import ScaleTable, scale_table


def network_scales(network: Network, config: BuilderConfig) -> ScaleTable:
    """The scales of a network; a calibrator is asked once for each network as it stands.

    A network with quantize and dequantize layers says itself what is quantized: it is not calibrated, and caches do not
    count. Neither do they without the flag INT8.

    Args:
        network: the user's; it stays as it is.
        config: has the calibrator, its profile and the cache.

    Raises:
        CalibrationError: calibration fails; see `dryfit.quantization.calibration.calibrate_ranges`.
        ConfigError: the calibration profile does not fit the network.
    """
    is_implicit = quantization_mode(network, config) is QuantizationMode.IMPLICIT
    integers = integer_inputs(network)
    stand_for_real = is_implicit or any(network.tensor(name).dynamic_range is not None for name in integers)
    # Else an INT8 input is what it says: whole numbers, which may meet other whole numbers.
    work = floating_point_network(network) if integers and stand_for_real else with_network_types(network)
    if not is_implicit:
        return scale_table(work)
    solutions = _cached(config)
    calibration = config.calibration()
    shares = True
    if calibration is not None and scale_table(work, solutions).missing:
        calibrator, samples = calibration
        shares = calibrator.before_fusion or config.get_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
        found = config.remembered_ranges(network)
        if found is None:
            found = _calibrated(network, config, calibrator, samples, shares)
            config.remember_ranges(network, found)
        solutions = {**found, **solutions}
    return scale_table(work, solutions, shares_ranges=shares)


def int8_inputs(network: Network, scales: ScaleTable, config: BuilderConfig) -> frozenset[str]:
    """Names of the INT8 inputs of an implicitly quantized network: whole numbers that stand for real ones.

    Raises:
        NetworkError: such an input meets whole numbers that have no scale, or has none though the network computes on
            real numbers.
    """
    ranged = {name for name, entry in scales.entries.items() if entry.dynamic_range is not None}
    found = frozenset(integer_inputs(network))
    assumed = config.assume_scales and quantization_mode(network, config) is QuantizationMode.IMPLICIT
    if not assumed:
        found &= ranged
    by_hand = {tensor.name for tensor in network.inputs if tensor.dynamic_range is not None}
    check_scaled_inputs(network, found | by_hand)
    for name, dtype in given_types(network).items():
        if dtype is DataType.INT8 and name not in found:
            raise unscaled_input(name, "the network, which computes on real numbers there")
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
        f"{name!r}: {tensor.dtype.name} wanted in {dtype.name}"
        for name, dtype in wanted.items()
        if (tensor := work.tensor(name)).dtype is not dtype
        and DataType.INT8 in (tensor.dtype, dtype)
        and tensor.dynamic_range is None
    ]
    if unscaled and not config.assume_scales:
        raise NetworkError(
            "Between INT8 and real numbers stands a scale, and these network outputs have none",
            where=f"network {network.name!r}",
            found=", ".join(unscaled),
            allowed="a dynamic range for each of them",
            remedy="Calibrate, or call set_dynamic_range on these tensors; or take them in the type that they have",
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
            network,
            lambda layer: (
                layer.name not in assignment.devices or assignment.target(layer).default_precision is not None
            ),
        )


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


def calibration_shapes(network: Network, config: BuilderConfig) -> Mapping[str, Shape]:
    """Input name to the shape in which the network is calibrated; {} for a network that is static.

    Raises:
        ConfigError: the profile does not fit the network.
    """
    profile = config.get_calibration_profile()
    if profile is None:
        return {}
    profile.check(network)
    dynamic = {tensor.name for tensor in network.inputs if -1 in tensor.shape}
    return {name: optimum for name, (_, optimum, _) in profile.shapes.items() if name in dynamic}


def _cached(config: BuilderConfig) -> dict[str, Solution]:
    cache = config.calibration_cache
    return {} if cache is None else {name: cache.solution(name) for name in cache.scales}


def _calibrated(
    network: Network, config: BuilderConfig, calibrator: Calibrator, samples: Samples | None, before_fusion: bool
) -> dict[str, Solution]:
    """What a calibrator finds by running the network, for all its tensors or for those that are left after fusion."""
    # An engine is built to calibrate, by the builder that asks for the scales.
    from dryfit.calibration.calibrate import calibrate, tensors_after_fusion

    shaped = specialise(with_network_types(network), calibration_shapes(network, config))
    tensors = None if before_fusion else tensors_after_fusion(network, config)
    return calibrate(shaped, calibrator, samples, tensors=tensors, full_range=config.keeps_full_range)
