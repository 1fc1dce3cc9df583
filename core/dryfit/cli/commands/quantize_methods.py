"""`dryfit quantize-methods`: which quantize methods there are, and how one computes each operator."""

from __future__ import annotations

import click

from dryfit.cli.console import answer_options, show_answer


@click.command(name="quantize-methods")
@click.argument("name", required=False)
@click.option("--operator", metavar="NAME", help="Only this operator, such as convolution.")
@answer_options
def quantize_methods(name: str | None, operator: str | None, as_json: bool) -> None:
    """List the installed quantize methods, or the rules of method NAME.

    A method is the arithmetic of a library or device for operators on quantized tensors; select one with
    `--quantize-method`. The reference page "Quantize methods" explains the notation of the formulas.
    """
    from dryfit.answers.quantize_methods import quantize_methods as installed

    show_answer(installed(name, operator), as_json=as_json)
