"""`dryfit translate`: scales and precisions as Q/DQ nodes, or Q/DQ nodes as scales and precisions, with a proof."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from dryfit.answers.conditions import TRANSLATE_SUBJECTS, FailCondition
from dryfit.answers.options import ALGORITHMS, Options
from dryfit.cli.console import answer_options, output_option, print_note, show_answer
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_options import ModelCommand, network_options


@click.command(cls=ModelCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--to",
    "form",
    required=True,
    type=click.Choice(["qdq", "implicit"]),
    help="qdq: a model with Q/DQ nodes, from a cache or ranges; implicit: a model without, and files beside it.",
)
@output_option(
    "Q/DQ model to write, or the folder for the files of the implicit form.",
    required=True,
    holds="PATH",
    metavar="PLACE",
)
@click.option(
    "--weights",
    type=click.Choice(["int8", "fp32"]),
    default="int8",
    show_default=True,
    help="To qdq: INT8 weights with a DQ, or FP32 weights with Q and DQ.",
)
@click.option(
    "--unequal-scales",
    type=click.Choice(["largest", "refuse", "keep"]),
    default="largest",
    show_default=True,
    help="To implicit: what to do if a concatenation or a tensor has several scales.",
)
@click.option("--strict", is_flag=True, help="To implicit: fail if a layer would lose its INT8 precision.")
@click.option("--clip-weights", is_flag=True, help="To implicit: change weight codes of -128 to -127.")
@click.option(
    "--every-rounding",
    is_flag=True,
    help="To implicit: keep roundings inside fused groups, by setting output types of layers.",
)
@click.option(
    "--unit-scales",
    is_flag=True,
    help="To implicit: state the scale 1 for what a convolution adds to another tensor unrounded (DLA 3.13 or newer).",
)
@click.option(
    "--real-precision",
    type=click.Choice(["fp32", "fp16"]),
    help="To implicit: precision of layers that are not INT8 (default: fp32 if the device supports it).",
)
@click.option("--tensorrt-version", default="8.6.0", show_default=True, help="To implicit: the version in the cache.")
@click.option(
    "--algorithm",
    type=click.Choice([name for name in ALGORITHMS if name != "legacy"]),
    default="entropy2",
    show_default=True,
    help="To implicit: the algorithm in the cache.",
)
@click.option("--data", metavar="PLACE", help="Samples for the comparison, as `dryfit calibrate` takes them.")
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Number of samples to compare (random without --data); 0 skips the comparison.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random samples.")
@fail_on_option(TRANSLATE_SUBJECTS, "codes>1,lost")
@network_options
@answer_options
def translate(
    model: Path,
    form: str,
    output: Path,
    fail_on: tuple[FailCondition, ...],
    options: Options,
    as_json: bool,
    **chosen: object,
) -> int:
    """Translate the quantization of an ONNX MODEL, and show how well both forms agree.

    Both networks run here in integer arithmetic, and the largest difference per tensor is printed.
    """
    from dryfit.answers.translate import translate as answer_of

    with log_to_stderr(logging.WARNING):
        answer = answer_of(model, output, to=form, fail_on=fail_on, **chosen, **options)  # type: ignore[misc, arg-type]
    for note in answer.option_notes:
        print_note(note)
    show_answer(answer, as_json=as_json)
    return print_failed(answer.conditions)
