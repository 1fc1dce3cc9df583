"""`dryfit run`: run an engine, or a model as a quantize method computes it, on this machine's CPU."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.cli.console import json_option, print_json, print_line, print_table
from dryfit.cli.log import build_log
from dryfit.cli.network_config import create_config, load_model, require_shapes
from dryfit.cli.network_options import NetworkOptions
from dryfit.cli.operator_rules_report import operators_data, print_operators
from dryfit.cli.quantize_method_options import METHODS, OPTION, quantize_method_option
from dryfit.cli.shape_options import NamedShapes, Shapes, flat_shapes, shape_option
from dryfit.errors import ExecutionError
from dryfit.plugins import registry

if TYPE_CHECKING:
    from dryfit.cli.run_inputs import Arrays
    from dryfit.engine.engine import Engine
    from dryfit.engine.profiler import LayerTimes


@click.command()
@click.argument("engine_file", metavar="ENGINE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE", help="An input from .npy, or all from .npz.")
@click.option("--random", "seed", type=int, metavar="SEED", help="Random inputs instead of files.")
@click.option("--batches", is_flag=True, help="Cut the inputs into runs of the engine's batch size.")
@click.option(
    "--output-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write outputs as .npy."
)
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Host threads; as many as CPUs if left out.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, metavar="N", help="Run everything N times.")
@click.option("--profile", is_flag=True, help="Show the host's time of each engine layer.")
@quantize_method_option
@shape_option
@json_option
def run(
    engine_file: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    batches: bool,
    output_dir: Path | None,
    threads: int | None,
    repeat: int,
    profile: bool,
    quantize_methods: METHODS,
    shapes: tuple[NamedShapes, ...],
    as_json: bool,
) -> None:
    """Run an ENGINE file on this machine. Times are this machine's; they say nothing of the device's.

    With --quantize-method an ONNX model stands in the place of ENGINE: it is built for this run, for this machine.
    """
    from dryfit.builder.explicit_quantization.operator_rules import operator_rules
    from dryfit.cli.run_inputs import Batches, random_inputs, read_inputs
    from dryfit.engine.engine import Engine
    from dryfit.engine.profiler import LayerTimes

    if bool(inputs) == (seed is not None):
        raise click.UsageError("Give either --input or --random")
    if quantize_methods:
        engine = _built(engine_file, quantize_methods, flat_shapes(shapes))
    elif engine_file.suffix == ".onnx":
        raise ExecutionError(
            "This is a model, not an engine",
            where=str(engine_file),
            remedy=f"Use `dryfit build` first, or say by {OPTION} whose integer arithmetic computes it",
        )
    else:
        engine = Engine.load(engine_file)
    arrays = read_inputs(engine, inputs) if seed is None else random_inputs(engine, seed)
    context = engine.create_execution_context(threads)
    times = LayerTimes() if profile else None
    context.profiler = times
    runs = Batches(engine, arrays) if batches else [arrays]
    began = time.perf_counter()
    outputs = _run_all(context, [one for _ in range(repeat) for one in runs], len(runs))
    milliseconds = (time.perf_counter() - began) * 1e3 / (repeat * len(runs))
    files = {} if output_dir is None else _write(outputs, output_dir)
    if as_json:
        print_json(_report(engine_file, engine, outputs, files, milliseconds, repeat * len(runs), times))
        return
    rows = [(name, array.shape, str(array.dtype), _range(array), files.get(name)) for name, array in outputs.items()]
    print_table("Outputs", ["name", "shape", "type", "range", "file"], rows)
    print_line(f"{milliseconds:.3f} ms a run on this machine, {repeat * len(runs)} runs, the first ones included")
    print_operators(operators_data(operator_rules(engine.plan.network)))
    if times is not None:
        layers = [(name, f"{ms:.4f}") for name, ms in times.medians().items()]
        print_table("Host times (median ms; not the device's)", ["engine layer", "ms"], layers)


def _built(model: Path, methods: METHODS, shapes: dict[str, Shapes]) -> Engine:
    """The engine of a model for this machine.

    Raises:
        ExecutionError: it is an engine already.
        DryfitError: the model cannot be built.
    """
    from dryfit.builder.builder import Builder

    if model.suffix != ".onnx":
        raise ExecutionError(
            "The quantize methods of an engine were chosen when it was built",
            where=f"{OPTION}, {model}",
            remedy=f"Build it again: `dryfit build MODEL.onnx {OPTION} NAME`",
        )
    options = NetworkOptions(
        registry.host().device, None, None, (), None, False, shapes, None, quantize_methods=methods
    )
    network = load_model(model, shapes, quantize_method=options.network_method)
    require_shapes(network, shapes)
    with build_log():
        return Builder().build_engine(network, create_config(network, options))


def _run_all(context: Any, runs: list[Any], length: int) -> Arrays:
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

    from dryfit.engine.atomic_file import write_atomically

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
    from dryfit.builder.explicit_quantization.operator_rules import operator_rules

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
