"""`dryfit warmup`: compile this machine's kernels ahead of time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from dryfit.cli.console import json_option, print_json, print_line, print_table
from dryfit.errors import PluginError
from dryfit.plugins import registry

if TYPE_CHECKING:
    from dryfit.target.machine_code import CompiledFunction, MachineCode

PHASE = "Compiling kernels"


@click.command()
@click.option(
    "--tier",
    metavar="NAME",
    help="Compile for this instruction set tier of this machine, such as avx2, instead of its best.",
)
@json_option
def warmup(tier: str | None, as_json: bool) -> None:
    """Compile all kernels for this machine's processor and keep them.

    Without it a kernel is compiled when it is first needed: by the first build or run after an installation. Use it
    when an image is made or a machine is set up. What is there already is not compiled again.
    """
    machine_code = registry.host().machine_code
    if machine_code is None:
        raise PluginError("The host's target compiles nothing for this machine", where=registry.host().device)
    code = machine_code(tier)
    start = time.perf_counter()
    functions = list(_compile(code))
    seconds = time.perf_counter() - start
    compiled = [one for one in functions if not one.was_kept]
    if as_json:
        print_json(
            {
                "tier": code.tier,
                "tiers": list(code.tiers),
                "cache": code.place,
                "seconds": round(seconds, 3),
                "functions": [
                    {"name": one.name, "compiled": not one.was_kept, "seconds": round(one.seconds, 3)}
                    for one in functions
                ],
            }
        )
        return
    if compiled:
        print_table("Compiled", ["function", "seconds"], [(one.name, f"{one.seconds:.1f}") for one in compiled])
    there = len(functions) - len(compiled)
    print_line(f"{code.tier}: {len(compiled)} functions compiled in {seconds:.1f} s, {there} were there")
    print_line(f"Kept in {code.place}")


def _compile(code: MachineCode) -> Iterator[CompiledFunction]:
    from dryfit.engine.progress import TerminalProgress

    with TerminalProgress() as progress:
        progress.phase_start(PHASE, None, len(code.names))
        for step, function in enumerate(code.compile()):
            progress.step_complete(PHASE, step)
            yield function
