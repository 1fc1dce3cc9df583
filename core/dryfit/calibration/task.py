"""What a calibration is to gather, as data that can be sent to other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from dryfit.calibration.executor import EngineExecutor
from dryfit.network.network import Network
from dryfit.plugins.calibrators import calibrator as calibrator_of
from dryfit.quantization.calibration import Executor, collect
from dryfit.quantization.calibration_data import NamedFeeds, SampleSource
from dryfit.quantization.calibration_state import CalibrationState
from dryfit.quantization.calibrator import Calibrator


@attrs.frozen
class CalibrationTask:
    """What is to be gathered: it can be pickled, and every process gathers the same from the same samples.

    Attributes:
        load: gives the network.
        source: gives samples.
        calibrator: the calibrator whose collector gathers, or its name.
        fingerprint: what the values depend on, in words; see `CalibrationState`.
        tensors: names of those to look at; all for None.
        skips_nonfinite: count NaN and infinity and leave them out, where they are errors otherwise.
        num_threads: how many threads run the engine; as many as there are CPUs for None.
    """

    load: Callable[[], Network]
    source: SampleSource
    calibrator: Calibrator | str
    fingerprint: Mapping[str, str]
    tensors: Sequence[str] | None = None
    skips_nonfinite: bool = False
    num_threads: int | None = None

    def chosen_calibrator(self) -> Calibrator:
        """The calibrator.

        Raises:
            UnknownNameError: no installed package brings it.
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
        """What is gathered from some samples; from those that `watch` lets through.

        Args:
            names: of the samples; those that `before` has are left out.
            before: what was gathered earlier; it is gone on with.
            watch: is given the samples and gives them on, one after another: to show progress, or to end early. When
                it is asked for the next sample, the last one has been seen by all collectors.
            network: what `load` gives, where it is there already.
            executor: what runs the network, where it is there already; an FP32 engine for None.

        Raises:
            CalibrationError: `before` is of something else, there is no sample, or values are not finite.
            ExecutionError, NetworkError: a sample does not fit the network.
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
