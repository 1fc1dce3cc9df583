"""`--shape`, `--shape-values` and trtexec's `--minShapes`, `--optShapes`, `--maxShapes`: shapes of a model's inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

Shapes = tuple[tuple[int, ...], ...]
"""One shape, or (minimum, optimum, maximum)."""
NamedShapes = tuple[tuple[str, Shapes], ...]

_NUMBERS = r"-?\d+(?:x-?\d+)*"
_ONE_OR_THREE = rf"{_NUMBERS}(?::{_NUMBERS}:{_NUMBERS})?"
_EQUALS = re.compile(rf"(?P<name>.+)=(?P<shapes>{_ONE_OR_THREE})", re.DOTALL)
_COLON_RANGE = re.compile(rf"(?P<name>.+):(?P<shapes>{_NUMBERS}:{_NUMBERS}:{_NUMBERS})", re.DOTALL)
_COLON = re.compile(rf"(?P<name>.+):(?P<shapes>{_NUMBERS})", re.DOTALL)


class NamedShape(click.ParamType):
    """`x=1x3x224x224`, a range `x=1x8:4x8:16x8`, or trtexec's `x:1x3x224x224,y:1x8`, as ((name, shapes), ...).

    Args:
        holds_values: whether the numbers are values, which may be negative or 0, and not extents.
        example: what an error shows.
    """

    name = "shape"

    def __init__(self, *, holds_values: bool = False, example: str = "x=1x3x224x224 or x=1x8:4x8:16x8") -> None:
        self._holds_values = holds_values
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NamedShapes:
        """The names, which may contain any character, each with one shape or three."""
        if isinstance(value, tuple):
            return value
        found = parse_named_shapes(str(value))
        if found is None:
            self.fail(f"{value!r} is not like {self._example}", param, ctx)
        if not self._holds_values and any(extent < 1 for _, shapes in found for shape in shapes for extent in shape):
            self.fail(f"every extent of a shape must be greater than 0 (found {value!r})", param, ctx)
        return found


def parse_named_shapes(text: str) -> NamedShapes | None:
    """The names and shapes of a text; None where it is not in one of the spellings."""
    whole = _EQUALS.fullmatch(text) or _COLON_RANGE.fullmatch(text)
    matches = [whole] if whole else [_COLON.fullmatch(entry) for entry in text.split(",")]
    found = [match for match in matches if match is not None]
    if len(found) != len(matches):
        return None
    return tuple(
        (
            match["name"],
            tuple(tuple(int(extent) for extent in shape.split("x")) for shape in match["shapes"].split(":")),
        )
        for match in found
    )


def shape_text(shape: Iterable[int | str]) -> str:
    """A shape as the options take it: `1x3x224x224`."""
    return "x".join(map(str, shape))


def flat_shapes(given: Iterable[NamedShapes]) -> dict[str, Shapes]:
    """The shapes of an option that may be given several times, by input."""
    return {name: shapes for several in given for name, shapes in several}


def _profile_option(which: str, trtexec: str, text: str) -> Callable[[Any], Any]:
    return click.option(
        which,
        trtexec,
        multiple=True,
        type=NamedShape(example="x:1x3x224x224,y:1x8"),
        metavar="NAME:SHAPE,...",
        help=text,
    )


shape_option: Callable[[Any], Any] = click.option(
    "--shape",
    "--shapes",
    "shapes",
    multiple=True,
    type=NamedShape(),
    metavar="NAME=SHAPE",
    help="Shape of an input, such as x=1x3x224x224, or min:opt:max, as x=1x8:4x8:16x8. trtexec's list is taken too: "
    "x:1x3x224x224,y:1x8.",
)

shape_options: tuple[Callable[[Any], Any], ...] = (
    shape_option,
    _profile_option("--min-shapes", "--minShapes", "Smallest shapes of dynamic inputs, as trtexec spells them."),
    _profile_option("--opt-shapes", "--optShapes", "The shapes to optimize for; alone, they are the only ones."),
    _profile_option("--max-shapes", "--maxShapes", "Largest shapes of dynamic inputs."),
    click.option(
        "--shape-values",
        multiple=True,
        type=NamedShape(holds_values=True, example="size=2x3 or size=1x1:2x3:4x6"),
        metavar="NAME=VALUES",
        help="Values of an input that carries dimensions, such as size=2x3, or a range: size=1x1:2x3:4x6.",
    ),
)


def taken_shapes(values: dict[str, Any]) -> dict[str, Shapes]:
    """Take the shapes out of the options' values: those of `--shape`, and the ranges of the three lists.

    Raises:
        UsageError: the lists do not name the same inputs, or an input has its shape twice.
    """
    shapes = flat_shapes(values.pop("shapes"))
    least, best, largest = (_single(values.pop(f"{which}_shapes"), which) for which in ("min", "opt", "max"))
    if not least and not largest:
        least = largest = best
    if not least.keys() == best.keys() == largest.keys():
        raise click.UsageError("--minShapes, --optShapes and --maxShapes must name the same inputs")
    twice = sorted(shapes.keys() & best.keys())
    if twice:
        raise click.UsageError(f"{twice[0]!r} has its shape twice: by --shape and by --optShapes")
    ranges = {
        name: (shape,) if least[name] == shape == largest[name] else (least[name], shape, largest[name])
        for name, shape in best.items()
    }
    return {**shapes, **ranges}


def _single(given: Iterable[NamedShapes], which: str) -> Mapping[str, tuple[int, ...]]:
    found = flat_shapes(given)
    ranges = [name for name, shapes in found.items() if len(shapes) > 1]
    if ranges:
        raise click.UsageError(f"--{which}Shapes takes one shape of each input, and {ranges[0]!r} has a range")
    return {name: shapes[0] for name, shapes in found.items()}
