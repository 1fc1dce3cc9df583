"""`--precision` and trtexec's `--fp16`, `--int8`, `--best`, `--precisionConstraints`: the types of computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

PRECISION_FLAGS = {"fp16": "FP16", "int8": "INT8", "bf16": "BF16", "fp8": "FP8"}
"""The words of `--precision` to builder flags; `fp32` needs none."""
BEST = "best"
"""The word for every type that the device computes in."""
CONSTRAINTS = {"obey": "OBEY_PRECISION_CONSTRAINTS", "prefer": "PREFER_PRECISION_CONSTRAINTS", "none": None}
"""The words of `--precision-constraints` to builder flags."""
_WORDS = {"HALF": "fp16", **{flag: word for word, flag in PRECISION_FLAGS.items()}}


class PrecisionList(click.ParamType):
    """`fp16,int8` as a tuple of words."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words, in lower case."""
        if isinstance(value, tuple):
            return value
        words = tuple(word.strip().lower() for word in str(value).split(",") if word.strip())
        for word in words:
            if word not in PRECISION_FLAGS and word not in ("fp32", BEST):
                self.fail(f"{word!r} is none of fp32, {', '.join(PRECISION_FLAGS)}, {BEST}", param, ctx)
        return words


precision_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--precision",
        type=PrecisionList(),
        default=(),
        metavar="LIST",
        help="Types that layers may be computed in beside FP32, such as fp16 or fp16,int8; best for all of the device.",
    ),
    *(
        click.option(f"--{word}", is_flag=True, help=f"Shorthand for --precision {word}.")
        for word in (*PRECISION_FLAGS, BEST)
    ),
    click.option(
        "--precision-constraints",
        "--precisionConstraints",
        type=click.Choice(tuple(CONSTRAINTS)),
        help="What becomes of a layer's own precision that cannot be granted, as in trtexec: obey makes it an error, "
        "prefer a warning.",
    ),
    click.option(
        "--no-tf32", "--noTF32", "no_tf32", is_flag=True, help="Clear the flag TF32. No device here uses TF32."
    ),
)


def taken_precisions(values: dict[str, Any]) -> tuple[str, ...]:
    """Take the words of `--precision` and of its shorthands out of the options' values, each once."""
    flags = [word for word in (*PRECISION_FLAGS, BEST) if values.pop(word)]
    return tuple(dict.fromkeys((*values.pop("precision"), *flags)))


def device_words(device: str) -> tuple[str, ...]:
    """The words for the types that a device computes in, but for FP32.

    Raises:
        UnknownNameError: there is no such device.
    """
    from dryfit.plugins import registry

    names = (dtype.name for dtype in registry.target(device).precisions)
    return tuple(_WORDS[name] for name in names if name in _WORDS)


def without_best(precisions: Sequence[str], device: str) -> tuple[str, ...]:
    """The words with `best` replaced by those of the device."""
    if BEST not in precisions:
        return tuple(precisions)
    named = [word for word in precisions if word != BEST]
    return tuple(dict.fromkeys((*named, *device_words(device))))
