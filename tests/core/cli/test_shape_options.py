"""`--shape` and trtexec's lists of shapes: spellings, ranges, and extents that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from dryfit.answers.options import parse_named_shapes
from dryfit.cli.network_options import NamedShape, taken_shapes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x=1x3", (("x", ((1, 3),)),)),
        ("x:1x3", (("x", ((1, 3),)),)),
        ("input:0=1x3", (("input:0", ((1, 3),)),)),
        ("input:0:1x3", (("input:0", ((1, 3),)),)),
        ("x:1x3,y:4", (("x", ((1, 3),)), ("y", ((4,),)))),
        ("x=1x8:4x8:16x8", (("x", ((1, 8), (4, 8), (16, 8))),)),
        ("x:1x8:4x8:16x8", (("x", ((1, 8), (4, 8), (16, 8))),)),
        ("x=1by3", None),
        ("x", None),
        ("x:1x3,y", None),
    ],
)
def test_a_shape_is_read_in_our_spelling_and_in_trtexecs(text: str, found: Any) -> None:
    assert parse_named_shapes(text) == found


@pytest.mark.parametrize("text", ["x=0x3", "x:1x0", "x=-1x3", "x=0x8:4x8:16x8"])
def test_an_extent_that_is_not_greater_than_0_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="greater than 0"):
        NamedShape().convert(text, None, None)
    assert NamedShape(holds_values=True).convert(text, None, None)


def asked(**given: str) -> dict[str, Any]:
    kinds = ("shape", "min_shapes", "opt_shapes", "max_shapes")
    return {kind: tuple(filter(None, [parse_named_shapes(given.get(kind, ""))])) for kind in kinds}


def test_three_lists_make_a_range_and_the_best_alone_is_the_only_shape() -> None:
    lists = asked(min_shapes="x:1x8,y:2", opt_shapes="x:4x8,y:2", max_shapes="x:8x8,y:2", shape="z=3")
    assert taken_shapes(lists) == {"z": ((3,),), "x": ((1, 8), (4, 8), (8, 8)), "y": ((2,),)}
    assert taken_shapes(asked(opt_shapes="x:4x8")) == {"x": ((4, 8),)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_shapes": "x:1x8"}, "same inputs"),
        ({"min_shapes": "x:1", "opt_shapes": "x:1", "max_shapes": "y:1"}, "same inputs"),
        ({"shape": "x=1", "opt_shapes": "x:1"}, "two shapes"),
        ({"opt_shapes": "x:1:2:3"}, "range"),
    ],
)
def test_lists_that_do_not_fit_together_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        taken_shapes(asked(**given))


@pytest.mark.parametrize("command", ["check", "explain", "estimate", "build"])
def test_a_batch_of_0_is_refused_by_every_command(
    dryfit_command: Any, digits_model: Path, tmp_path: Path, command: str
) -> None:
    output = ("-o", tmp_path / "x.engine") if command == "build" else ()
    ended = dryfit_command(command, digits_model, *output, "--shape", "image=0x1x8x8")
    assert ended.code == 2
    assert "greater than 0" in ended.err


def test_the_rule_on_dynamic_dimensions_names_the_option_in_full(dryfit_command: Any, digits_model: Path) -> None:
    answer = dryfit_command("check", digits_model, "--device", "DLA", "--json").json
    remedies = {
        one["remedy"]
        for layer in answer["layers"]
        for one in layer["verdicts"].get("DLA", {}).get("violations", ())
        if one["rule"] == "dla.dynamic_dimensions"
    }
    assert remedies
    assert all("--shape image=1x1x8x8" in remedy for remedy in remedies)
    assert any("--shape image=1x1x8x8" in refusal for refusal in answer["refusals"])
    assert "--shape image=1x1x8x8" in dryfit_command("explain", digits_model, "--device", "DLA", "--no-edits").out
