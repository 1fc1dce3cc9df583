"""`dryfit translate`: scales and precisions as Q/DQ nodes, or Q/DQ nodes as scales and precisions, with a proof."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from dryfit.answers.builder_config import refuse_quantize_methods
from dryfit.answers.conditions import FailCondition, counted_outcomes
from dryfit.answers.options import NetworkOptions, Options
from dryfit.cli.cache_convert import ALGORITHMS
from dryfit.cli.console import json_option, print_json
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.network_options import network_options

SUBJECTS = {
    "codes": "the largest difference of a tensor in INT8 codes",
    "different": "codes that differ",
    "missing": "tensors without a scale",
    "lost": "layers that are INT8 in the Q/DQ model and real in the other",
    "unequal": "scales of which implicit quantization has one",
    "weights": "codes of weights that an implicit build finds otherwise",
    "notes": "what the other form has no words for",
}


@attrs.frozen
class TranslateOptions:
    """What the command's own options said; see `dryfit translate --help`."""

    model: Path
    output: Path
    weights: str
    unequal_scales: str
    strict: bool
    clip_weights: bool
    every_rounding: bool
    unit_scales: bool
    real_precision: str | None
    tensorrt_version: str
    algorithm: str
    data: str | None
    samples: int
    seed: int


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--to",
    "form",
    required=True,
    type=click.Choice(["qdq", "implicit"]),
    help="qdq: a model with Q/DQ nodes, from a cache or ranges; implicit: a model without, and files beside it.",
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    metavar="PLACE",
    help="The file of the Q/DQ model, or the folder of the other form's files.",
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
    help="To implicit: what happens where a concatenation, or one tensor, has several scales.",
)
@click.option("--strict", is_flag=True, help="To implicit: refuse a model of which a layer would lose its INT8.")
@click.option("--clip-weights", is_flag=True, help="To implicit: make weights of the code -128 be -127.")
@click.option(
    "--every-rounding",
    is_flag=True,
    help="To implicit: keep roundings inside of what devices fuse, by output types of layers.",
)
@click.option(
    "--unit-scales",
    is_flag=True,
    help="To implicit: state the scale 1 for what a convolution adds to another tensor unrounded (DLA 3.13 or newer).",
)
@click.option(
    "--real-precision",
    type=click.Choice(["fp32", "fp16"]),
    help="To implicit: the precision of layers that are not INT8; fp32 where the device has it if absent.",
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
    help="How many samples are compared; without --data random ones; 0 compares nothing.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of random samples.")
@fail_on_option(SUBJECTS, "codes>1,lost")
@network_options
@json_option
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

    Both networks run here in integer arithmetic, and the largest difference of each tensor is printed.
    """
    from dryfit.cli.translate_run import translate_to_implicit, translate_to_qdq
    from dryfit.cli.translate_tables import print_translation

    said = NetworkOptions.said(options)
    refuse_quantize_methods(said, "Both forms are compared as devices compute them")
    own = TranslateOptions(model, output, **chosen)  # type: ignore[arg-type]
    report = (translate_to_qdq if form == "qdq" else translate_to_implicit)(own, said)
    outcomes = counted_outcomes(fail_on, {subject: report["summary"][subject] for subject in SUBJECTS})
    if as_json:
        print_json({**report, "conditions": [attrs.asdict(one) for one in outcomes]})
    else:
        print_translation(report, rounds_all=own.every_rounding)
    return print_failed(outcomes)
