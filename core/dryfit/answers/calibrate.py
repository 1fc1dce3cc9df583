"""Find the dynamic ranges of a model's tensors: `dryfit.calibrate` and `dryfit calibrate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dryfit.answers.asked import Model, load_network, model_source
from dryfit.answers.calibration import (
    CalibratedTensor,
    CalibrationAnswer,
    CalibrationRun,
    CalibratorsAnswer,
    MixedCalibration,
)
from dryfit.answers.calibration_run import CalibrationRequest, kept_state, read_state, run_samples
from dryfit.answers.mixed_calibration import divided_samples, mixed_solutions
from dryfit.answers.options import NetworkOptions, ShapesSaid
from dryfit.builder.config.quantization_mode import require_calibratable
from dryfit.calibration.jobs import SampleCount
from dryfit.errors import CalibrationError, ConfigError
from dryfit.network.network import Network
from dryfit.plugins.calibrators import calibrator as calibrator_of
from dryfit.plugins.calibrators import solvers
from dryfit.quantization.cache_document import stored_solutions
from dryfit.quantization.cache_forms import write_ranges_file
from dryfit.quantization.calibration import cache_header, cached_ranges, solve
from dryfit.quantization.calibration_data import SampleSource
from dryfit.quantization.calibration_state import CalibrationState
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.network_ranges import solve_network
from dryfit.quantization.picture_preparation import PicturePreparation


def calibrate(
    model: Model,
    data: str | os.PathLike[str] | SampleSource | None = None,
    *,
    calibrator: str | Calibrator = "entropy2",
    output: str | os.PathLike[str] | None = None,
    state: str | os.PathLike[str] | None = None,
    resume: bool = False,
    reuse: bool = False,
    limit: int | None = None,
    shape: ShapesSaid | None = None,
    preparation: PicturePreparation | None = None,
    full_range: bool = True,
    before_fusion: bool = False,
    device: str = "GPU",
    skip_nonfinite: bool = False,
    threads: int | None = None,
    jobs: int = 1,
    example_inputs: Any = None,
    progress: Callable[[int, int], SampleCount] = SampleCount,
) -> CalibrationAnswer:
    """Find the INT8 dynamic ranges of a model's tensors from samples; the model runs on this machine in FP32.

    For networks, and for samples held in memory as arrays, use `dryfit.calibration.calibrate.calibrate`.

    Args:
        model: a path, an ONNX model, or a PyTorch module with `example_inputs`.
        data: samples: a folder, a file, `module:function`, or a source of samples; None to solve `state` only.
        calibrator: an installed calibrator or its name; `auto` judges the ranges of all by the outputs of the network.
        output: path of the calibration cache to write; a `.json` file also contains origins and statistics.
        state: path of the file that stores the collected statistics, or already contains them.
        resume: continue with the samples that an earlier run did not process.
        reuse: skip the run if the output already covers the model.
        limit: maximum number of samples to use, counted from the first.
        shape: shapes of dynamic inputs.
        preparation: how pictures are converted to inputs.
        full_range: whether inputs, and the outputs of softmax and sigmoid, keep their largest magnitude.
        before_fusion: collect ranges before layer fusion, also for the legacy calibrators.
        device: device whose fusions apply for the legacy calibrators, and in whose arithmetic `auto` compares.
        skip_nonfinite: skip and count NaN and infinity.
        threads: number of threads per process; None for one per CPU in total.
        jobs: number of processes that share the samples.
        example_inputs: example inputs of a PyTorch module.
        progress: function that receives the number of samples and how many were processed before, and returns the
            monitor that counts the samples and may stop the run.

    Raises:
        CalibrationError: There are no samples, they cannot be read, or the stored state belongs to another run.
        ConfigError: A shape does not fit the model.
        OnnxImportError: The model is corrupt or has unsupported operators.
        KeyboardInterrupt: The run was stopped; the notes of the exception state what was saved.
        UnknownNameError: The calibrator does not exist.

    Example:
        >>> answer = dryfit.calibrate("digits.onnx", "images.npy", calibrator="minmax", output="new.cache")
        >>> print(answer.summary_line())
        digits.onnx: 15 scales from 8 samples by minmax
    """
    source, folder, name = model_source(model, example_inputs)
    if isinstance(source, Network):
        remedy = "Call dryfit.calibration.calibrate.calibrate"
        raise ConfigError("Networks are calibrated with dryfit.calibration", where="model", remedy=remedy)
    asked = CalibrationRequest(
        name=name,
        source=source,
        folder=folder,
        chosen=calibrator_of(calibrator) if isinstance(calibrator, str) else calibrator,
        options=NetworkOptions.said({"shape": shape} if shape else {}),
        data=data,
        preparation=preparation,
        output=None if output is None else Path(output),
        state=None if state is None else Path(state),
        resume=resume,
        limit=limit,
        full_range=full_range,
        before_fusion=before_fusion,
        device=device,
        skips_nonfinite=skip_nonfinite,
        threads=threads,
        jobs=jobs,
    )
    network = load_network(source, asked.options, folder)
    require_calibratable(network)
    covered = _covering(asked, network) if reuse else None
    if covered is not None:
        return _answer(asked, CalibrationState({}, (), {}), covered, None, is_covered=True)
    mixed = None
    if asked.data is None:
        if asked.chosen.judges_outputs:
            raise CalibrationError(
                "The calibrator must run the network on samples to judge its outputs",
                where=f"calibrator {asked.chosen.name!r}",
                remedy="Pass --data, or choose another calibrator to solve a state",
            )
        kept, run = kept_state(asked), None
    elif asked.chosen.judges_outputs:
        kept, run = run_samples(asked, network, progress, lambda names: divided_samples(names)[0])
    else:
        kept, run = run_samples(asked, network, progress)
    if asked.chosen.judges_outputs:
        kept, solutions, mixed = mixed_solutions(asked, network, kept, progress)
    else:
        solutions = solve_network(network, kept.collectors, asked.chosen, full_range=full_range, rivals=solvers)
    if asked.output is not None:
        facts = {**kept.fingerprint, "calibrator": asked.chosen.name, "samples seen": len(kept.samples)}
        header = cache_header(asked.chosen, asked.algorithm)
        stored = stored_solutions(solutions, kept.collectors, facts, header.text)
        form = "json" if asked.output.suffix.lower() == ".json" else "tensorrt"
        write_ranges_file(asked.output, stored, form)
    return _answer(asked, kept, solutions, run, mixed=mixed)


def compare_calibrators(
    state: str | os.PathLike[str], *, calibrator: str | Calibrator = "entropy2", skip_nonfinite: bool = False
) -> CalibratorsAnswer:
    """Compare the ranges that each calibrator computes from the same state. Runs no model.

    Args:
        state: path of the file that `calibrate` wrote.
        calibrator: a calibrator that accepts the state, or its name.
        skip_nonfinite: whether non-finite values were skipped.

    Raises:
        CalibrationError: The state cannot be read or belongs to another calibrator.
        UnknownNameError: The calibrator does not exist.

    Example:
        >>> list(dryfit.compare_calibrators("digits.state").calibrators)
        ['entropy-all-bins', 'entropy2', 'legacy', 'mean-squared-error', 'minmax', 'percentile']
    """
    chosen = calibrator_of(calibrator) if isinstance(calibrator, str) else calibrator
    kept = read_state(Path(state), chosen, skips_nonfinite=skip_nonfinite)
    alike = {one.solve: one for one in solvers() if one.collector is chosen.collector} | {chosen.solve: chosen}
    by_name = {one.name: one for one in alike.values()}
    found = {name: solve(kept.collectors, by_name[name]) for name in sorted(by_name)}
    return CalibratorsAnswer(
        state=Path(state),
        samples=len(kept.samples),
        calibrators={
            name: {
                tensor: None if one.dynamic_range is None else one.dynamic_range.threshold
                for tensor, one in solutions.items()
            }
            for name, solutions in found.items()
        },
    )


def _answer(
    asked: CalibrationRequest,
    state: CalibrationState,
    solutions: Mapping[str, Solution],
    run: CalibrationRun | None,
    *,
    is_covered: bool = False,
    mixed: MixedCalibration | None = None,
) -> CalibrationAnswer:
    return CalibrationAnswer(
        model=asked.name,
        calibrator=asked.chosen.name,
        options={**asked.chosen.option_defaults, **asked.chosen.options},
        samples=len(state.samples),
        run=run,
        mixed=mixed,
        tensors=[_tensor(name, one, state) for name, one in solutions.items()],
        cache=asked.output,
        state=asked.state,
        solutions=solutions,
        collectors=state.collectors,
        is_covered=is_covered,
    )


def _tensor(name: str, solution: Solution, state: CalibrationState) -> CalibratedTensor:
    found, collector = solution.dynamic_range, state.collectors.get(name)
    return CalibratedTensor(
        name=name,
        threshold=None if found is None else found.threshold,
        scale=None if found is None else found.scale,
        largest=getattr(collector, "magnitude", None),
        skipped=0 if collector is None else collector.skipped,
        reason=solution.reason,
        details=dict(solution.details),
    )


def _covering(asked: CalibrationRequest, network: Network) -> Mapping[str, Solution] | None:
    """Return the ranges in the output if it is a cache that already covers every tensor."""
    if asked.output is None or not asked.output.exists():
        return None
    header = cache_header(asked.chosen, asked.algorithm)
    return cached_ranges(network, asked.output.read_bytes(), header, name=str(asked.output))
