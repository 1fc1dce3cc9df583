"""Calibration of a network's tensor ranges: an executor runs samples, collectors gather, a solver computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dryfit.errors import CalibrationError, ExecutionError, NetworkError
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.quantization import cache_forms, calibration_cache
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.calibration_stream import (
    CalibrationAlgoType,
    stream_algorithm,
    stream_full_range,
    stream_options,
    stream_samples,
)
from dryfit.quantization.calibrator import Calibrator, Solution, require_calibrator
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.integer_inputs import integer_inputs
from dryfit.quantization.network_ranges import Rivals, solve_network
from dryfit.quantization.range_sharing import fill_implied, floating_point_network, implied_states, observed_tensors
from dryfit.quantization.sample_arrays import Feeds, Samples, named_samples
from dryfit.reference.executor import needed_layers, run_reference

Show = Callable[[Feeds, str], None]
"""Runs the network on named feeds, and passes its tensors to collectors."""

Executor = Callable[[Network, Mapping[str, Collector]], Show]
"""Prepares a network to run, so that the collectors, by tensor name, receive the values of their tensors."""


def reference_executor(network: Network, collectors: Mapping[str, Collector]) -> Show:
    """Return a run of the reference implementations: slow, and the standard for every other executor."""

    def show(feeds: Feeds, sample: str) -> None:
        def observe(tensor: Tensor, array: Array) -> None:
            if tensor.name in collectors:
                collectors[tensor.name].update(array, sample)

        run_reference(network, feeds, observe)

    return show


def calibrate_ranges(
    network: Network,
    calibrator: Calibrator,
    samples: Samples | None = None,
    *,
    skips_nonfinite: bool = False,
    executor: Executor = reference_executor,
    tensors: Collection[str] | None = None,
    full_range: bool = True,
    rivals: Rivals = tuple,
) -> dict[str, Solution]:
    """Return the range of every floating-point tensor of a network, by name, in execution order.

    If the calibrator provides its own samples, its cache is read first; a cache that covers every tensor makes the run
    unnecessary. After a run, the new cache is passed to the calibrator.

    Args:
        network: the network, before or after fusion, depending on the tensors to calibrate.
        calibrator: calibrator that computes the ranges.
        samples: calibration samples: mappings of input names to arrays, or (name, mapping) pairs; plain arrays if the
            network has one input. None: the calibrator provides samples.
        skips_nonfinite: whether to count and skip NaN and infinity instead of raising an error.
        executor: executor that runs the network.
        tensors: names of the tensors to calibrate, such as those that remain after fusion. None: all tensors.
        full_range: as in `solve_network`; a calibrator that provides its own samples can disable it.
        rivals: as in `solve_network`.

    Raises:
        CalibrationError: The calibrator is of another type, there are no samples, both the caller and the calibrator
            provide samples, or values are not finite.
        PluginError: The calibrator fails.
        ExecutionError, NetworkError: A sample does not match the inputs of the network.
    """

    def ranges_of(shown: Samples, chosen: Calibrator, keeps: bool) -> dict[str, Solution]:
        seen = collect(network, chosen, shown, skips_nonfinite=skips_nonfinite, executor=executor, tensors=tensors)
        return solve_network(network, seen, chosen, full_range=keeps, rivals=rivals)

    require_calibrator(calibrator)
    if calibrator.judges_outputs:
        raise CalibrationError(
            "The calibrator judges the outputs of the network, which requires a model and samples that are held back",
            where=f"calibrator {calibrator.name!r}",
            remedy="Run `dryfit calibrate` or dryfit.calibrate, and use the cache that it writes",
        )
    if calibrator.stream is None:
        return ranges_of(() if samples is None else samples, calibrator, full_range)
    if samples is not None:
        raise CalibrationError(
            "The calibrator provides its own samples",
            where=f"calibrator {calibrator.name!r}",
            remedy="Leave out the samples",
        )
    stream = calibrator.stream()
    chosen = calibrator.with_options(**stream_options(stream))
    header = cache_header(chosen, stream_algorithm(stream))
    data = stream.read_calibration_cache()
    found = None if data is None else cached_ranges(network, bytes(data), header, tensors=tensors)
    if found is None:
        found = ranges_of(stream_samples(stream, network), chosen, full_range and stream_full_range(stream))
        cache = calibration_cache.CalibrationCache.of_solutions(found, header)
        stream.write_calibration_cache(cache.to_bytes())
    return found


def cache_header(calibrator: Calibrator, algorithm: CalibrationAlgoType) -> CacheHeader:
    """Return the first line of a calibrator's cache; for the legacy one, including quantile and cutoff."""
    if algorithm is not CalibrationAlgoType.LEGACY_CALIBRATION:
        return CacheHeader(algorithm)
    options = {**calibrator.option_defaults, **calibrator.options}
    return CacheHeader(algorithm, None, options.get("regression_cutoff"), options.get("quantile"))


