"""A calibration run: its samples, and the state that is kept between runs."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from dryfit.answers.asked import load_network, quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.calibration import CalibrationRun
from dryfit.answers.options import NetworkOptions
from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.calibration.calibrate import tensors_after_fusion
from dryfit.calibration.jobs import SampleCount, run_jobs, threads_per_job
from dryfit.calibration.task import CalibrationTask
from dryfit.errors import CalibrationError
from dryfit.network.network import Network
from dryfit.onnx.model_file import ModelSource, SharedModel
from dryfit.quantization.calibration_data import SampleSource, source_of
from dryfit.quantization.calibration_state import CalibrationState
from dryfit.quantization.calibration_stream import CALIBRATOR_NAMES, CalibrationAlgoType
from dryfit.quantization.calibrator import Calibrator
from dryfit.quantization.picture_preparation import PicturePreparation


@frozen(kw_only=True)
class CalibrationRequest:
    """The settings of a calibration; see `calibrate` for most of the fields."""

    name: str
    source: ModelSource
    folder: Path | None
    chosen: Calibrator
    options: NetworkOptions
    data: str | os.PathLike[str] | SampleSource | None
    preparation: PicturePreparation | None
    output: Path | None
    state: Path | None
    resume: bool
    limit: int | None
    full_range: bool
    before_fusion: bool
    device: str
    skips_nonfinite: bool
    threads: int | None
    jobs: int

    @property
    def state_place(self) -> Path | None:
        """The path of the collected statistics: the given file, or a file next to the output."""
        beside = None if self.output is None else self.output.with_name(f"{self.output.name}.state")
        return self.state or beside

    @property
    def algorithm(self) -> CalibrationAlgoType:
        """The algorithm name for the first line of the cache: entropy2 if TensorRT has no such calibrator."""
        algorithms = {name: algorithm for algorithm, name in CALIBRATOR_NAMES.items()}
        return algorithms.get(self.chosen.name, CalibrationAlgoType.ENTROPY_CALIBRATION_2)

    @functools.cached_property
    def digest(self) -> str:
        """The digest of the model's file or bytes."""
        match self.source:
            case str() | os.PathLike():
                data = Path(self.source).read_bytes()
            case bytes():
                data = self.source
            case SharedModel():
                data = self.source.whole().SerializeToString(deterministic=True)
            case _:
                data = self.source.SerializeToString(deterministic=True)
        return f"sha256:{hashlib.sha256(data).hexdigest()}"

    @property
    def looks_before_fusion(self) -> bool:
        """Whether tensors are observed before layer fusion."""
        return self.chosen.before_fusion or self.before_fusion


def data_source(asked: CalibrationRequest) -> SampleSource:
    """Return the source of the samples.

    Raises:
        CalibrationError: No samples were given, or the place has none.
    """
    if asked.data is None:
        raise CalibrationError("No samples were given", remedy="Pass --data")
    if isinstance(asked.data, str | os.PathLike):
        return source_of(os.fspath(asked.data), asked.preparation)
    return asked.data


def run_samples(
    asked: CalibrationRequest,
    network: Network,
    progress: Callable[[int, int], SampleCount],
    select: Callable[[list[str]], list[str]] = list,
) -> tuple[CalibrationState, CalibrationRun]:
    """Process the samples. An interrupted run keeps its statistics; with several jobs, those of finished processes.

    Args:
        asked: the calibration.
        network: the network.
        progress: shows the progress.
        select: chooses samples from the names of all.

    Raises:
        KeyboardInterrupt: The run was stopped.
    """
    data = data_source(asked)
    task = _task(asked, data, network)
    names = select(list(data.names(network))[: asked.limit])
    place, before = asked.state_place, None
    if asked.resume and place is not None and place.exists():
        before = read_state(place, asked.chosen, skips_nonfinite=asked.skips_nonfinite)
        before.require_fingerprint(task.fingerprint, str(place))
    done = 0 if before is None else len(set(names) & set(before.samples))
    with progress(len(names), done) as count:

        def keep(state: CalibrationState) -> None:
            if place is not None:
                write_atomically(place, [state.to_bytes()])
                count.tell(f"{len(state.samples)} samples were seen. They are kept in {place}; add --resume to go on.")

        if asked.jobs == 1:
            state = task.run(names, before, count, network)
        else:
            state = run_jobs(task, names, before, asked.jobs, count, keep)
    _keep_or_stop(asked, names, state)
    return state, CalibrationRun(done, count.images, count.seconds, count.images_per_second)


