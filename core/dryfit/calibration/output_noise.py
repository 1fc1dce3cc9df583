"""The error that rounding single tensors causes at the outputs of a network, for many roundings in one run.

A sample is run once in FP32. Then each rounding replaces tensors by what INT8 codes would hold of them, and only what
depends on them is run again. Nothing is built for a rounding. Each sample is judged by itself and sums are formed in
the order of the samples, so that the result does not depend on how samples are distributed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.build import build_plan
from dryfit.calibration.executor import tapped_network, whole_network_config
from dryfit.calibration.jobs import SampleCount
from dryfit.calibration.shards import shards_of
from dryfit.engine.partial_runs import PartialRuns
from dryfit.errors import CalibrationError
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.quantization.calibration_data import SampleSource
from dryfit.quantization.range_sharing import floating_point_network
from dryfit.quantization.sample_arrays import Feeds

LARGEST_CODE = 127
SMALLEST_CODE = -128


@frozen
class Rounding:
    """Tensors that are rounded to INT8 with one scale, at the same time.

    Attributes:
        tensors: names.
        scale: real value of one step.
    """

    tensors: tuple[str, ...]
    scale: float


@frozen(eq=False)
class OutputNoise:
    """Energies at the outputs.

    Attributes:
        outputs: names of the outputs.
        samples: names of the samples.
        signal: energy of the FP32 outputs, float64[samples, outputs].
        noise: energy of the difference by rounding, float64[roundings, samples, outputs].
    """

    outputs: tuple[str, ...]
    samples: tuple[str, ...]
    signal: Array
    noise: Array

    def ratios(self) -> Array:
        """Return noise over signal by rounding and output, over all samples: float64[roundings, outputs]."""
        signal = self.signal.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.noise.sum(axis=1) / signal
        return np.where(signal > 0, found, np.where(self.noise.sum(axis=1) > 0, np.inf, 0.0))

    def sqnr_db(self) -> Array:
        """Return the SQNR of the output that suffers most, by rounding: float64[roundings] in dB."""
        with np.errstate(divide="ignore"):
            return np.asarray(-10 * np.log10(self.ratios().max(axis=1, initial=0.0)))

    def joined(self, other: OutputNoise) -> OutputNoise:
        """Return both with the samples of the other behind these."""
        return OutputNoise(
            self.outputs,
            (*self.samples, *other.samples),
            np.concatenate([self.signal, other.signal]),
            np.concatenate([self.noise, other.noise], axis=1),
        )


@frozen
class NoiseTask:
    """A picklable task: roundings to try on samples.

    Attributes:
        load: function that returns the network.
        source: source of the samples.
        roundings: what is tried, each alone.
        num_threads: number of threads; None for one per CPU.
    """

    load: Callable[[], Network]
    source: SampleSource
    roundings: tuple[Rounding, ...]
    num_threads: int | None = None

    def run(
        self, names: Sequence[str], count: SampleCount | None = None, network: Network | None = None
    ) -> OutputNoise:
        """Return the noise of all roundings on these samples.

        Args:
            names: names of the samples.
            count: shows the progress; None for nothing.
            network: result of `load`, if already available.

        Raises:
            CalibrationError, ExecutionError, NetworkError: Samples cannot be read or do not match the network.
        """
        loaded = self.load() if network is None else network
        samples = self.source.samples(names, loaded)
        probe: NoiseProbe | None = None
        found: OutputNoise | None = None
        tensors = list(dict.fromkeys(name for one in self.roundings for name in one.tensors))
        for name, feeds in samples if count is None else count(samples):
            probe = probe or NoiseProbe(loaded, tensors, feeds, self.num_threads)
            one = probe.noise(name, feeds, self.roundings)
            found = one if found is None else found.joined(one)
        if found is None:
            raise CalibrationError("Roundings are judged on at least one sample", remedy="Pass samples")
        return found


class NoiseProbe:
    """A network in FP32 whose tensors can be rounded one by one.

    Args:
        network: the network; it is not modified.
        tensors: names of the tensors that are rounded.
        feeds: a sample; all others have its shapes.
        num_threads: number of threads; None for one per CPU.
    """

    def __init__(self, network: Network, tensors: Sequence[str], feeds: Feeds, num_threads: int | None = None) -> None:
        work = floating_point_network(network)
        self.outputs = tuple(tensor.name for tensor in work.outputs)
        tapped = tapped_network(work, [], list(dict.fromkeys([*tensors, *self.outputs])))
        plan = build_plan(tapped, whole_network_config(tapped, feeds))
        self._runs = PartialRuns(plan, {name: array.shape for name, array in feeds.items()}, num_threads)

    def noise(self, sample: str, feeds: Feeds, roundings: Sequence[Rounding]) -> OutputNoise:
        """Return the noise of each rounding on one sample."""
        exact = {name: array.astype(np.float64) for name, array in self._runs.run(feeds).items()}
        signal = np.array([[float((exact[name] ** 2).sum()) for name in self.outputs]])
        noise = np.zeros((len(roundings), 1, len(self.outputs)))
        for index, rounding in enumerate(roundings):
            changed = {name: rounded(self._runs.array(name), rounding.scale) for name in rounding.tensors}
            found = self._runs.run_after(changed, self.outputs)
            noise[index, 0] = [float(((found[name] - exact[name]) ** 2).sum()) for name in self.outputs]
        return OutputNoise(self.outputs, (sample,), signal, noise)


def rounded(values: Array, scale: float) -> Array:
    """Return what INT8 codes of a scale hold of FP32 values; ties to even."""
    step = np.float32(scale)
    codes = np.asarray(values / step)  # which is no array if `values` has no axes
    np.rint(codes, out=codes)
    np.clip(codes, SMALLEST_CODE, LARGEST_CODE, out=codes)
    return np.multiply(codes, step, out=codes)


def output_noise(
    task: NoiseTask, names: Sequence[str], executor: Executor, count: SampleCount, jobs: int
) -> OutputNoise:
    """Return the same as `NoiseTask.run`, bit for bit, from workers that each take a part of the samples.

    Args:
        task: what is tried.
        names: names of the samples.
        executor: executor of the work; it is not shut down.
        count: shows the progress.
        jobs: number of workers.

    Raises:
        DryfitError: See `NoiseTask.run`.
    """
    shards = shards_of(names, max(1, -(-len(names) // (4 * jobs))))
    found: OutputNoise | None = None
    with count.shown():
        futures = [executor.submit(task.run, shard.names) for shard in shards]
        for shard, future in zip(shards, futures, strict=True):
            part = future.result()
            count.advance(len(shard.names), len(shard.names))
            found = part if found is None else found.joined(part)
    assert found is not None  # noqa: S101  shards_of gives none only for no names, which `run` refuses
    return found
