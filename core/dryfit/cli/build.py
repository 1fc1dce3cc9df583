"""`dryfit build`: from a model to an engine file."""

from __future__ import annotations

from pathlib import Path

import click

from dryfit.answers.options import Options
from dryfit.answers.text import bytes_text
from dryfit.cli.console import json_option, print_json, print_line, print_note, show
from dryfit.cli.kernel_options import kernel_options, name_kernels, timing_cache_file
from dryfit.cli.log import build_log
from dryfit.cli.network_options import network_options
from dryfit.cli.overflow_report import found_overflows, note_overflows
from dryfit.cli.sample_options import SampleOptions, sample_options
from dryfit.short_text import count_text


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output",
    "-o",
    "--saveEngine",
    "output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the engine is written.",
)
@network_options
@kernel_options
@sample_options
@click.option("--refit", is_flag=True, help="Keep what it takes to exchange the engine's weights with `dryfit refit`.")
@click.option(
    "--stripped",
    "--stripWeights",
    "stripped",
    is_flag=True,
    help="Leave the weights out: `dryfit refit` brings them back. With --refit any weights, else those of MODEL only.",
)
@click.option(
    "--dump-stages",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write what each stage of the build made of the network to a text file there.",
)
@click.option("--verbose", is_flag=True, help="Show the placement, and on stderr each stage of the build.")
@json_option
def build(
    model: Path,
    output: Path,
    options: Options,
    samples: SampleOptions,
    kernels: tuple[tuple[str, str], ...],
    forbidden_kernels: tuple[str, ...],
    timing_cache: Path | None,
    refit: bool,
    stripped: bool,
    dump_stages: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Build an engine file from an ONNX MODEL, or with `--engine-capability dla_standalone` one loadable.

    The defaults are those of `dryfit check`, and are printed. Engines and loadables are dryfit's own files, which run
    on this machine: NVIDIA's tools cannot read them; `dryfit export trtexec` writes what the board builds from.

    With --data the engine then runs on samples, and layers whose results overflow FP16 are told. Scales for INT8 are
    not found by this: see `dryfit calibrate`.
    """
    from dryfit.answers.asked import asked
    from dryfit.answers.json_data import plain
    from dryfit.answers.placement import placement_of
    from dryfit.answers.placement_text import (
        defaults_line,
        heading,
        offloading_blocks,
        placement_blocks,
        summary_line,
        verdict_lines,
    )
    from dryfit.builder.config.enumerations import BuilderFlag
    from dryfit.builder.config.standalone import is_standalone
    from dryfit.building import Builder
    from dryfit.cli.loadable_report import write_standalone
    from dryfit.engine.progress import TerminalProgress

    subject = asked(model, None, options)
    network, config = subject.network, subject.config
    for note in subject.notes:
        print_note(note)
    if samples.data is not None and (stripped or is_standalone(config)):
        raise click.UsageError("--data is for an engine that runs here: not for a stripped one, nor for a loadable")
    name_kernels(kernels, network, config)
    for pattern in forbidden_kernels:
        config.forbid_kernels(pattern)
    for flag in (*([BuilderFlag.REFIT] if refit else []), *([BuilderFlag.STRIP_PLAN] if stripped else [])):
        config.set_flag(flag)
    builder = Builder()
    builder.dump_stages_directory = dump_stages
    with build_log(verbose=verbose), TerminalProgress() as progress:
        config.progress_monitor = progress
        with timing_cache_file(timing_cache, config):
            if is_standalone(config):
                write_standalone(builder, network, config, output, defaults=subject.assumed, as_json=as_json)
                return
            engine = builder.build_engine(network, config)
    engine.save(output)
    placement = placement_of(str(model), engine.plan, engine.plan.settings, subject.assumed)
    size = output.stat().st_size
    overflows = found_overflows(network, engine.plan, samples)
    if as_json:
        written = {"engine": str(output), "engine_bytes": size, "engine_layers": engine.num_layers}
        print_json({**plain(placement), **written, "overflows": plain(overflows)})
        return
    if verbose:
        show(placement_blocks(placement, verbose=True))
    else:
        show(verdict_lines(placement))
        print_line(heading(placement))
        show(defaults_line(placement.assumed))
        show(offloading_blocks(placement))
        print_line(summary_line(placement))
    without = ", without weights: run `dryfit refit` before `dryfit run`" if stripped else ""
    print_line(f"{output}: {count_text(engine.num_layers, 'engine layer')}, {bytes_text(size)}{without}")
    if placement.simulated:
        print_note(f"Simulated: {placement.simulated}.")
    note_overflows(overflows or [], "FP32")