def with_samples(
    asked: CalibrationRequest, network: Network, state: CalibrationState, names: Sequence[str]
) -> CalibrationState:
    """Return a state with some samples more; the given one is used up."""
    return _task(asked, data_source(asked), network).run(names, state, network=network)


def _keep_or_stop(asked: CalibrationRequest, names: Sequence[str], state: CalibrationState) -> None:
    """Write or remove the stored state.

    Raises:
        KeyboardInterrupt: Not all samples were processed.
    """
    place, is_complete = asked.state_place, set(names) <= set(state.samples)
    is_kept = place is not None and bool(state.samples)
    if place is not None and is_kept and (asked.state is not None or not is_complete):
        write_atomically(place, [state.to_bytes()])
    if not is_complete:
        kept = f" They are kept in {place}; add --resume to go on." if is_kept else ""
        stopped = KeyboardInterrupt()
        stopped.add_note(f"{len(state.samples)} of {len(names)} samples were seen.{kept}")
        raise stopped
    if asked.state is None and asked.resume and place is not None:
        place.unlink(missing_ok=True)


def _task(asked: CalibrationRequest, data: SampleSource, network: Network) -> CalibrationTask:
    tensors = None
    if not asked.looks_before_fusion:
        with quiet_log():
            config, _ = config_of(network, attrs.evolve(asked.options, device=asked.device))
        tensors = tensors_after_fusion(network, config)
    shapes = ", ".join(f"{name}={shapes}" for name, shapes in sorted(asked.options.shape.items()))
    return CalibrationTask(
        load=functools.partial(load_network, asked.source, asked.options, asked.folder),
        source=data,
        calibrator=asked.chosen.name,
        fingerprint={
            "model": asked.digest,
            "shapes": shapes,
            "samples": data.text,
            "collector": asked.chosen.collector.state_name,
            "values that are not finite": "skipped" if asked.skips_nonfinite else "refused",
            "tensors": "before fusion" if asked.looks_before_fusion else f"after fusion on {asked.device}",
        },
        tensors=tensors,
        skips_nonfinite=asked.skips_nonfinite,
        num_threads=asked.threads or threads_per_job(asked.jobs),
    )


# Kept states ----------------------------------------------------------------------------------------------------------


def kept_state(asked: CalibrationRequest) -> CalibrationState:
    """Return the state that an earlier run collected from this model."""
    if asked.state is None:
        raise CalibrationError(
            "No samples were given", remedy="Pass samples with --data, or a saved state with --state"
        )
    state = read_state(asked.state, asked.chosen, skips_nonfinite=asked.skips_nonfinite)
    state.require_fingerprint({**state.fingerprint, "model": asked.digest}, str(asked.state))
    return state


def read_state(place: Path, chosen: Calibrator, *, skips_nonfinite: bool) -> CalibrationState:
    """Return the state that an earlier run stored.

    Raises:
        CalibrationError: The file cannot be read or belongs to another collector.
    """
    try:
        data = place.read_bytes()
    except OSError as error:
        raise CalibrationError(
            "The state cannot be read",
            where=str(place),
            found=error,
            remedy="Check the path, or calibrate with --data to create it",
        ) from error
    return CalibrationState.from_bytes(data, chosen.collector, str(place), skips_nonfinite=skips_nonfinite)
