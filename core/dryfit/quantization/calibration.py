"""Ranges of a network's tensors from samples: the references run it, collectors watch, a solver answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dryfit.errors import CalibrationError, ExecutionError, NetworkError
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization import calibration_cache
from dryfit.quantization.calibration_stream import CalibrationStream, stream_algorithm, stream_samples
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Array, Collector, require_mergeable
from dryfit.reference.executor import needed_layers, run_reference

Feeds = Mapping[str, Array]
"""Input name to array."""

Samples = Iterable[Feeds | tuple[str, Feeds]]
"""Feeds, or their name and feeds. Without a name a sample is called by its number, from 0."""


def calibrate_ranges(
    network: Network, calibrator: Calibrator, samples: Samples | None = None, *, skips_nonfinite: bool = False
) -> dict[str, Solution]:
    """The range of every floating-point tensor of a network, by name, in the order of execution.

    A calibrator that brings its samples is asked for its cache first; one that covers every tensor saves the run. After
    a run the new cache is handed to it.

    Args:
        network: as the ranges are wanted: before or after fusion.
        calibrator: finds the ranges.
        samples: what the network is shown; None where the calibrator brings samples.
        skips_nonfinite: count NaN and infinity and leave them out, where they are errors otherwise.

    Raises:
        CalibrationError: there is no sample, or samples from two sides, or values are not finite.
        PluginError: the calibrator fails.
        ExecutionError, NetworkError: a sample does not fit the network.
    """
    if calibrator.stream is None:
        return solve(collect(network, calibrator, samples or (), skips_nonfinite=skips_nonfinite), calibrator)
    if samples is not None:
        raise CalibrationError("The calibrator brings its own samples", where=f"calibrator {calibrator.name!r}")
    stream = calibrator.stream()
    return _cached(network, stream) or _from_stream(network, calibrator, stream, skips_nonfinite)


def collect(
    network: Network, calibrator: Calibrator, samples: Samples, *, skips_nonfinite: bool = False
) -> dict[str, Collector]:
    """What the calibrator's collectors have seen of each floating-point tensor, by name, in the order of execution.

    Args:
        network: the network.
        calibrator: says which collector.
        samples: what the network is shown.
        skips_nonfinite: count NaN and infinity and leave them out, where they are errors otherwise.

    Raises:
        CalibrationError: there is no sample, or values are not finite.
        ExecutionError, NetworkError: a sample does not fit the network; the error says which.
    """
    collectors: dict[str, Collector] = {}
    for name, feeds in _named(samples):

        def observe(tensor: Tensor, array: Array, sample: str = name) -> None:
            if tensor.dtype.is_floating_point:
                if tensor.name not in collectors:
                    collectors[tensor.name] = calibrator.collector(tensor.name, skips_nonfinite=skips_nonfinite)
                collectors[tensor.name].update(array, sample)

        try:
            run_reference(network, feeds, observe)
        except (ExecutionError, NetworkError) as error:
            raise type(error)(
                error.message,
                where=", ".join(filter(None, (f"sample {name!r}", error.where))),
                found=error.found,
                allowed=error.allowed,
                source=error.source,
                remedy=error.remedy,
            ) from error
    if not collectors:
        raise CalibrationError("There is no sample to calibrate with", where=f"network {network.name!r}")
    return collectors


def merge_collectors(shards: Sequence[Mapping[str, Collector]], calibrator: Calibrator) -> dict[str, Collector]:
    """What one process would have collected from the samples of all shards. The shards stay as they are.

    Args:
        shards: what `collect` gave for each part of the samples, of one network.
        calibrator: the one they were collected for.

    Raises:
        CalibrationError: the calibrator's states cannot be merged, or the shards are of different networks.
    """
    require_mergeable(calibrator.collector, where=f"calibrator {calibrator.name!r}")
    merged: dict[str, Collector] = {}
    for index, shard in enumerate(shards):
        if set(shard) != set(shards[0]):
            raise CalibrationError(
                "The shards are of different networks",
                where=f"shard {index}",
                found=f"tensors that not both have: {', '.join(sorted(set(shard) ^ set(shards[0])))}",
            )
        for name, collector in shard.items():
            if name not in merged:
                merged[name] = calibrator.collector(name, skips_nonfinite=collector.skips_nonfinite)
            merged[name].merge(collector)
    return merged


def solve(collectors: Mapping[str, Collector], calibrator: Calibrator) -> dict[str, Solution]:
    """The range of each tensor, by name.

    Raises:
        PluginError: the calibrator fails.
    """
    return {name: calibrator.solution(collector) for name, collector in collectors.items()}


def _named(samples: Samples) -> Iterator[tuple[str, Feeds]]:
    for index, sample in enumerate(samples):
        yield sample if isinstance(sample, tuple) else (str(index), sample)


def _cached(network: Network, stream: CalibrationStream) -> dict[str, Solution] | None:
    """The ranges of a stream's cache; None where it has none, or not for every tensor."""
    data = stream.read_calibration_cache()
    if data is None or not len(data):
        return None
    cache = calibration_cache.parse(bytes(data))
    if cache.algorithm is not stream_algorithm(stream):
        return None
    network.refresh_shapes()
    computed = [tensor for layer in needed_layers(network) for tensor in layer.outputs]
    names = [one.name for one in [*network.inputs, *computed] if one.dtype.is_floating_point]
    return {name: cache.solution(name) for name in names} if set(names) <= set(cache.scales) else None


def _from_stream(
    network: Network, calibrator: Calibrator, stream: CalibrationStream, skips_nonfinite: bool
) -> dict[str, Solution]:
    samples = stream_samples(stream, network)
    solutions = solve(collect(network, calibrator, samples, skips_nonfinite=skips_nonfinite), calibrator)
    cache = calibration_cache.CalibrationCache.of_solutions(solutions, stream_algorithm(stream))
    stream.write_calibration_cache(cache.to_bytes())
    return solutions
