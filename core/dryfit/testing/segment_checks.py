"""Checks of a target's segment compiler, loader and cost function, on random networks as single segments.

Files that a target exports from its segments are checked on the same networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Tensor
from dryfit.reference.executor import run_reference
from dryfit.target.cost import CostEstimate, CostQuestion
from dryfit.target.segments import LoadedSegment, LoadSegment, PlannedSegment, SegmentBinding
from dryfit.target.target import Target
from dryfit.testing.engine_checks import number_problems
from dryfit.testing.guarded_memory import Arrangement, GuardedArray, guarded_array
from dryfit.testing.trial_networks import Trial, make_trial, trial_problems

Array = np.ndarray[Any, Any]


def segment_problems(target: Target, precision: DataType, seed: int, tolerance: float) -> list[str]:
    """Compile a random network as one segment, load the program and run it.

    Args:
        target: an installed target with a compiler and a loader.
        precision: one of `TRIAL_PRECISIONS`.
        seed: seed of the network.
        tolerance: maximum error of an output, as a fraction of its largest magnitude.
    """

    def look(trial: Trial) -> Iterator[str]:
        return _program_problems(target, precision, trial, tolerance)

    return trial_problems(target, precision, seed, look, fallback=False)


def _program_problems(target: Target, precision: DataType, trial: Trial, tolerance: float) -> Iterator[str]:
    compile_segment, load_segment = target.compile_segment, target.load_segment
    if compile_segment is None or load_segment is None:
        return
    segment = _planned(target, precision, trial)
    program = compile_segment(segment)
    if not isinstance(program, bytes):
        yield f"the compiler gives {type(program).__name__}, not bytes"
        return
    if compile_segment(segment) != program:
        yield "compiling it twice gives two programs"
    yield from _damage_problems(load_segment, program)
    yield from _run_problems(load_segment(program), trial, tolerance)


def _planned(target: Target, precision: DataType, trial: Trial) -> PlannedSegment:
    """The network as the builder hands a segment to the compiler."""
    variant, network = TargetVariant.chosen(trial.config, target.device), trial.network
    return PlannedSegment(
        device=target.device,
        platform=variant.platform,
        software=variant.software,
        index=0,
        network=network,
        input_formats={one.name: variant.input_formats(one.shape, one.dtype)[0] for one in network.inputs},
        output_formats={one.name: variant.output_formats(one.shape, one.dtype)[0] for one in network.outputs},
        precisions={layer.name: precision for layer in network.layers},
        pool_limits={pool.name: trial.config.get_memory_pool_limit(pool.name) for pool in target.memory_pools},
    )


def _damage_problems(load_segment: LoadSegment, program: bytes) -> Iterator[str]:
    """Whether the loader refuses what the compiler did not write."""
    for what, damaged in (("an empty program", b""), ("the first half of a program", program[: len(program) // 2])):
        try:
            loaded = load_segment(damaged)
        except Exception:  # noqa: BLE001, S112  a refusal is what is asked for, whatever it is
            continue
        yield f"the loader takes {what} without an error, and makes {type(loaded).__name__} of it"


def _run_problems(loaded: LoadedSegment, trial: Trial, tolerance: float) -> Iterator[str]:
    """Bind a program to spaced memory, run it twice, and compare with the reference."""
    inputs, outputs = _guarded(trial.network.inputs), _guarded(trial.network.outputs)
    for name, memory in inputs.items():
        memory.fill(trial.feeds[name])
    before = {name: memory.contents() for name, memory in inputs.items()}
    steps = loaded.bind(
        SegmentBinding(
            {name: memory.array for name, memory in inputs.items()},
            {name: memory.array for name, memory in outputs.items()},
        )
    )
    first, second = (_results(steps, outputs) for _ in range(2))
    yield from (f"it writes to its input {name}" for name in inputs if inputs[name].contents() != before[name])
    yield from (f"it writes beside its output {name}" for name in outputs if not outputs[name].is_intact_outside)
    expected = run_reference(trial.network, trial.feeds)
    for name, actual in first.items():
        if actual.tobytes() != second[name].tobytes():
            yield f"{name} has other bits when it is run a second time"
        yield from number_problems(name, actual, expected[name], tolerance)


def _guarded(tensors: Sequence[Tensor]) -> dict[str, GuardedArray]:
    spaced = Arrangement(is_spaced=True)
    return {tensor.name: guarded_array(tensor.shape, tensor.dtype.numpy, spaced) for tensor in tensors}


def _results(steps: Sequence[Any], outputs: Mapping[str, GuardedArray]) -> dict[str, Array]:
    for memory in outputs.values():
        memory.fill()
    for step in steps:
        step.run() if hasattr(step, "run") else step()
    return {name: memory.array.copy() for name, memory in outputs.items()}


def cost_problems(target: Target, precision: DataType, seed: int) -> list[str]:
    """Return problems of the estimate for a random network: finite numbers, a basis and a source are required."""
    trial, estimate_cost = make_trial(target, precision, seed), target.estimate_cost
    if not trial.kinds or estimate_cost is None:
        return []
    layers = [layer for layer in trial.network.layers if layer.kind != "constant"]
    variant = TargetVariant.chosen(trial.config, target.device)
    question = CostQuestion(
        layers=layers,
        specs={tensor.name: tensor.spec for tensor in trial.network.tensors},
        platform=variant.platform,
        software=variant.software,
        precisions={layer.name: precision for layer in layers},
        power_mode=variant.power_mode,
    )
    where = f"network {seed} ({', '.join(trial.kinds)}), {precision.text}"
    try:
        first, again = (estimate_cost(question) for _ in range(2))
    except Exception as error:  # noqa: BLE001  a cost function may raise anything
        return [f"{where}: {type(error).__name__}: {error}"]
    if first is None and again is None:
        return []  # nothing is known of the platform
    if not isinstance(first, CostEstimate):
        return [f"{where}: the cost function gives {type(first).__name__}, not a CostEstimate"]
    found = [] if first == again else [f"two estimates of the same layers differ: {first} and {again}"]
    time = first.microseconds
    if time is not None and not (math.isfinite(time) and time > 0):
        found.append(f"the estimated time is {time} us")
    if first.bytes_moved <= 0:
        found.append(f"the layers move {first.bytes_moved} bytes")
    found += [f"`{name}` is empty" for name in ("basis", "source") if not getattr(first, name).strip()]
    return [f"{where}: {problem}" for problem in found]


def export_problems(target: Target, precision: DataType, seed: int) -> list[str]:
    """Build the loadables of a random network twice.

    Args:
        target: an installed target with an exporter.
        precision: one of `TRIAL_PRECISIONS`.
        seed: seed of the network.
    """

    def look(trial: Trial) -> Iterator[str]:
        first, again = (Builder().build_loadables(trial.network, trial.config) for _ in range(2))
        expected = [one.index for one in first.plan.segments if one.device == target.device]
        yield from (f"segment {index} has no file" for index in expected if index not in first.files)
        if first.files != again.files:
            yield "two builds of the same network give other bytes"

    return trial_problems(target, precision, seed, look)
