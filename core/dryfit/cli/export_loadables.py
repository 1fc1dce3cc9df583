"""`dryfit export loadables`: one file for each segment of a model that its device's own runtime would load."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.options import NetworkOptions, Options
from dryfit.cli.console import json_option
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_config import create_config
from dryfit.cli.network_options import network_options
from dryfit.errors import ConfigError


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the loadables; it is made.",
)
@click.option("--force", is_flag=True, help="Replace the loadables of a model of this name that the folder has.")
@network_options
@json_option
def loadables(model: Path, output: Path, force: bool, options: Options, as_json: bool) -> None:
    """Write the loadables of an ONNX MODEL, one file for each segment of a device that has such files.

    Those of the DLA are dryfit's own and run here, by emulation; no board takes them.
    """
    from dryfit.building import Builder
    from dryfit.cli.loadable_report import earlier_loadables, tell, write_folder

    earlier = earlier_loadables(output, model.stem)
    if earlier and not force:
        raise ConfigError(
            "The folder has loadables of a model of this name already",
            where=f"--output {output}",
            found=", ".join(sorted(one.name for one in earlier)),
            remedy="Choose another folder, or give --force",
        )
    said = NetworkOptions.said(options)
    network = load_network(model, said)
    require_shapes(network, said.shape)
    config = create_config(network, said)
    with log_to_stderr(logging.WARNING):
        built = Builder().build_loadables(network, config)
    tell(str(model), built, write_folder(output, model.stem, built.files), as_json=as_json)
