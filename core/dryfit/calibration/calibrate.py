"""Calibration for users: by calibrator name, with the host's kernels, and in shards that can be merged."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Executor
from typing import Any

from dryfit.builder.build import build_plan
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.mode_rules import CALIBRATED_BEFORE_FUSION, is_for_dla, mode_error
from dryfit.calibration.executor import EngineExecutor
from dryfit.calibration.shards import SAMPLES_PER_SHARD, collect_shards
from dryfit.calibration.task import CalibrationTask
from dryfit.network.network import Network
from dryfit.plugins.calibrators import calibrator as calibrator_of
from dryfit.plugins.calibrators import solvers
from dryfit.quantization.calibration import calibrate_ranges
from dryfit.quantization.calibration_data import SampleSource
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.network_ranges import solve_network
from dryfit.quantization.range_sharing import floating_point_network
from dryfit.quantization.sample_arrays import Samples


def calibrate(
    network: Network,
    calibrator: Calibrator | str = "entropy2",
    samples: Samples | None = None,
    *,
    num_threads: int | None = None,
    **settings: Any,
) -> dict[str, Solution]:
    """Find the range of every floating-point tensor of a network, by name; the network runs as an FP32 engine.

    Args:
        network: network before fusion, or with `tensors` those that remain after fusion.
        calibrator: a calibrator, or its name.
        samples: samples for the network; None if the calibrator provides them.
        num_threads: number of threads of the engine; None for one per CPU.
        settings: settings of `dryfit.quantization.calibration.calibrate_ranges`.

    Raises:
        UnknownNameError: No installed package provides the calibrator.
        CalibrationError, PluginError, ExecutionError, NetworkError: See `calibrate_ranges`.

    Example:
        >>> ranges = calibrate(network, "minmax", [{"x": array} for array in arrays])
        >>> ranges["x"].dynamic_range.scale
        0.007874015718698502
    """
    chosen = calibrator_of(calibrator) if isinstance(calibrator, str) else calibrator
    settings = {"rivals": solvers, **settings}
    return calibrate_ranges(network, chosen, samples, executor=EngineExecutor(num_threads), **settings)


def calibrate_shards(
    load: Callable[[], Network],
    calibrator: Calibrator | str,
    source: SampleSource,
    executor: Executor,
    *,
    samples_per_shard: int = SAMPLES_PER_SHARD,
    mixes_processors: bool = False,
    skips_nonfinite: bool = False,
    tensors: Collection[str] | None = None,
    full_range: bool = True,
    num_threads: int = 1,
) -> dict[str, Solution]:
    """Find the same ranges as `calibrate`, bit for bit, with the workers of an executor.

    Args:
        load: function that returns the network. Each worker calls it, so it must be picklable, such as
            `functools.partial(dryfit.network_from_onnx, "model.onnx")`.
        calibrator: see `calibrate`.
        source: samples for the network, such as `source_of("pictures")`; each worker opens its own part.
        executor: see `dryfit.calibration.shards.collect_shards`; it is not shut down.
        samples_per_shard: see `collect_shards`.
        mixes_processors: see `collect_shards`.
        skips_nonfinite: whether to skip and count NaN and infinity, which are otherwise errors.
        tensors: see `dryfit.quantization.calibration.calibrate_ranges`.
        full_range: see `calibrate_ranges`.
        num_threads: number of threads of the engine in each worker.

    Raises:
        UnknownNameError: No installed package provides the calibrator.
        CalibrationError, PluginError, ExecutionError, NetworkError: See `collect_shards` and `calibrate_ranges`.

    Example:
        >>> load = functools.partial(dryfit.network_from_onnx, "model.onnx")
        >>> with WorkerProcesses(2) as workers:
        ...     ranges = calibrate_shards(load, "entropy2", source_of("pictures"), workers)
    """
    chosen = calibrator_of(calibrator) if isinstance(calibrator, str) else calibrator
    network = load()
    task = CalibrationTask(
        load=load,
        source=source,
        calibrator=calibrator,
        fingerprint={"samples": source.text},
        tensors=None if tensors is None else tuple(tensors),
        skips_nonfinite=skips_nonfinite,
        num_threads=num_threads,
    )
    state = collect_shards(
        task,
        source.names(network),
        executor,
        samples_per_shard=samples_per_shard,
        mixes_processors=mixes_processors,
    )
    return solve_network(network, state.collectors, chosen, full_range=full_range, rivals=solvers)


def tensors_after_fusion(network: Network, config: BuilderConfig) -> list[str]:
    """Return the tensors that remain when layers are fused for the config's devices in FP32.

    TensorRT's legacy calibrators observe these tensors. INT8 fusion may go further.

    Raises:
        BuildError, ConfigError, PlacementError: The network cannot be built, for example because an input is dynamic
            and the config has no optimization profile; or it is for the DLA, for which ranges are found before fusion.
    """
    if is_for_dla(network, config):
        raise mode_error(CALIBRATED_BEFORE_FUSION, f"network {network.name!r} on DLA")
    plain = BuilderConfig()
    plain.default_device_type = config.default_device_type
    plain.allow_fallback(config.fallback_device)
    for index in range(config.num_optimization_profiles):
        plain.add_optimization_profile(config.get_optimization_profile(index))
    plan = build_plan(floating_point_network(network), plain)
    inputs = {tensor.name for tensor in network.inputs}
    return [tensor.name for tensor in network.tensors if tensor.name in plan.placements or tensor.name in inputs]
