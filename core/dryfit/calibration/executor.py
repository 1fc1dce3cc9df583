"""Calibration with the host's kernels: the network as an engine, with a histogram layer for each observed tensor.

Nothing is copied between a tensor and its histogram: the histogram reads the engine's own memory, right after the
tensor is written. A tensor with a second reader is not fused away, and its lifetime does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dryfit.builder.build import build_plan
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.engine.engine import Engine
from dryfit.engine.execution_context import ExecutionContext
from dryfit.network.copying import copy_network
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.quantization.calibration import Show
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.sample_arrays import Feeds

RECORD_PREFIX = "histogram of "
"""Name of a record's tensor without that of the tensor that it is of."""

LARGEST_EXTENT = 1 << 16
"""Dynamic extents up to this can be fed. Our choice: memory is taken for what is fed, not for this."""


class EngineExecutor:
    """Runs a network as an FP32 engine and shows its tensors to collectors.

    An executor for `dryfit.quantization.calibration.collect`. The engine is built for the first sample; later samples
    may have other shapes. Results are bit-identical for any number of threads.

    Args:
        num_threads: number of threads of the engine; None for one per CPU.

    Example:
        >>> seen = collect(network, calibrator, samples, executor=EngineExecutor())
    """

    def __init__(self, num_threads: int | None = None) -> None:
        self._num_threads = num_threads

    def __call__(self, network: Network, collectors: Mapping[str, Collector]) -> Show:
        """Return a function that runs samples one by one and shows a network's tensors to collectors."""
        contexts: list[ExecutionContext] = []

        def show(feeds: Feeds, sample: str) -> None:
            if not contexts:
                contexts.append(self._context(network, collectors, feeds))
            outputs = contexts[0].run(feeds)
            for name, collector in collectors.items():
                if isinstance(collector, Histogram):
                    collector.update_record(outputs[RECORD_PREFIX + name], sample)
                else:
                    collector.update(outputs.get(name, feeds.get(name)), sample)

        return show

    def _context(self, network: Network, collectors: Mapping[str, Collector], feeds: Feeds) -> ExecutionContext:
        histograms = [name for name, one in collectors.items() if isinstance(one, Histogram)]
        others = [name for name in collectors if name not in histograms]
        tapped = tapped_network(network, histograms, others)
        engine = Engine(build_plan(tapped, whole_network_config(tapped, feeds)))
        return engine.create_execution_context(self._num_threads)


def tapped_network(network: Network, histograms: Collection[str], outputs: Collection[str]) -> Network:
    """Return a copy whose outputs are histograms of some tensors, named `histogram of NAME`, and others unchanged."""
    copy = copy_network(network)
    places = {layer.name: float(place) for place, layer in enumerate(copy.layers)}
    records: list[Tensor] = []
    for tensor in [one for one in copy.tensors if one.name in histograms]:
        histogram = copy.add_histogram(tensor)
        # Right after the layer that gives the tensor, which then need not be kept.
        places[histogram.name] = -1.0 if tensor.producer is None else places[tensor.producer.name] + 0.5
        records.append(histogram.get_output(0))
        copy.rename_tensor(records[-1], RECORD_PREFIX + tensor.name)
    copy.layers.sort(key=lambda layer: places[layer.name])
    copy.sort()
    for tensor in list(copy.outputs):
        copy.unmark_output(tensor)
    wanted = [copy.tensor(name) for name in outputs]
    for tensor in (*records, *(one for one in wanted if one.producer is not None)):
        copy.mark_output(tensor)
    return copy


def whole_network_config(network: Network, feeds: Feeds) -> BuilderConfig:
    """Return a config with everything on the host in FP32, for shapes like those of a sample.

    Kernels are not selected by measurement: other kernels round differently, and states would vary between runs.
    """
    config = BuilderConfig()
    config.builder_optimization_level = 0
    config.ranks_unmeasured_kernels = True
    config.default_device_type = registry.host().device
    profile = OptimizationProfile()
    for tensor in network.inputs:
        if tensor.name not in feeds:
            continue
        array = feeds[tensor.name]
        if -1 in tensor.shape and array.ndim == len(tensor.shape):
            ends = [
                tuple(
                    declared if declared != -1 else dynamic
                    for declared, dynamic in zip(tensor.shape, extents, strict=True)
                )
                for extents in ((0,) * array.ndim, array.shape, [max(LARGEST_EXTENT, one) for one in array.shape])
            ]
            profile.set_shape(tensor.name, *ends)
        if tensor.is_shape_tensor:
            values = [int(value) for value in array.reshape(-1)]
            low, high = [min(-1, value) for value in values], [max(LARGEST_EXTENT, value) for value in values]
            profile.set_shape_input(tensor.name, low, values, high)
    if profile:
        config.add_optimization_profile(profile)
    return config
