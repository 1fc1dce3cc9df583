"""A calibration task as data that can be sent to other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.calibration.executor import EngineExecutor
from dryfit.network.network import Network
from dryfit.plugins.calibrators import calibrator as calibrator_of
from dryfit.quantization.calibration import Executor, collect
from dryfit.quantization.calibration_data import NamedFeeds, SampleSource
from dryfit.quantization.calibration_state import CalibrationState
from dryfit.quantization.calibrator import Calibrator


@frozen
class CalibrationTask:
    """A picklable calibration task; every process collects the same from the same samples.

    Attributes:
        load: function that returns the network.
        source: source of samples.
        calibrator: calibrator whose collector is used, or its name.
        fingerprint: text of everything that the values depend on; see `CalibrationState`.
        tensors: names of the tensors to observe; None for all.
        skips_nonfinite: whether to skip and count NaN and infinity, which are otherwise errors.
        num_threads: number of threads of the engine; None for one per CPU.
    """

    load: Callable[[], Network]
    source: SampleSource
    calibrator: Calibrator | str
    fingerprint: Mapping[str, str]
    tensors: Sequence[str] | None = None
    skips_nonfinite: bool = False
    num_threads: int | None = None

    def chosen_calibrator(self) -> Calibrator:
        """Return the calibrator.

        Raises:
            UnknownNameError: No installed package provides the calibrator.
        """
        return calibrator_of(self.calibrator) if isinstance(self.calibrator, str) else self.calibrator

    def run(
        self,
        names: Sequence[str],
        before: CalibrationState | None = None,
        watch: Callable[[Iterator[NamedFeeds]], Iterator[NamedFeeds]] = iter,
        network: Network | None = None,
        executor: Executor | None = None,
    ) -> CalibrationState:
        """Return the state collected from some samples, limited to those that `watch` passes on.

        Args:
            names: names of the samples; those that `before` contains are skipped.
            before: state that an earlier run collected; the result includes it.
            watch: function that receives the samples and yields them one by one, to show progress or to stop early.
                When the next sample is requested from it, all collectors have processed the last one.
            network: result of `load`, if already available.
            executor: executor of the network, if already available; None for an FP32 engine.

        Raises:
            CalibrationError: `before` belongs to another task, there are no samples, or values are not finite.
            ExecutionError, NetworkError: A sample does not match the network's inputs.
        """
        if before is not None:
            before.require_fingerprint(self.fingerprint)
        seen = [] if before is None else list(before.samples)
        collectors = {} if before is None else dict(before.collectors)
        loaded = self.load() if network is None else network
        done = set(seen)
        left = [name for name in names if name not in done]

        def counted() -> Iterator[NamedFeeds]:
            for name, feeds in watch(self.source.samples(left, loaded)):
                yield name, feeds
                seen.append(name)

        if left or not seen:
            collect(
                loaded,
                self.chosen_calibrator(),
                counted(),
                skips_nonfinite=self.skips_nonfinite,
                executor=EngineExecutor(self.num_threads) if executor is None else executor,
                tensors=self.tensors,
                collectors=collectors,
            )
        return CalibrationState(self.fingerprint, seen, collectors)
