"""`dryfit run`: run an engine, a loadable or a model on this machine's CPU."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.answers.options import NetworkOptions, Options
from dryfit.answers.text import table_name
from dryfit.cli.console import json_option, print_defaults, print_json, print_line, print_table
from dryfit.cli.network_options import network_options
from dryfit.cli.operator_rules_report import operators_data, print_operators
from dryfit.cli.sample_options import data_option, limit_option, picture_options_of
from dryfit.plugins import registry
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.cli.run_inputs import Arrays
    from dryfit.engine.engine import Engine
    from dryfit.engine.profiler import LayerTimes
    from dryfit.quantization.picture_preparation import PicturePreparation

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("model", required=False, type=FILE)
@click.option("--loadEngine", "load_engine", type=FILE, metavar="FILE", help="The same as MODEL, as in trtexec.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="An input from .npy or a picture, or all from .npz; NAME= may be left out for the only input.",
)
@data_option
@limit_option
@click.option("--random", "seed", type=int, metavar="SEED", help="Random inputs instead of files.")
@picture_options_of
@click.option("--labels", type=FILE, metavar="FILE", help="Labels of the classes, one a line; shows the top five.")
@click.option("--batches", is_flag=True, help="Cut the inputs into runs of the engine's batch size.")
@click.option(
    "--output-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write outputs as .npy."
)
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Host threads; as many as CPUs if left out.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, metavar="N", help="Run everything N times.")
@click.option(
    "--profile",
    "--dumpProfile",
    "profile",
    is_flag=True,
    help="Show the host's time of each engine layer, slowest first.",
)
@network_options
@json_option
def run(
    model: Path | None,
    load_engine: Path | None,
    inputs: tuple[str, ...],
    data: str | None,
    limit: int | None,
    seed: int | None,
    preparation: PicturePreparation,
    labels: Path | None,
    batches: bool,
    output_dir: Path | None,
    threads: int | None,
    repeat: int,
    profile: bool,
    options: Options,
    as_json: bool,
) -> None:
    """Run an engine, a loadable or an ONNX MODEL on this machine. Times are this machine's, not the device's.

    An ONNX MODEL is built for this run, with the options and defaults of `dryfit build`. Pictures are prepared as
    `dryfit calibrate` does it; for them, and with --labels, the five most likely classes are shown.
    """
    from dryfit.builder.assessment import operator_rules
    from dryfit.cli.run_inputs import RunInputs
    from dryfit.cli.run_sources import engine_of
    from dryfit.cli.top_classes import print_top_classes, read_labels, top_classes
    from dryfit.engine.profiler import LayerTimes

    if (model is None) == (load_engine is None):
        raise click.UsageError("Give an engine, a loadable or an ONNX model: `dryfit run MODEL`")
    if sum((bool(inputs), data is not None, seed is not None)) != 1:
        raise click.UsageError("Give one of --input, --data and --random")
    path = model or load_engine or Path()
    texts = None if labels is None else read_labels(labels)
    engine, defaults = engine_of(path, NetworkOptions.said(options))
    taken = RunInputs.of(engine, inputs, data, seed, preparation, limit, batches=batches)
    context = engine.create_execution_context(threads)
    times = LayerTimes() if profile else None
    context.profiler = times
    began = time.perf_counter()
    outputs = _run_all(context, itertools.chain.from_iterable(taken.feeds() for _ in range(repeat)), len(taken))
    runs = repeat * len(taken)
    milliseconds = (time.perf_counter() - began) * 1e3 / runs
    classes = top_classes(outputs, taken.names, texts) if taken.has_pictures or texts is not None else []
    files = {} if output_dir is None else _write(outputs, output_dir)
    if as_json:
        print_json({**_report(path, engine, outputs, files, milliseconds, runs, times), "top_classes": classes})
        return
    print_defaults(defaults)
    rows = [
        (table_name(name), array.shape, array.dtype, _range(array), files.get(name)) for name, array in outputs.items()
    ]
    print_table("Outputs", ["name", "shape", "type", "range", "file"], rows)
    print_top_classes(classes)
    print_line(f"{milliseconds:.3g} ms per run on this host ({count_text(runs, 'run')}, including warm-up)")
    print_operators(operators_data(operator_rules(engine.plan.network)))
    if times is not None:
        print_profile(times.medians())


def print_profile(medians: Mapping[str, float]) -> None:
    """The host's time of each engine layer and its share, the slowest first."""
    total = sum(medians.values()) or 1.0
    ordered = sorted(medians.items(), key=lambda item: -item[1])
    rows = [(table_name(name), f"{ms:.4f}", f"{100 * ms / total:.1f} %") for name, ms in ordered]
    print_table("Host times (median ms; not the device's)", ["engine layer", "ms", "share"], rows)


def _run_all(context: Any, runs: Iterable[Any], length: int) -> Arrays:
    """The outputs of the last `length` runs, joined along the first axis where there are several."""
    import numpy as np

    from dryfit.engine.progress import TerminalProgress, run_many

    kept: list[Arrays] = []
    with TerminalProgress() as progress:
        for outputs in run_many(context, runs, progress):
            kept = [*kept[-(length - 1) :], outputs] if length > 1 else [outputs]
    if length == 1:
        return kept[0]
    return {name: np.concatenate([outputs[name] for outputs in kept]) for name in kept[0]}


def _write(outputs: Arrays, folder: Path) -> dict[str, str]:
    import numpy as np

    from dryfit.atomic_file import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    for number, (name, array) in enumerate(outputs.items()):
        path = str(folder / f"{''.join(c if c.isalnum() or c in '-_.' else '_' for c in name)}.npy")
        if path in files.values():
            path = str(folder / f"output_{number}.npy")
        contents = io.BytesIO()
        np.save(contents, array, allow_pickle=False)
        write_atomically(path, [contents.getbuffer()])
        files[name] = path
    return files


def _range(array: Any) -> str:
    return f"{array.min():.6g} to {array.max():.6g}" if array.size and array.dtype.kind in "fiu" else "-"


def _report(
    path: Path,
    engine: Engine,
    outputs: Arrays,
    files: dict[str, str],
    milliseconds: float,
    runs: int,
    times: LayerTimes | None,
) -> dict[str, Any]:
    from dryfit.builder.assessment import operator_rules

    return {
        "engine": str(path),
        "name": engine.name,
        "outputs": [
            {"name": name, "shape": list(array.shape), "type": str(array.dtype), "file": files.get(name)}
            for name, array in outputs.items()
        ],
        "runs": runs,
        "host_milliseconds_a_run": milliseconds,
        "host_milliseconds_by_layer": None if times is None else times.medians(),
        "quantized_operators": operators_data(operator_rules(engine.plan.network)),
        "plugins": registry.active_plugins(),
    }
