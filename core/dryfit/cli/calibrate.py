"""`dryfit calibrate`: dynamic ranges of a model's tensors from samples, as a calibration cache."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.cli.calibrate_options import CalibrateOptions, calibrate_options
from dryfit.cli.calibration_answer import answer, print_answer, print_comparison
from dryfit.cli.console import print_json, print_note
from dryfit.errors import CalibrationError

if TYPE_CHECKING:
    from dryfit.calibration.task import CalibrationTask
    from dryfit.network.network import Network
    from dryfit.quantization.calibration_state import CalibrationState
    from dryfit.quantization.calibrator import Calibrator


@click.command()
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@calibrate_options
def calibrate(model: Path | None, options: CalibrateOptions) -> None:
    """Find the dynamic ranges of an ONNX MODEL's tensors for INT8, and write them as a calibration cache.

    The model is shown samples (--data) and runs here, in FP32. What was gathered can be kept (--state), solved again by
    another calibrator without running anything, and compared (--compare).
    """
    chosen = options.chosen_calibrator()
    if options.compare:
        _compare(options, chosen)
        return
    if model is None:
        raise click.UsageError("Missing argument 'MODEL'. Only --compare does without")
    from dryfit.answers.asked import load_network
    from dryfit.answers.options import NetworkOptions
    from dryfit.builder.config.quantization_mode import require_calibratable

    network = load_network(model, NetworkOptions(shape=options.shape))
    require_calibratable(network)
    if options.reuse and _covers(model, network, options, chosen):
        return
    if options.data is None:
        state, run = _kept(options, chosen, model), None
    else:
        task = _task(model, network, options, chosen)
        state, run = _run(task, network, options)
    _finish(model, network, options, chosen, state, run)


def _covers(model: Path, network: Network, options: CalibrateOptions, chosen: Calibrator) -> bool:
    """Whether the output is a cache of every tensor already; then it is answered for."""
    from dryfit.quantization.calibration import cache_header, cached_ranges
    from dryfit.quantization.calibration_state import CalibrationState

    if options.output is None or not options.output.exists():
        return False
    header = cache_header(chosen, options.cache_algorithm(chosen))
    found = cached_ranges(network, options.output.read_bytes(), header, name=str(options.output))
    if found is None:
        return False
    _print(answer(model, options, chosen, CalibrationState({}, (), {}), found, None), options)
    print_note(f"{options.output} covers the model: nothing was run")
    return True


def _print(found: dict[str, Any], options: CalibrateOptions) -> None:
    if options.as_json:
        print_json(found)
    else:
        print_answer(found)


def _finish(
    model: Path,
    network: Network,
    options: CalibrateOptions,
    chosen: Calibrator,
    state: CalibrationState,
    run: Mapping[str, Any] | None,
) -> None:
    """Solve, write, print."""
    from dryfit.cli.cache_files import write_ranges
    from dryfit.plugins.calibrators import solvers
    from dryfit.quantization.cache_document import stored_solutions
    from dryfit.quantization.calibration import cache_header
    from dryfit.quantization.network_ranges import solve_network

    solutions = solve_network(network, state.collectors, chosen, full_range=options.full_range, rivals=solvers)
    if options.output is not None:
        header = cache_header(chosen, options.cache_algorithm(chosen))
        facts = {**state.fingerprint, "calibrator": chosen.name, "samples seen": len(state.samples)}
        stored = stored_solutions(solutions, state.collectors, facts, header.text)
        write_ranges(options.output, stored, options.cache_form)
    _print(answer(model, options, chosen, state, solutions, run), options)


def _run(
    task: CalibrationTask, network: Network, options: CalibrateOptions
) -> tuple[CalibrationState, Mapping[str, Any]]:
    """Show the samples. Ctrl-C ends the command after the sample that is being shown, and keeps what was gathered.

    With --jobs it ends at once, and keeps what processes have finished.

    Raises:
        click.Abort: Ctrl-C was pressed.
    """
    from dryfit.cli.calibrate_jobs import run_jobs
    from dryfit.cli.calibration_progress import Interruption, SampleProgress

    names = list(task.source.names(network))[: options.limit]
    place = options.state_place
    before = _read_state(place, task) if options.resume and place is not None and place.exists() else None
    done = 0 if before is None else len(set(names) & set(before.samples))
    with Interruption() as interruption:
        progress = SampleProgress(len(names), done, interruption)
        if options.jobs == 1:
            state = task.run(names, before, progress, network)
        else:
            state = run_jobs(task, names, before, options.jobs, progress, interruption, functools.partial(_keep, place))
    is_complete = set(names) <= set(state.samples)
    is_kept = place is not None and bool(state.samples)
    if place is not None and is_kept and (options.state is not None or not is_complete):
        _write_state(place, state)
    if not is_complete:
        kept = f" They are kept in {place}; add --resume to go on." if is_kept else ""
        stopped = KeyboardInterrupt()
        stopped.add_note(f"{len(state.samples)} of {len(names)} samples were seen.{kept}")
        raise click.Abort from stopped
    if options.state is None and options.resume and place is not None:
        place.unlink(missing_ok=True)
    speed = {"images": progress.images, "seconds": progress.seconds, "images_per_second": progress.images_per_second}
    return state, {"samples_before": done, **speed}


def _task(model: Path, network: Network, options: CalibrateOptions, chosen: Calibrator) -> CalibrationTask:
    from dryfit.answers.asked import load_network
    from dryfit.answers.options import NetworkOptions
    from dryfit.calibration.calibrate import tensors_after_fusion
    from dryfit.calibration.task import CalibrationTask
    from dryfit.cli.calibrate_jobs import threads_per_job
    from dryfit.quantization.calibration_data import source_of

    source = source_of(str(options.data), options.preparation)
    tensors = None
    if not chosen.before_fusion and not options.before_fusion:
        tensors = tensors_after_fusion(network, options.config(network))
    return CalibrationTask(
        load=functools.partial(load_network, model, NetworkOptions(shape=options.shape)),
        source=source,
        calibrator=chosen.name,
        fingerprint=_fingerprint(model, source.text, options, chosen),
        tensors=tensors,
        skips_nonfinite=options.skips_nonfinite,
        num_threads=options.threads or threads_per_job(options.jobs),
    )


def _fingerprint(model: Path, samples: str, options: CalibrateOptions, chosen: Calibrator) -> dict[str, str]:
    is_before = chosen.before_fusion or options.before_fusion
    return {
        "model": f"sha256:{hashlib.sha256(model.read_bytes()).hexdigest()}",
        "shapes": ", ".join(f"{name}={shapes}" for name, shapes in sorted(options.shape.items())),
        "samples": samples,
        "collector": chosen.collector.state_name,
        "values that are not finite": "skipped" if options.skips_nonfinite else "refused",
        "tensors": "before fusion" if is_before else f"after fusion on {options.device}",
    }


# Kept states ----------------------------------------------------------------------------------------------------------


def _kept(options: CalibrateOptions, chosen: Calibrator, model: Path) -> CalibrationState:
    """The state of --state, which another command has gathered from this model."""
    if options.state is None:
        raise click.UsageError("Give samples with --data, or what was gathered before with --state")
    state = _state_of(options.state, chosen, options.skips_nonfinite)
    digest = f"sha256:{hashlib.sha256(model.read_bytes()).hexdigest()}"
    state.require_fingerprint({**state.fingerprint, "model": digest}, str(options.state))
    return state


def _read_state(place: Path, task: CalibrationTask) -> CalibrationState:
    state = _state_of(place, task.chosen_calibrator(), task.skips_nonfinite)
    state.require_fingerprint(task.fingerprint, str(place))
    return state


def _state_of(place: Path, chosen: Calibrator, skips_nonfinite: bool) -> CalibrationState:
    from dryfit.quantization.calibration_state import CalibrationState

    try:
        data = place.read_bytes()
    except OSError as error:
        raise CalibrationError("The state cannot be read", where=str(place), found=error) from error
    return CalibrationState.from_bytes(data, chosen.collector, str(place), skips_nonfinite=skips_nonfinite)


def _write_state(place: Path, state: CalibrationState) -> None:
    from dryfit.atomic_file import write_atomically

    write_atomically(place, [state.to_bytes()])


def _keep(place: Path | None, state: CalibrationState) -> None:
    """Keep what was finished before the rest failed."""
    if place is not None:
        _write_state(place, state)
        print_note(f"{len(state.samples)} samples were seen. They are kept in {place}; add --resume to go on.")


def _compare(options: CalibrateOptions, chosen: Calibrator) -> None:
    """What each calibrator that takes the same state makes of it."""
    from dryfit.plugins.calibrators import solvers
    from dryfit.quantization.calibration import solve

    if options.state is None:
        raise click.UsageError("--compare needs --state: the file that an earlier run wrote")
    state = _state_of(options.state, chosen, options.skips_nonfinite)
    alike = {one.solve: one for one in solvers() if one.collector is chosen.collector} | {chosen.solve: chosen}
    by_name = {one.name: one for one in alike.values()}
    solutions = {name: solve(state.collectors, by_name[name]) for name in sorted(by_name)}
    if options.as_json:
        print_json(
            {
                "state": str(options.state),
                "samples": len(state.samples),
                "calibrators": {
                    name: {tensor: one.dynamic_range and one.dynamic_range.threshold for tensor, one in found.items()}
                    for name, found in solutions.items()
                },
            }
        )
        return
    print_comparison(solutions)
    print_note("Each tensor alone. What shares a range or keeps its largest magnitude, `dryfit calibrate MODEL` tells.")
