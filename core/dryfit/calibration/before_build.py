"""Calibration of a network with its config's calibrator, before it is built or assessed."""

from __future__ import annotations

from collections.abc import Mapping

from dryfit.builder.canonicalise import verified
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.precision.scales import FoundRanges, calibrates_before_fusion, needs_calibration
from dryfit.builder.refit.preparation import check_refit_flags
from dryfit.calibration.calibrate import calibrate, tensors_after_fusion
from dryfit.network.copying import with_network_types
from dryfit.network.network import Network
from dryfit.network.tensor import Shape
from dryfit.passes.canonical import specialise


def found_ranges(network: Network, config: BuilderConfig) -> FoundRanges | None:
    """Return the ranges that a config's calibrator finds by running a network; None if no calibration is required.

    The calibrator runs once per unmodified network. Network and config are validated first, because calibration may
    take long.

    Args:
        network: the user's network; it is not modified.
        config: config with the calibrator, its profile and the cache.

    Raises:
        NetworkError: The network is invalid; the message lists all problems.
        ConfigError: The config conflicts with the network, or the calibration profile does not match it.
        CalibrationError: Calibration failed; see `dryfit.quantization.calibration.calibrate_ranges`.
    """
    if not config.has_calibrator:
        return None
    check_refit_flags(config, network)
    verified(network, config)
    calibration = config.calibration()
    if calibration is None or not needs_calibration(network, config):
        return None
    found = config.remembered_ranges(network)
    if found is None:
        calibrator, samples = calibration
        shaped = specialise(with_network_types(network), calibration_shapes(network, config))
        tensors = None if calibrates_before_fusion(config) else tensors_after_fusion(network, config)
        found = calibrate(shaped, calibrator, samples, tensors=tensors, full_range=config.keeps_full_range)
        config.remember_ranges(network, found)
    return found


def calibration_shapes(network: Network, config: BuilderConfig) -> Mapping[str, Shape]:
    """Return the calibration shape by input name; {} for a static network.

    Raises:
        ConfigError: The profile does not match the network.
    """
    profile = config.get_calibration_profile()
    if profile is None:
        return {}
    profile.check(network)
    dynamic = {tensor.name for tensor in network.inputs if -1 in tensor.shape}
    return {name: optimum for name, (_, optimum, _) in profile.shapes.items() if name in dynamic}
