"""The options of `dryfit compare` beside those that describe a build."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import click

from dryfit.attrs_classes import frozen
from dryfit.cli.console import answer_options, threads_option
from dryfit.cli.sample_options import data_option, limit_option, picture_options, picture_preparation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryfit.answers.comparison.sides import Feeds
    from dryfit.engine.plan import Plan
    from dryfit.network.network import Network


class SideList(click.ParamType):
    """`gpu,fp32` as a tuple of words."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words, each once."""
        if isinstance(value, tuple):
            return value
        words = tuple(word.strip() for word in str(value).split(",") if word.strip())
        if not words or len({word.lower() for word in words}) != len(words):
            self.fail(f"{value!r} is not a list such as gpu,fp32 (at least one side, each once)", param, ctx)
        return words


@frozen
class CompareOptions:
    """What the options said; the fields are named as the options are."""

    against: tuple[str, ...]
    methods: tuple[str, ...]
    api: tuple[str, ...]
    data: str | None
    inputs: tuple[str, ...]
    seed: int | None
    limit: int | None
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    channels: str | None
    resize: str
    short_side: int
    tolerance: float
    fail_below: float | None
    threads: int | None
    as_json: bool

    @property
    def has_samples(self) -> bool:
        """Whether there is something to run on."""
        return self.data is not None or bool(self.inputs) or self.seed is not None

    @property
    def keywords(self) -> dict[str, Any]:
        """What both questions take."""
        return {
            "data": self.samples,
            "tolerance": self.tolerance,
            "fail_below": self.fail_below,
            "threads": self.threads,
        }

    def samples(self, network: Network, plan: Plan) -> Iterator[tuple[str, Feeds]]:
        """Name and inputs of each sample: of --data, or the one of --input or --random.

        Args:
            network: the user's.
            plan: of the engine.

        Raises:
            CalibrationError, ExecutionError: samples cannot be read, or do not fit the network.
        """
        from dryfit.answers.run_inputs import random_inputs, read_inputs
        from dryfit.engine.engine import Engine
        from dryfit.quantization.calibration_data import source_of

        preparation = picture_preparation(self.mean, self.scale, self.channels, self.resize, self.short_side)
        if self.data is not None:
            source = source_of(self.data, preparation)
            yield from source.samples(list(source.names(network))[: self.limit], network)
        elif self.inputs:
            yield ", ".join(self.inputs), read_inputs(Engine(plan), self.inputs, preparation)
        else:
            yield f"random inputs of seed {self.seed}", random_inputs(Engine(plan), self.seed or 0)


def compare_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command its options; it gets them as `comparing`."""
    names = [field.name for field in attrs.fields(CompareOptions)]

    @functools.wraps(command)
    def with_options(**values: Any) -> Any:
        own = {name: values.pop(name) for name in names}
        _check_sources(own["data"], own["inputs"], own["seed"])
        return command(comparing=CompareOptions(**own), **values)

    # click reads the command's name and text from the function, and nothing else.
    with_options.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    decorated: Callable[..., Any] = with_options
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _check_sources(data: str | None, inputs: Sequence[str], seed: int | None) -> None:
    if sum((data is not None, bool(inputs), seed is not None)) > 1:
        raise click.UsageError("Pass one of --data, --input and --random")


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--against",
        type=SideList(),
        default="fp32",
        show_default=True,
        metavar="LIST",
        help="Sides to compare with: fp32 (the model as defined), a device such as gpu, or "
        "one with a version such as dla@8.6. Without samples, compares where devices run the operators, and estimates.",
    ),
    click.option(
        "--methods",
        type=SideList(),
        default=(),
        metavar="LIST",
        help="Instead: the quantized layers of MODEL by quantize methods, such as tflite,onnx; the first against the "
        "others.",
    ),
    click.option(
        "--api",
        type=SideList(),
        default=(),
        metavar="LIST",
        help="Instead: placement, precisions and outputs of MODEL in versions of TensorRT, such as 8.6,10.16,11.1; the "
        "first against the others.",
    ),
    data_option,
    click.option("--input", "inputs", multiple=True, metavar="NAME=FILE", help="An input from .npy, or all from .npz."),
    click.option("--random", "seed", type=int, metavar="SEED", help="Use random inputs instead of files."),
    limit_option,
    *picture_options,
    click.option(
        "--tolerance",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        metavar="NUMBER",
        help="Tolerance: differences up to this count as equal (codes with --methods).",
    ),
    click.option(
        "--fail-below",
        type=float,
        metavar="DB",
        help="Exit with 1 if the signal-to-noise ratio of an output is below this against any side.",
    ),
    threads_option,
    answer_options,
)
