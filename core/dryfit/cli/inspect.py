"""`dryfit inspect`: what an engine file has inside."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dryfit.answers.text import bytes_text
from dryfit.cli.console import json_option, print_json, print_line, print_table, show
from dryfit.short_text import count_text


@click.command()
@click.argument("engine_file", metavar="ENGINE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--verbose", is_flag=True, help="Also show every engine layer, causes of segments, and reformats.")
@json_option
def inspect(engine_file: Path, verbose: bool, as_json: bool) -> None:
    """Show what an ENGINE file has inside: inputs, outputs, segments, reformats, memory, layers."""
    from dryfit.answers.json_data import plain
    from dryfit.answers.placement import placement_of
    from dryfit.answers.placement_text import offloading_blocks, operator_blocks, segment_blocks
    from dryfit.cli.arithmetic_report import plan_arithmetic, print_arithmetic
    from dryfit.cli.refit_report import refit_line
    from dryfit.engine.engine import Engine

    engine = Engine.load(engine_file)
    placement = placement_of(engine.name, engine.plan, engine.plan.settings)
    if as_json:
        information = json.loads(engine.create_engine_inspector().get_engine_information("json"))
        own = {"engine": str(engine_file), "refittable": engine.refittable, "stripped": engine.is_stripped}
        more = {"pools": dict(engine.plan.pool_sizes), "arithmetic": plan_arithmetic(engine.plan)}
        print_json({**own, **plain(placement), **more, **information})
        return
    plan = engine.plan
    print_line(f"{engine_file}: engine {engine.name!r}, {count_text(engine.num_layers, 'engine layer')}")
    if engine.refittable:
        print_line(refit_line(engine.plan))
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    rows = [
        (
            name,
            engine.get_tensor_mode(name).name.lower(),
            engine.get_tensor_shape(name),
            engine.get_tensor_dtype(name).name,
            engine.get_tensor_format(name),
        )
        for name in names
    ]
    print_table("Inputs and outputs", ["name", "mode", "shape", "type", "format"], rows)
    for index, profile in enumerate(plan.profiles):
        shapes = [(name, *triple) for name, triple in profile.shapes.items()]
        values = [(f"values of {name}", *triple) for name, triple in profile.values.items()]
        print_table(f"Optimization profile {index}", ["input", "minimum", "optimum", "maximum"], [*shapes, *values])
    show(segment_blocks(placement, verbose=verbose))
    show(offloading_blocks(placement, verbose=verbose))
    pools = [(pool, bytes_text(size)) for pool, size in plan.pool_sizes.items()]
    if pools:
        print_table("Memory pools", ["pool", "used"], pools)
    print_arithmetic(plan_arithmetic(plan))
    show(operator_blocks(placement.quantized_operators))
    if verbose:
        operations = [(o.name, o.device, o.segment, o.precision.name, o.kernel) for o in plan.operations]
        print_table("Engine layers", ["name", "device", "segment", "precision", "host kernel"], operations)
    print_line(f"Built with: {', '.join(plan.plugins)}")
