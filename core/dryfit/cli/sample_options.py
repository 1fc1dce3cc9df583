"""The options of commands that run a model on samples: where they are, how many, how pictures are prepared."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs
import click

from dryfit.attrs_classes import frozen

if TYPE_CHECKING:
    from dryfit.engine.plan import Plan
    from dryfit.network.network import Network
    from dryfit.quantization.picture_preparation import PicturePreparation
    from dryfit.quantization.sample_arrays import Feeds


class Numbers(click.ParamType):
    """`1.5`, or `1.5,2,3` for channels, as a tuple."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """The numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} must be like 127.5 or 123.7,116.3,103.5", param, ctx)


data_option: Callable[[Any], Any] = click.option(
    "--data",
    metavar="PLACE",
    help="Samples: a folder of images or of .npy and .npz files, such a file, module:function or file.py:function.",
)

limit_option: Callable[[Any], Any] = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Use the first N samples only."
)

picture_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--mean", type=Numbers(), default="0", show_default=True, help="Images: mean to subtract from pixels."
    ),
    click.option(
        "--scale",
        type=Numbers(),
        default="1",
        show_default=True,
        help="Images: scale to multiply with after subtracting the mean.",
    ),
    click.option(
        "--channels",
        type=click.Choice(["rgb", "bgr", "gray"], case_sensitive=False),
        help="Images: channel order (default: rgb or gray, by the input's channels).",
    ),
    click.option(
        "--resize",
        type=click.Choice(["stretch", "crop", "pad"]),
        default="stretch",
        show_default=True,
        help="Images: how they are resized to the input.",
    ),
    click.option(
        "--short-side",
        type=click.IntRange(min=0),
        default=0,
        metavar="PIXELS",
        help="Images, with crop: length of the shorter side before cropping.",
    ),
)


def picture_options_of(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of pictures; it gets them as `preparation`."""

    @functools.wraps(command)
    def with_preparation(**values: Any) -> Any:
        given = (values.pop(name) for name in ("mean", "scale", "channels", "resize", "short_side"))
        return command(preparation=picture_preparation(*given), **values)

    for option in reversed(picture_options):
        with_preparation = option(with_preparation)
    return with_preparation


def picture_preparation(
    mean: tuple[float, ...], scale: tuple[float, ...], channels: str | None, resize: str, short_side: int
) -> PicturePreparation:
    """How pictures become inputs, from the values of `picture_options`."""
    from dryfit.quantization.picture_preparation import PicturePreparation

    return PicturePreparation(
        mean=mean, scale=scale, channels=(channels or "").upper(), resize=resize, short_side=short_side
    )


@frozen
class SampleOptions:
    """What the options of samples said; the fields are named as the options are."""

    data: str | None
    limit: int | None
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    channels: str | None
    resize: str
    short_side: int

    def of(self, network: Network, plan: Plan) -> Iterator[tuple[str, Feeds]]:  # noqa: ARG002  as `Samples` is called
        """Name and inputs of each sample; none without --data.

        Raises:
            CalibrationError: samples cannot be read, or do not fit the network.
        """
        from dryfit.quantization.calibration_data import source_of

        if self.data is not None:
            preparation = picture_preparation(self.mean, self.scale, self.channels, self.resize, self.short_side)
            source = source_of(self.data, preparation)
            yield from source.samples(list(source.names(network))[: self.limit], network)


def sample_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of samples, none of them required; it gets them as `samples`."""
    names = [field.name for field in attrs.fields(SampleOptions)]

    @functools.wraps(command)
    def with_options(**values: Any) -> Any:
        return command(samples=SampleOptions(**{name: values.pop(name) for name in names}), **values)

    # click reads the command's name and text from the function, and nothing else.
    with_options.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    decorated: Callable[..., Any] = with_options
    for option in reversed((data_option, limit_option, *picture_options)):
        decorated = option(decorated)
    return decorated
