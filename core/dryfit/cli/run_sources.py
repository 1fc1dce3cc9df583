"""What `dryfit run` runs: an engine file, a loadable of a device, or an ONNX model that is built for the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.builder_config import METHOD_OPTION as OPTION
from dryfit.answers.defaults import with_defaults
from dryfit.answers.options import NetworkOptions
from dryfit.cli.log import build_log
from dryfit.cli.network_config import create_config
from dryfit.errors import ExecutionError
from dryfit.plugins import registry

if TYPE_CHECKING:
    from dryfit.engine.engine import Engine

_LARGEST_HEADER = 100_000_000
"""Bytes of header that readers of safetensors accept."""


def engine_of(path: Path, options: NetworkOptions) -> tuple[Engine, list[str]]:
    """The engine of a file, and the defaults that it was built with for this run; none for what is built already.

    Raises:
        UsageError: options say how to build what is built.
        DryfitError: the file is damaged, or the model cannot be built.
    """
    if path.suffix.lower() == ".onnx":
        return _built(path, options)
    if options.quantize_method:
        raise ExecutionError(
            "The quantize methods of an engine were chosen when it was built",
            where=f"{OPTION}, {path}",
            remedy=f"Build it again: `dryfit build MODEL.onnx {OPTION} NAME`",
        )
    if options != NetworkOptions():
        raise click.UsageError(f"{path} is built: what it is built with cannot be changed. Give the model instead")
    return _loaded(path), []


def _loaded(path: Path) -> Engine:
    """The engine of an engine file, or of a file that a target's exporter wrote."""
    from dryfit.engine.engine import Engine

    form = _format_of(path)
    for target in registry.targets_in_turn():
        if form and form == target.exported_format and target.import_segment is not None:
            engine: Engine = target.import_segment(path)
            return engine
    return Engine.load(path)


def _format_of(path: Path) -> str:
    """The format that the header of a file of dryfit's names; "" where it has no such header."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length) if 2 <= length <= _LARGEST_HEADER else b""
    try:
        return str(json.loads(header)["__metadata__"]["format"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return ""  # the reader of engines says what is wrong with it


def _built(model: Path, options: NetworkOptions) -> tuple[Engine, list[str]]:
    from dryfit.building import Builder

    options, defaults = with_defaults(options)
    network = load_network(model, options)
    require_shapes(network, options.shape)
    with build_log():
        return Builder().build_engine(network, create_config(network, options)), defaults
