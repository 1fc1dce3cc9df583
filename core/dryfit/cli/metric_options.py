"""The options of commands that judge a quantized network by a metric, divide the work, and keep their results."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dryfit.cli.console import threads_of_processes_option
from dryfit.errors import ConfigError


def metric_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --metric and --labels."""
    metric = click.option(
        "--metric",
        default="sqnr",
        show_default=True,
        metavar="NAME",
        help="sqnr, agreement, cosine, top-1, mean-average-precision, or file.py:function: metric(outputs, labels).",
    )
    labels = click.option(
        "--labels",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Labels of the samples in their order: .npy, .json, or .csv with the label in the last column.",
    )
    return metric(labels(command))


def jobs_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --threads and --jobs."""
    jobs = click.option(
        "--jobs",
        "-j",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Number of processes that share the work; the result is the same for any number.",
    )
    with_jobs: Callable[..., Any] = threads_of_processes_option(jobs(command))
    return with_jobs


def state_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --state and --resume."""
    state = click.option(
        "--state", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Keep the results in FILE."
    )
    resume = click.option("--resume", is_flag=True, help="Skip the results that the file of --state already has.")
    return state(resume(command))


def read_labels(path: Path | None) -> Any:
    """Read a file of labels; None for no file.

    Raises:
        ConfigError: The file cannot be read.
    """
    if path is None:
        return None
    try:
        match path.suffix.lower():
            case ".json":
                return json.loads(path.read_text(encoding="utf-8"))
            case ".csv":
                with path.open(newline="", encoding="utf-8") as file:
                    last = [row[-1] for row in csv.reader(file) if row]
                return [int(text) for text in (last if last[0].strip().lstrip("-").isdigit() else last[1:])]
            case _:
                import numpy as np

                return np.load(path, allow_pickle=False)
    except (OSError, ValueError, IndexError) as error:
        raise ConfigError(
            "The labels cannot be read",
            where=f"--labels {path}",
            found=error,
            allowed=".npy, .json, or .csv with an integer in the last column",
            remedy="Write the labels in one of these forms",
        ) from error
