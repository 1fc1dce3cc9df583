"""The calibrator `auto`: ranges judged by the error at the outputs, on samples that are held back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from dryfit.answers.asked import load_network, quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.calibration import MixedCalibration
from dryfit.answers.calibration_run import CalibrationRequest, data_source, with_samples
from dryfit.answers.options import NetworkOptions
from dryfit.answers.sample_gains import Verdict, by_sample_db, gain, probability_outputs, spread_evenly
from dryfit.building import Builder
from dryfit.calibration.executor import whole_network_config
from dryfit.calibration.jobs import SampleCount, threads_per_job
from dryfit.calibration.output_mix import (
    MIX,
    UNRESTRICTED,
    MixedTensor,
    changes_from,
    judged_tensors,
    roundings_of,
    solved_again,
    solved_by_all,
    with_changes,
)
from dryfit.calibration.output_noise import NoiseTask, OutputNoise, output_noise
from dryfit.calibration.worker_processes import WorkerProcesses
from dryfit.engine.engine import Engine
from dryfit.errors import CalibrationError
from dryfit.network.copying import copy_network
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.plugins.calibrators import calibrator as calibrator_of
from dryfit.plugins.calibrators import solvers
from dryfit.quantization.calibration_data import SampleSource
from dryfit.quantization.calibration_state import CalibrationState
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.metric import worst_sqnr_db

ONE_IN = 5
"""One of so many samples is held back."""
MOST_HELD_BACK = 16
"""As many samples are held back at most. Our choice: which range is better is known from few."""


def divided_samples(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the samples to collect from, and those that are held back: spread evenly, at most `MOST_HELD_BACK`.

    Raises:
        CalibrationError: There are too few samples.
    """
    count = min(len(names) // ONE_IN, MOST_HELD_BACK) or min(1, len(names) - 1)
    if count < 1:
        raise CalibrationError(
            "The calibrator auto requires at least two samples, since it judges on samples that it holds back",
            found=len(names),
            remedy="Pass more samples, or choose another calibrator with --calibrator",
        )
    held = spread_evenly(count, len(names))
    kept = [name for index, name in enumerate(names) if index not in held]
    return kept, [name for index, name in enumerate(names) if index in held]


def mixed_solutions(
    asked: CalibrationRequest,
    network: Network,
    state: CalibrationState,
    progress: Callable[[int, int], SampleCount],
) -> tuple[CalibrationState, dict[str, Solution], MixedCalibration]:
    """Return the state of all samples, the ranges of the calibrator `auto`, and how they were mixed.

    What is chosen on the samples held back is solved again from all samples.

    Args:
        asked: the calibration; it has data.
        network: the network.
        state: what was collected from the other samples.
        progress: shows the progress of the judgement.
    """
    source = data_source(asked)
    _, held = divided_samples(list(source.names(network))[: asked.limit])
    known = {one.solve: one for one in solvers() if one.collector is asked.chosen.collector}
    first = calibrator_of("entropy2")
    calibrators = [first, *(one for solve, one in known.items() if solve is not first.solve)]
    found = solved_by_all(network, state.collectors, calibrators, full_range=asked.full_range)
    judged = judged_tensors(network, found)
    roundings = roundings_of(judged)
    task = NoiseTask(
        load=functools.partial(load_network, asked.source, asked.options, asked.folder),
        source=source,
        roundings=roundings,
        num_threads=asked.threads or threads_per_job(asked.jobs),
    )
    noise = _noise(task, held, network, progress, asked.jobs) if roundings else None
    own = {one.name: found[one.name] for one in calibrators}
    with quiet_log():
        verdict_of = _device_verdict(network, source, held, asked)
        verdicts = {name: verdict_of(solutions) for name, solutions in own.items()}
        start = max(own, key=lambda name: verdicts[name].score)
        changes = changes_from(own[start], judged, noise)
        chosen, best = best_mixture(own[start], verdicts[start], changes, verdict_of)
    whole = with_samples(asked, network, state, held)
    named = {start, *(one.calibrator.removesuffix(UNRESTRICTED) for one in chosen)}
    used = [one for one in calibrators if one.name in named]
    again = solved_by_all(network, whole.collectors, used, full_range=asked.full_range)
    kept = solved_again(chosen, judged, start, again)
    scores = {name: one.score for name, one in verdicts.items()}
    mixed = MixedCalibration(
        held_back=held,
        device=asked.device,
        sets=scores | ({MIX: best.score} if kept else {}),
        start=start,
        left=kept,
        judged=len(judged),
        roundings=len(roundings),
    )
    return whole, with_changes(again[start], kept), mixed


def best_mixture(
    start: Mapping[str, Solution],
    start_verdict: Verdict,
    changes: Sequence[MixedTensor],
    verdict_of: Callable[[Mapping[str, Solution]], Verdict],
) -> tuple[Sequence[MixedTensor], Verdict]:
    """Return as many of the changes as do good together, and the verdict on them.

    Errors of several tensors do not simply add up: two ranges that cut off the same values are worse than both. So the
    first change is measured, the first two, four, and so on, and all of them. The best of these is taken if its gain is
    more than chance.

    Args:
        start: ranges to improve.
        start_verdict: verdict on them.
        changes: those that gain most first.
        verdict_of: judges ranges in a device's arithmetic.
    """
    counts = [1 << power for power in range(len(changes).bit_length()) if 1 << power < len(changes)]
    counts += [len(changes)] if changes else []
    best, kept = start_verdict, 0
    for count in counts:
        verdict = verdict_of(with_changes(start, changes[:count]))
        if verdict.score > best.score and gain(start_verdict, verdict, len(counts)).is_convincing:
            best, kept = verdict, count
    return changes[:kept], best


def _noise(
    task: NoiseTask, held: Sequence[str], network: Network, progress: Callable[[int, int], SampleCount], jobs: int
) -> OutputNoise:
    with progress(len(held), 0) as count:
        if jobs == 1:
            return task.run(held, count, network)
        with WorkerProcesses(jobs) as workers:
            return output_noise(task, held, workers, count, jobs)


def _device_verdict(
    network: Network, source: SampleSource, held: Sequence[str], asked: CalibrationRequest
) -> Callable[[Mapping[str, Solution]], Verdict]:
    """Return the judgment of a set of ranges in the device's integer arithmetic, on the held-back samples."""
    samples = [feeds for _, feeds in source.samples(held, network)]
    fixed = copy_network(network)
    for tensor in fixed.inputs:
        tensor.shape = samples[0][tensor.name].shape
    plain = Builder().build_engine(copy_network(fixed), whole_network_config(fixed, samples[0]))
    exact = _outputs(plain, samples, asked.threads)
    probabilities = probability_outputs(fixed)
    options = NetworkOptions(device=asked.device, precision="int8,fp16", fallback="GPU")

    def verdict_of(solutions: Mapping[str, Solution]) -> Verdict:
        copy = copy_network(fixed)
        for tensor in copy.tensors:
            one = solutions.get(tensor.name)
            found = None if one is None else one.dynamic_range
            if found is not None:
                tensor.dynamic_range = found.minimum, found.maximum
        config, _ = config_of(copy, options)
        config.builder_optimization_level = 0
        engine = Builder().build_engine(copy, config)
        outputs = _outputs(engine, samples, asked.threads)
        sqnr = worst_sqnr_db(exact, outputs)
        return Verdict(sqnr, sqnr, by_sample_db(exact, outputs, probabilities))

    return verdict_of


def _outputs(engine: Engine, samples: Sequence[Mapping[str, Array]], threads: int | None) -> list[dict[str, Array]]:
    context = engine.create_execution_context(threads)
    return [context.run(feeds) for feeds in samples]
