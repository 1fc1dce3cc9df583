"""`dryfit estimate`: what a model is estimated to cost on a board, layer by layer. Builds and measures nothing."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from dryfit.cli.assumptions import ASSUMED_FALLBACK
from dryfit.cli.console import json_option, print_json
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_options import NetworkOptions, network_options


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@network_options
@json_option
@click.pass_context
def estimate(context: click.Context, model: Path, options: NetworkOptions, as_json: bool) -> None:
    """Estimate what an ONNX MODEL takes on a board: multiplier cycles, bytes, time and throughput. Measures nothing.

    Without --device it is asked about the accelerator of the platform, without --precision about all types that the
    device computes in, with every tensor taken to have an INT8 scale, and without --fallback layers that leave go to
    the GPU. Formula and parameters: docs/reference/dla-cost-model.md.
    """
    from dryfit.cli.estimate_report import estimate_report
    from dryfit.cli.estimate_tables import print_estimate

    is_said = context.get_parameter_source("device") is not click.core.ParameterSource.DEFAULT
    asked, assumed = estimate_assumptions(options, is_device_said=is_said)
    with log_to_stderr(None):
        report = estimate_report(model, asked, assumed)
    if as_json:
        print_json(report)
    else:
        print_estimate(report)


def estimate_assumptions(options: NetworkOptions, *, is_device_said: bool) -> tuple[NetworkOptions, list[str]]:
    """The options with what is taken where nothing was said, and that in words.

    Args:
        options: what was said.
        is_device_said: whether the device was named, rather than left to its default.
    """
    from dryfit.cli.network_options import PRECISION_FLAGS
    from dryfit.plugins import registry

    assumed = []
    if not is_device_said:
        device = accelerator(options.platform)
        options = attrs.evolve(options, device=device)
        assumed.append(f"device {device}")
    target = registry.target(options.device)
    if not options.precisions and not options.strongly_typed:
        words = {flag: word for word, flag in PRECISION_FLAGS.items()}
        flags = {"HALF": "FP16"}
        names = (flags.get(dtype.name, dtype.name) for dtype in target.precisions)
        found = tuple(words[name] for name in names if name in words)
        options = attrs.evolve(options, precisions=found)
        assumed.append(f"precision {','.join(found)}")
        if not options.assume_scales and options.calibration_cache is None and options.ranges is None:
            options = attrs.evolve(options, assume_scales=True)
            assumed.append("scales")
    if options.fallback is None and target.device != ASSUMED_FALLBACK:
        options = attrs.evolve(options, fallback=ASSUMED_FALLBACK)
        assumed.append(f"fallback {ASSUMED_FALLBACK}")
    return options, assumed


def accelerator(platform: str | None) -> str:
    """The device that a board has cores of besides the fallback device, and that estimates costs; else the fallback.

    Args:
        platform: of the board; None for any.
    """
    from dryfit.errors import UnknownNameError
    from dryfit.plugins import registry

    for target in registry.targets_in_turn():
        if target.device == ASSUMED_FALLBACK or target.segment_rules.is_host or target.estimate_cost_at is None:
            continue
        try:
            if target.platform(platform).cores:
                return target.device
        except UnknownNameError:
            continue
    return ASSUMED_FALLBACK
