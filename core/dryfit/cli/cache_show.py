"""`dryfit cache show`: what a file says of each tensor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dryfit.answers.text import scale_text
from dryfit.cli.cache_files import INPUT_FILE, entry_answer, form_option
from dryfit.cli.console import json_option, print_json, print_line, print_table
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.quantization.cache_header import CacheHeader


@click.command()
@click.argument("file", type=INPUT_FILE)
@form_option
@json_option
def show(file: Path, form: str | None, as_json: bool) -> None:
    """Show scale, range and origin of each tensor of a calibration cache FILE, and what found them."""
    from dryfit.quantization.cache_forms import FORMS, read_ranges_file
    from dryfit.quantization.cache_header import CacheHeader

    stored = read_ranges_file(file, form)
    header = CacheHeader.parse(stored.header)
    answer: dict[str, Any] = {
        "file": str(file),
        "form": stored.form,
        "header": stored.header or None,
        "algorithm": None if header is None else header.algorithm.name,
        "tensorrt_version": _version(header),
        "cutoff": None if header is None else header.cutoff,
        "quantile": None if header is None else header.quantile,
        "facts": dict(stored.facts),
        "tensors": [entry_answer(entry) for entry in stored.entries],
    }
    if as_json:
        print_json(answer)
        return
    print_line(f"{file}: {FORMS[stored.form].title}")
    print_line(_found_by(answer))
    for name, fact in answer["facts"].items():
        print_line(f"{name}: {fact}")
    rows = [
        (one["name"], scale_text(one["scale"]), _range_text(one["range"]), _origin_text(one))
        for one in answer["tensors"]
    ]
    print_table("", ["tensor", "scale", "range", "origin"], rows)
    missing = sum(one["scale"] is None for one in answer["tensors"])
    print_line(f"{count_text(len(rows), 'tensor')}, {missing} of them without a scale")


def _version(header: CacheHeader | None) -> str | None:
    return None if header is None or header.version is None else ".".join(map(str, header.version))


def _found_by(answer: dict[str, Any]) -> str:
    if answer["header"] is None:
        return "It does not say which of TensorRT's algorithms found them"
    if answer["algorithm"] is None:
        return f"First line: {answer['header']}, of no algorithm that is known"
    version = f", TensorRT {answer['tensorrt_version']}" if answer["tensorrt_version"] else ""
    legacy = "" if answer["cutoff"] is None else f", cutoff {answer['cutoff']}, quantile {answer['quantile']}"
    return f"First line: {answer['header']}, {answer['algorithm']}{version}{legacy}"


def _range_text(ends: list[float] | None) -> str:
    return "none" if ends is None else f"{ends[0]:.7g} to {ends[1]:.7g}"


def _origin_text(tensor: dict[str, Any]) -> str:
    details = ", ".join(f"{key} {value}" for key, value in tensor["details"].items())
    return f"{tensor['origin']}: {details}" if details else tensor["origin"]
