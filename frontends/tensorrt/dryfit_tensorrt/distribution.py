"""Distributions for programs that read the version of TensorRT by `importlib.metadata`; nothing is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from pathlib import Path


class SimulatedDistribution(Distribution):
    """A distribution that exists only in this process.

    Args:
        name: of the distribution.
        version: of the simulated package.
    """

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: simulated by dryfit\n"

    def read_text(self, filename: str) -> str | None:
        """Return the metadata; None for every other file."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """Return where a file of the distribution would be; it has none."""
        return Path(__file__).parent.joinpath(path)


def simulated_distributions(
    versions: Mapping[str, str], context: DistributionFinder.Context | None
) -> Iterator[Distribution]:
    """Return the distributions that are searched for, if all of `sys.path` is searched.

    Args:
        versions: name of each distribution that exists to its version.
        context: what is searched for, and where; None for everything.
    """
    found = context or DistributionFinder.Context()
    # pip looks at one folder at a time: to it, nothing is installed that it could remove or replace.
    if "path" not in vars(found):
        for name, version in versions.items():
            if found.name is None or _normalized(found.name) == _normalized(name):
                yield SimulatedDistribution(name, version)


def _normalized(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
