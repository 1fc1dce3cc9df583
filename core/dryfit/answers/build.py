"""Build the engine of a model and write it to a file: `dryfit build`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Unpack

from dryfit.answers.asked import Asked, Model, asked
from dryfit.answers.compare import Samples, samples_of
from dryfit.answers.comparison.overflows import LISTED, Overflow, found_overflows, overflow_title
from dryfit.answers.export_loadables import ExportLoadablesAnswer, build_standalone
from dryfit.answers.json_data import Count, hidden
from dryfit.answers.options import Options
from dryfit.answers.placement import Placement, placement_of
from dryfit.answers.placement_text import (
    defaults_line,
    heading,
    offloading_blocks,
    outcome_lines,
    placement_blocks,
)
from dryfit.answers.text import Answer, Block, Line, bytes_text
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.builder.config.layer_rules import LayerPattern
from dryfit.builder.config.standalone import is_standalone
from dryfit.builder.config.timing_cache import load_timing_cache, save_timing_cache
from dryfit.building import Builder
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.short_text import count_text, printable


@frozen(repr=False, kw_only=True)
class BuildAnswer(Placement, Answer):
    """A built engine, and where its layers run.

    Attributes:
        engine: path of the engine file.
        engine_bytes: size of the engine file in bytes.
        engine_layers: number of engine layers; a fused group counts as one.
        overflows: FP16 tensors whose layers overflow on the samples but not in FP32; None without samples.
        is_stripped: whether the engine was built without weights.
        notes: remarks on options that were adjusted.
    """

    COMMAND: ClassVar[str] = "build"

    engine: str
    engine_bytes: Count
    engine_layers: Count
    overflows: Sequence[Overflow] | None
    _is_stripped: bool = False
    notes: Sequence[str] = hidden(())

    @property
    def remarks(self) -> Sequence[str]:
        """What the command prints after the answer: the simulated aspects and the first layers that overflow."""
        remarks = [f"Simulated: {self.simulated}."] if self.simulated else []
        if self.overflows:
            remarks.append(f"Warning: {overflow_title(self.overflows)}")
        first = (self.overflows or ())[:LISTED]
        return [*remarks, *(f"  {printable(one.engine_layer, kept='')}: {one.text('FP32')}" for one in first)]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        without = ", without weights: run `dryfit refit` before `dryfit run`" if self._is_stripped else ""
        size = bytes_text(self.engine_bytes)
        return f"{self.engine}: {count_text(self.engine_layers, 'engine layer')}, {size}{without}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the lines and tables that `dryfit build` prints."""
        if verbose:
            yield from placement_blocks(self, verbose=True, is_built=True)
        else:
            yield from outcome_lines(self, is_built=True)
            yield Line(heading(self))
            yield from defaults_line(self.assumed, self.overlays)
            yield from offloading_blocks(self)
        yield Line(f"Built {self.summary_line()}")


def build(
    model: Model,
    output: str | os.PathLike[str],
    *,
    kernels: Sequence[tuple[str, str]] = (),
    forbid_kernels: Sequence[str] = (),
    timing_cache: Path | None = None,
    data: Samples | None = None,
    limit: int | None = None,
    refit: bool = False,
    stripped: bool = False,
    dump_stages: Path | None = None,
    progress: ProgressMonitor | None = None,
    **options: Unpack[Options],
) -> BuildAnswer | ExportLoadablesAnswer:
    """Build the engine of a model and write it to a file; with the engine capability `dla_standalone`, one loadable.

    To build with a config of your own, use `dryfit.Builder`.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        output: path of the file to write.
        kernels: host kernel by layer pattern; the last pattern that matches a layer wins.
        forbid_kernels: patterns of host kernels to exclude.
        timing_cache: timing cache file: read if it exists, then updated with new measurements.
        data: samples for the FP16 overflow check, which reports layers whose results overflow.
        limit: maximum number of samples to read from the start of a folder or file.
        refit: whether the weights of the engine can be refitted.
        stripped: whether to build without weights.
        dump_stages: folder for dumps of the network after each build stage.
        progress: monitor that receives the progress of the build.
        options: keyword arguments named like the options of `dryfit build`, with the same defaults.

    Raises:
        ConfigError: The options conflict with each other or with the model.
        BuildError: The network cannot be built.
        EngineFileError: The file cannot be written.
        CalibrationError, ExecutionError: Samples cannot be read or do not match the network's inputs.
        UnknownNameError: A device, platform or option value does not exist.
    """
    subject = asked(model, None, options)
    network, config = subject.network, subject.config
    if data is not None and (stripped or is_standalone(config)):
        raise ConfigError(
            "Samples cannot be used here: a stripped engine or a loadable cannot run in this build",
            where="--data",
            found="--stripped" if stripped else "a standalone loadable",
            allowed="an engine with weights",
            remedy="Leave out --data, or build an engine with its weights",
        )
    name_kernels(kernels, network, config)
    for pattern in forbid_kernels:
        config.forbid_kernels(pattern)
    for flag in (*([BuilderFlag.REFIT] if refit else []), *([BuilderFlag.STRIP_PLAN] if stripped else [])):
        config.set_flag(flag)
    config.progress_monitor = progress
    builder = Builder()
    builder.dump_stages_directory = dump_stages
    with timing_cache_file(timing_cache, config):
        if is_standalone(config):
            return build_standalone(subject, builder, Path(output))
        return _built(subject, builder, Path(output), data, limit)


def _built(subject: Asked, builder: Builder, output: Path, data: Samples | None, limit: int | None) -> BuildAnswer:
    engine = builder.build_engine(subject.network, subject.config)
    engine.save(output)
    network, plan = subject.network, engine.plan
    samples = None if data is None else samples_of(data, network, plan, limit)
    return BuildAnswer(
        **placement_of(subject.name, plan, plan.settings, subject.assumed).placement_fields,
        engine=str(output),
        engine_bytes=output.stat().st_size,
        engine_layers=engine.num_layers,
        overflows=None if samples is None else found_overflows(network, plan, samples),
        is_stripped=engine.is_stripped,
        notes=subject.notes,
    )


def name_kernels(kernels: Sequence[tuple[str, str]], network: Network, config: BuilderConfig) -> None:
    """Set the host kernels of layers by pattern.

    Raises:
        ConfigError: Some patterns match no layer; the message lists all of them, and no kernel is set.
    """
    patterns = [(LayerPattern(pattern, f"{pattern}={name}"), name) for pattern, name in kernels]
    problems = [pattern.problem(network.layers) for pattern, _ in patterns if not pattern.layers_in(network.layers)]
    if problems:
        raise ConfigError(
            "Each kernel pattern must match a layer",
            where="--kernel",
            found="; ".join(problems),
            remedy="Use names or patterns of layers: `dryfit check --verbose` lists them",
        )
    for pattern, name in patterns:
        for layer in pattern.layers_in(network.layers):
            config.set_kernel(layer, name)


@contextmanager
def timing_cache_file(path: Path | None, config: BuilderConfig) -> Iterator[None]:
    """Use the timing cache of a file for a build, and update the file afterwards; None for no file.

    Raises:
        ConfigError: The file is not a timing cache, was measured on another processor, or cannot be read or written.
    """
    if path is None:
        yield
        return
    cache = load_timing_cache(path)
    config.set_timing_cache(cache)
    yield
    save_timing_cache(cache, path)
