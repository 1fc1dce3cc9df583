"""`dryfit cache check`: what is wrong with a file, alone and for a model."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import attrs
import click

from dryfit.answers.conditions import FailCondition, counted_outcomes
from dryfit.answers.options import NetworkOptions
from dryfit.cli.cache_files import INPUT_FILE, form_option
from dryfit.cli.console import json_option, print_json, print_line, print_list
from dryfit.cli.fail_on import fail_on_option, print_failed
from dryfit.cli.network_options import NamedShapes, flat_shapes, shape_option
from dryfit.short_text import count_text

SUBJECTS = {
    "damaged": "places that cannot be read",
    "duplicate": "entries of tensors that have one already",
    "negative": "scales below zero",
    "nonfinite": "scales that are NaN or infinite",
    "zero": "scales of zero, which mean none",
    "foreign": "1 where the file is another model's",
    "missing": "tensors of MODEL without a scale",
    "unknown": "scales of tensors that MODEL does not have",
    "unnamed": "scales under names that TensorRT made up",
    "findings": "all of these",
}
TITLES = {
    "damaged": "Places that cannot be read",
    "duplicate": "Tensors that occur twice",
    "negative": "Negative scales",
    "nonfinite": "Scales that are not finite",
    "zero": "Scales of zero, which mean none",
    "foreign": "Another model's",
    "missing": "Tensors without a scale",
    "unknown": "Scales without a tensor",
    "unnamed": "Names that TensorRT made up",
}


@click.command()
@click.argument("file", type=INPUT_FILE)
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@fail_on_option(SUBJECTS, "damaged,missing>2")
@form_option
@shape_option
@json_option
@click.pass_context
def check(
    context: click.Context,
    file: Path,
    model: Path | None,
    fail_on: tuple[FailCondition, ...],
    form: str | None,
    shape: tuple[NamedShapes, ...],
    as_json: bool,
) -> None:
    """Say what is wrong with a calibration cache FILE, and whether it fits an ONNX MODEL. All findings at once."""
    from dryfit.answers.asked import load_network
    from dryfit.quantization.cache_comparison import findings_for_model, findings_in_file
    from dryfit.quantization.cache_forms import stored_in_file

    stored = stored_in_file(file, form)
    found = [*findings_in_file(stored)]
    if model is not None:
        digest = f"sha256:{hashlib.sha256(model.read_bytes()).hexdigest()}"
        found += findings_for_model(stored, load_network(model, NetworkOptions(shape=flat_shapes(shape))), digest)
    counts = Counter(one.kind.value for one in found)
    results = counted_outcomes(fail_on, {**dict.fromkeys(SUBJECTS, 0), **counts, "findings": len(found)})
    if as_json:
        print_json(
            {
                "file": str(file),
                "form": stored.form,
                "model": None if model is None else str(model),
                "tensors": len(stored.by_name),
                "findings": [{**attrs.asdict(one), "kind": one.kind.value} for one in found],
                "summary": {kind: counts[kind] for kind in TITLES},
                "conditions": [attrs.asdict(result) for result in results],
            }
        )
    else:
        for kind, title in TITLES.items():
            entries = [(one.tensor or one.place or str(file), one) for one in found if one.kind.value == kind]
            print_list(title, [(name, _text(one.place if one.tensor else "", one.text), "") for name, one in entries])
        words = ", ".join(f"{counts[kind]} {kind}" for kind in TITLES if counts[kind])
        print_line(f"{file}: {count_text(len(stored.by_name), 'tensor')}, {words or 'nothing wrong'}")
    context.exit(print_failed(results))


def _text(place: str, text: str) -> str:
    return f"{place}: {text}" if place else text