def collect(
    network: Network,
    calibrator: Calibrator,
    samples: Samples,
    *,
    skips_nonfinite: bool = False,
    executor: Executor = reference_executor,
    tensors: Collection[str] | None = None,
    collectors: dict[str, Collector] | None = None,
) -> dict[str, Collector]:
    """Return the state of the calibrator's collectors for each floating-point tensor, in execution order.

    Tensors whose state follows exactly from that of others, such as the output of a ReLU, are not collected.

    Args:
        network: the network. INT8 layers and inputs without scales are computed in FP32.
        calibrator: calibrator that defines the collector.
        samples: calibration samples.
        skips_nonfinite: whether to count and skip NaN and infinity instead of raising an error.
        executor: executor that runs the network.
        tensors: names of the tensors to collect. None: all tensors that the outputs require.
        collectors: collectors of an earlier run of the same network, which are continued and returned.

    Raises:
        CalibrationError: There are no samples, or values are not finite.
        ExecutionError, NetworkError: A sample does not match the inputs of the network. The message names the sample.
    """
    work = floating_point_network(network)
    names = [one.name for one in observed_tensors(work) if tensors is None or one.name in tensors]
    found = {} if collectors is None else collectors
    is_fresh = not found
    for name in names:
        if name not in found:
            found[name] = calibrator.collector(name, skips_nonfinite=skips_nonfinite)
    # Of minus infinity, which is skipped, a ReLU makes a zero, which is not.
    implies = calibrator.collector is Histogram and not skips_nonfinite
    implied = implied_states(work, names) if implies else {}
    show = executor(work, {name: found[name] for name in names if name not in implied})
    count = 0
    for count, (name, feeds) in enumerate(named_samples(samples, network), 1):  # noqa: B007  counted
        require_int8(network, feeds, name)
        try:
            show(feeds, name)
        except (ExecutionError, NetworkError) as error:
            raise type(error)(
                error.message,
                where=", ".join(filter(None, (f"sample {name!r}", error.where))),
                found=error.found,
                allowed=error.allowed,
                source=error.source,
                remedy=error.remedy,
            ) from error
    if is_fresh and not count:
        raise CalibrationError(
            "Calibration requires at least one sample", where=f"network {network.name!r}", remedy="Pass samples"
        )
    fill_implied(implied, {name: one for name, one in found.items() if isinstance(one, Histogram)})
    return found


def solve(collectors: Mapping[str, Collector], calibrator: Calibrator) -> dict[str, Solution]:
    """Return the range of each tensor, by name.

    Raises:
        PluginError: The calibrator fails.
    """
    return {name: calibrator.solution(collector) for name, collector in collectors.items()}


def require_int8(network: Network, feeds: Feeds, sample: str) -> None:
    """Check that values fit an INT8 input, which calibration passes as FP32.

    Raises:
        CalibrationError: A value is outside -128 to 127.
    """
    for name in integer_inputs(network):
        array = feeds.get(name)
        if array is not None and array.size and not (array.min() >= -128 and array.max() <= 127):
            raise CalibrationError(
                "The FP32 calibration data of an INT8 input must be in the INT8 range",
                where=f"input {name!r}, sample {sample!r}",
                found=f"values from {array.min()} to {array.max()}",
                allowed="-128 to 127",
                remedy="Scale the samples, or give the input in FP32",
            )


def cached_ranges(
    network: Network,
    data: bytes,
    header: CacheHeader,
    *,
    tensors: Collection[str] | None = None,
    name: str = "calibration cache",
) -> dict[str, Solution] | None:
    """Return the ranges in a cache for a network, if they make a calibration run unnecessary.

    Args:
        network: the network.
        data: contents of the cache file.
        header: first line that a new cache would have.
        tensors: names of the required tensors. None: all tensors.
        name: name of the cache in error messages.

    Returns:
        Tensor to range; None if the cache is empty, does not cover every tensor, or is from another algorithm.

    Raises:
        CalibrationError: The cache is damaged.
    """
    if not data:
        return None
    cache = cache_forms.parse_calibration_cache(data, name)
    if cache.algorithm is not header.algorithm:
        return None
    if header.algorithm is CalibrationAlgoType.LEGACY_CALIBRATION and cache.header != header.text:
        # Of another quantile or cutoff: TensorRT does not use it either.
        return None
    work = floating_point_network(network)
    computed = [tensor for layer in needed_layers(work) for tensor in layer.outputs]
    wanted = [
        one.name
        for one in [*work.inputs, *computed]
        if one.dtype.is_floating_point and (tensors is None or one.name in tensors)
    ]
    return {one: cache.solution(one) for one in wanted} if set(wanted) <= set(cache.scales) else None
