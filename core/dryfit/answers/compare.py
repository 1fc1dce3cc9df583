"""Find where a device's arithmetic diverges from a reference: `dryfit.compare` and `dryfit compare`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from dryfit.answers.arithmetic import plan_arithmetic
from dryfit.answers.asked import Model, asked, no_defaults, quiet_log
from dryfit.answers.comparison.answer import CompareAnswer, ComparedSide, UnknownWeights, ratio_outcomes
from dryfit.answers.comparison.compare import Comparison, declared_types
from dryfit.answers.comparison.compare import compare as compared
from dryfit.answers.comparison.overflows import overflows_of
from dryfit.answers.comparison.sides import EngineSide, Feeds, Side, compared_sides
from dryfit.answers.comparison.stored_network import StoredNetwork, compared_network
from dryfit.answers.options import Options
from dryfit.answers.placement import placement_of
from dryfit.answers.placement_text import heading
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.plan import Plan
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.plugins.model_importers import is_model_file
from dryfit.quantization.calibration_data import source_of

RANKED = 5
"""How many of the layers that add most error are named. Our choice."""

Samples = str | os.PathLike[str] | Feeds | Iterable[Feeds] | Callable[[Network, Plan], Iterable[tuple[str, Feeds]]]
"""A folder, a file, or `module:function`; the inputs of one run by name, or of several; or a function of the network
and the engine's plan that gives name and inputs of each sample."""


def compare(
    model: Model | Engine,
    config: BuilderConfig | None = None,
    *,
    data: Samples,
    against: str | Sequence[str] = "fp32",
    limit: int | None = None,
    tolerance: float = 0.0,
    fail_below: float | None = None,
    threads: int | None = None,
    progress: ProgressMonitor | None = None,
    **options: Unpack[Options],
) -> CompareAnswer:
    """Compare the results of a model on a device with a reference, layer by layer, and find where they diverge.

    The error of each layer is split into the error that the layer itself adds, computed on the reference's inputs, and
    the error that it inherits.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`, which is built; or an engine
            or the path of an engine file.
        config: build settings of a model; None to use the options.
        data: samples; see `Samples`.
        against: one or more references: `fp32` for the model by its definition; a device, such as `gpu`; or a device
            with a software version, such as `dla@8.6`.
        limit: maximum number of samples to read from the start of a folder or file.
        tolerance: largest difference between elements that still count as equal.
        fail_below: minimum signal-to-noise ratio of each output, in dB; see `CompareAnswer.conditions`.
        threads: number of host threads; None for one per CPU.
        progress: monitor that receives the progress of the search for an engine's weights.
        options: keyword arguments named like the options of `dryfit compare`.

    Raises:
        ConfigError: The options, the config and the model conflict, or a side is named twice.
        BuildError: The network cannot be built for one of the sides.
        CalibrationError, ExecutionError: Samples cannot be read or do not match the network's inputs.
        UnknownNameError: A device, platform or option value does not exist.

    Example:
        >>> on_dla = {"device": "DLA", "fallback": "GPU", "precision": "fp16"}
        >>> answer = dryfit.compare("digits.onnx", data="images.npy", against="gpu", **on_dla)
        >>> print(answer.summary_line())
        8 of 10 tensors differ from gpu
    """
    name, plan, notes = _built(model, config, options)
    known = compared_network(plan, progress)
    network, declared = known.network, declared_types(known.network)
    names = [against] if isinstance(against, str) else list(against)
    engine = EngineSide(Path(name).name, plan, declared, threads)
    sides = compared_sides(names, network, plan, declared, threads)
    found = compared(engine, sides, samples_of(data, network, plan, limit), tolerance)
    return _answer(name, plan, known, sides, found, fail_below, notes)


def samples_of(data: Samples, network: Network, plan: Plan, limit: int | None) -> Iterator[tuple[str, Feeds]]:
    """Return the name and inputs of each sample."""
    if isinstance(data, str | os.PathLike):
        source = source_of(os.fspath(data))
        yield from source.samples(list(source.names(network))[:limit], network)
    elif callable(data):
        yield from data(network, plan)
    elif isinstance(data, Mapping):
        yield "sample", data
    else:
        yield from ((f"sample {index}", feeds) for index, feeds in enumerate(data))


def _built(
    model: Model | Engine, config: BuilderConfig | None, options: Mapping[str, object]
) -> tuple[str, Plan, Sequence[str]]:
    """Return (name, plan, notes) of an engine, or of a model that is built and keeps its network with ranges."""
    is_file = isinstance(model, str | os.PathLike) and not is_model_file(model)
    if is_file or isinstance(model, Engine):
        if options or config is not None:
            raise ConfigError(
                "Build options cannot be changed for a built engine",
                found=", ".join(options) or "a config",
                remedy="Pass the model instead",
            )
        engine = model if isinstance(model, Engine) else Engine.load(Path(model))
        return (str(model) if is_file else engine.plan.network.name), engine.plan, ()
    subject = asked(model, config, options, defaults=no_defaults)
    was_set = subject.config.get_flag(BuilderFlag.REFIT)
    subject.config.set_flag(BuilderFlag.REFIT)  # so that the plan keeps the network, ranges and all
    try:
        with quiet_log():
            plan = Builder().build_plan(subject.network, subject.config)
    finally:
        if not was_set:
            subject.config.clear_flag(BuilderFlag.REFIT)
    return subject.name, plan, subject.notes


def _answer(
    name: str,
    plan: Plan,
    known: StoredNetwork,
    sides: Sequence[Side],
    found: Comparison,
    least: float | None,
    notes: Sequence[str],
) -> CompareAnswer:
    placed = placement_of(name, plan, plan.settings)
    shared = ("model", "device", "platform", "software", "precisions", "fallback", "overlays", "simulated", "plugins")
    outputs = {one.tensor: one.differences for one in found.tensors if one.is_output}
    return CompareAnswer(
        **{key: getattr(placed, key) for key in shared},
        arithmetic=plan_arithmetic(plan),
        weights=known.weights,
        weights_rounded=known.rounded,
        weights_unknown=[UnknownWeights(layer, reason) for layer, reason in known.unknown.items()],
        samples=found.samples,
        sides=[_side(side, found) for side in sides],
        tensors=found.tensors,
        left_out=found.left_out,
        conditions=[] if least is None else ratio_outcomes(outputs, least),
        heading=heading(placed),
        notes=notes,
    )


def _side(side: Side, found: Comparison) -> ComparedSide:
    first = found.first_error(side.name)
    known = [difference for one in found.tensors if (difference := one.differences[side.name]) is not None]
    return ComparedSide(
        name=side.name,
        arithmetic=[] if side.plan is None else plan_arithmetic(side.plan),
        compared=len(known),
        differing=sum(one.differing > 0 for one in known),
        first_error=None if first is None else first.stored_as,
        overflows=overflows_of(found, side.name),
        largest_errors=[one.stored_as for one in found.largest_errors(side.name)[:RANKED]],
    )
