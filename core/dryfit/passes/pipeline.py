"""Passes and the list that runs them: named, logged, and open to additions before and after each other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs

from dryfit.errors import BuildError, ConfigError, DryfitError, UnknownNameError
from dryfit.network.network import Network
from dryfit.network.printing import network_text

PassFunction = Callable[[Network], bool]
"""Rewrites the network in place without changing what it computes, and returns whether it changed anything."""

logger = logging.getLogger("dryfit.passes")


@attrs.frozen
class NetworkPass:
    """A function that rewrites networks, with a name.

    Attributes:
        name: unique in a pipeline, such as `fold-constants`.
        function: what it does.
    """

    name: str
    function: PassFunction

    def __call__(self, network: Network) -> bool:
        """Rewrite the network; returns whether it changed."""
        return self.function(network)


def network_pass(name: str) -> Callable[[PassFunction], NetworkPass]:
    """Make a function a pass.

    Example:
        >>> @network_pass("rename-first-layer")
        ... def rename_first_layer(network: Network) -> bool:
        ...     network.rename_layer(network.layers[0], "first")
        ...     return True
        >>> rename_first_layer.name
        'rename-first-layer'
    """

    def named(function: PassFunction) -> NetworkPass:
        return NetworkPass(name, function)

    return named


@attrs.frozen
class StageReport:
    """What one pass did.

    Attributes:
        name: of the pass.
        changed: whether it changed the network.
        layers_before, layers_after: numbers of layers.
        seconds: how long it took.
    """

    name: str
    changed: bool
    layers_before: int
    layers_after: int
    seconds: float


class Pipeline:
    """Passes in the order in which they run; no two have one name."""

    def __init__(self, passes: Iterable[NetworkPass] = ()) -> None:
        self._passes: list[NetworkPass] = []
        for network_pass in passes:
            self.append(network_pass)

    def __iter__(self) -> Iterator[NetworkPass]:
        return iter(self._passes)

    @property
    def names(self) -> list[str]:
        """The passes' names, in order."""
        return [network_pass.name for network_pass in self._passes]

    def append(self, added: NetworkPass) -> None:
        """Add a pass at the end.

        Raises:
            ConfigError: the pipeline has a pass of this name.
        """
        self._insert(len(self._passes), added)

    def insert_before(self, name: str, added: NetworkPass) -> None:
        """Add a pass before the one of this name.

        Raises:
            UnknownNameError: there is none.
            ConfigError: the pipeline has a pass of the new one's name.
        """
        self._insert(self._position(name), added)

    def insert_after(self, name: str, added: NetworkPass) -> None:
        """Add a pass after the one of this name.

        Raises:
            UnknownNameError: there is none.
            ConfigError: the pipeline has a pass of the new one's name.
        """
        self._insert(self._position(name) + 1, added)

    def remove(self, name: str) -> None:
        """Take a pass out.

        Raises:
            UnknownNameError: there is none of this name.
        """
        del self._passes[self._position(name)]

    def run(self, network: Network, dump_directory: Path | None = None) -> list[StageReport]:
        """Run every pass once, in order.

        Args:
            network: rewritten in place.
            dump_directory: where the network's text before the first pass and after each one goes, as files that sort
                in the order of execution; created where it is missing.

        Raises:
            BuildError: a pass fails; names the pass.
        """
        self._dump(network, dump_directory, 0, "start")
        reports = []
        for number, network_pass in enumerate(self._passes, 1):
            before, started = len(network), time.perf_counter()
            try:
                changed = network_pass(network)
                network.refresh_shapes()
            except Exception as error:  # a pass may come from a plugin: its name belongs to whatever goes wrong in it
                text = str(error) if isinstance(error, DryfitError) else f"{type(error).__name__}: {error}"
                raise BuildError("A pass failed", where=f"pass {network_pass.name!r}", found=text) from error
            report = StageReport(network_pass.name, changed, before, len(network), time.perf_counter() - started)
            reports.append(report)
            logger.info(
                "%s: %s, %d layers, %.3f s",
                report.name,
                f"{report.layers_before} -> {report.layers_after} layers" if changed else "nothing to do",
                report.layers_after,
                report.seconds,
            )
            self._dump(network, dump_directory, number, network_pass.name)
        return reports

    def _insert(self, position: int, added: NetworkPass) -> None:
        if added.name in self.names:
            raise ConfigError("Two passes have one name", where="pass pipeline", found=added.name)
        self._passes.insert(position, added)

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise UnknownNameError("pass", name, self.names, where="pass pipeline")
        return self.names.index(name)

    @staticmethod
    def _dump(network: Network, directory: Path | None, number: int, name: str) -> None:
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{number:02d}-{name}.txt").write_text(network_text(network) + "\n", encoding="utf-8")
