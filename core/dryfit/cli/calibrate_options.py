"""The options of `dryfit calibrate`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from dryfit.answers.options import Shapes
from dryfit.attrs_classes import frozen
from dryfit.cli import completion
from dryfit.cli.console import answer_options, output_option, threads_of_processes_option
from dryfit.cli.network_options import flat_shapes, shape_option
from dryfit.cli.sample_options import data_option, limit_option, picture_options, picture_preparation
from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.quantization.calibrator import Calibrator
    from dryfit.quantization.picture_preparation import PicturePreparation

_PICTURES = ("mean", "scale", "channels", "resize", "short_side")
_FILE = click.Path(dir_okay=False, path_type=Path)


@frozen
class CalibrateOptions:
    """What the options said; the fields are named as the options are."""

    data: str | None
    calibrator: str
    settings: tuple[tuple[str, str], ...]
    compat: str | None
    output: Path | None
    state: Path | None
    resume: bool
    reuse: bool
    compare: bool
    limit: int | None
    shape: Mapping[str, Shapes]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    channels: str | None
    resize: str
    short_side: int
    full_range: bool
    before_fusion: bool
    device: str
    skip_nonfinite: bool
    threads: int | None
    jobs: int
    as_json: bool

    @property
    def keywords(self) -> dict[str, Any]:
        """What `dryfit.calibrate` takes under the same names."""
        others = ("settings", "compat", "calibrator", "compare", "as_json", *_PICTURES)
        return {name: value for name, value in attrs.asdict(self, recurse=False).items() if name not in others}

    @property
    def preparation(self) -> PicturePreparation:
        """How pictures are prepared."""
        return picture_preparation(self.mean, self.scale, self.channels, self.resize, self.short_side)

    def chosen_calibrator(self) -> Calibrator:
        """The calibrator, with its options.

        Raises:
            UnknownNameError: there is none of this name, or it has no such option.
            ConfigError: the value of an option is of another type.
        """
        from dryfit.plugins.calibrators import calibrator

        found = calibrator(self.calibrator if self.compat is None else f"{self.calibrator}-{self.compat}")
        defaults = found.option_defaults
        values = {name: _like(defaults.get(name, ""), name, text) for name, text in self.settings}
        return found.with_options(**values)


def calibrate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command its options; it gets them as `options`."""

    @functools.wraps(command)
    def with_options(model: Path | None, shape: Any, **values: Any) -> Any:
        return command(model, CalibrateOptions(shape=flat_shapes(shape), **values))

    # click reads the command's name and text from the function, and nothing else.
    with_options.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    decorated: Callable[..., Any] = with_options
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    data_option,
    click.option(
        "--calibrator",
        default="entropy2",
        show_default=True,
        metavar="NAME",
        shell_complete=completion.calibrators,
        help="Calibration algorithm.",
    ),
    click.option(
        "--set", "settings", multiple=True, nargs=2, metavar="OPTION VALUE", help="An option of the calibrator."
    ),
    click.option(
        "--compat",
        type=click.Choice(["tensorrt"]),
        help="Collect histograms as TensorRT does, dependent on the first batch and the order (for comparison only).",
    ),
    output_option("Calibration cache to write; with the suffix .json it includes origins and statistics."),
    click.option(
        "--state",
        type=_FILE,
        metavar="FILE",
        help="Save the collected statistics to FILE, or compute scales from a saved file.",
    ),
    click.option("--resume", is_flag=True, help="Continue with the samples that an earlier run has not seen."),
    click.option("--reuse", is_flag=True, help="Skip calibration if the file of --output already covers the model."),
    click.option(
        "--compare", is_flag=True, help="Compare the results of all calibrators on --state, without running samples."
    ),
    limit_option,
    shape_option,
    *picture_options,
    click.option(
        "--full-range/--solve-all",
        "full_range",
        default=True,
        show_default=True,
        help="Whether inputs, and outputs of softmax and sigmoid, keep their largest magnitude.",
    ),
    click.option(
        "--before-fusion", is_flag=True, help="Calibrate before layers are fused, also with the older calibrators."
    ),
    click.option(
        "--device",
        default="GPU",
        show_default=True,
        metavar="NAME",
        shell_complete=completion.devices,
        help="Device whose fusions the older calibrators use.",
    ),
    click.option("--skip-nonfinite", is_flag=True, help="Count and ignore NaN and infinity."),
    threads_of_processes_option,
    click.option(
        "--jobs",
        "-j",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Number of processes that share the samples; samples of a crashed process are repeated.",
    ),
    answer_options,
)


def _like(default: Any, name: str, text: str) -> Any:
    """The value of a calibrator's option, of the type of its default."""
    if isinstance(default, str):
        return text
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        return type(default)(text)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            "The value must match the type of the calibrator's option",
            where=f"--set {name}",
            found=text,
            allowed=f"{type(default).__name__}, such as {default}",
            remedy=f"Write --set {name} VALUE with a {type(default).__name__}",
        ) from error
