"""Passes and the list that runs them: named, logged, and open to additions before and after each other.

dryfit's own passes are trusted. One that a plugin brings is checked after it ran: what it leaves is a network without
problems, which takes and gives the same as before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from dryfit.attrs_classes import frozen
from dryfit.errors import BuildError, ConfigError, DryfitError, NetworkError, UnknownNameError
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.network.tensor import TensorSpec
from dryfit.network.verify import check
from dryfit.passes.findings import PassFindings

Border = Mapping[tuple[str, str], TensorSpec]
"""("input" or "output", name) to spec, in the network's order."""


def border_of(network: Network) -> Border:
    """The inputs and outputs of a network, as they are now."""
    sides = (("input", network.inputs), ("output", network.outputs))
    return {(side, tensor.name): tensor.spec for side, tensors in sides for tensor in tensors}


def require_same_border(before: Border, after: Border) -> None:
    """Refuse a change of inputs and outputs. An extent may get known that was dynamic.

    Raises:
        NetworkError: says what was and what is.
    """
    changed = [key for key in {**before, **after} if not _fits(before.get(key), after.get(key))]
    if changed or list(before) != list(after):
        raise NetworkError(
            "A pass must keep the inputs and outputs of the network",
            found=_described(after, changed or after),
            allowed=_described(before, changed or before),
            remedy="Fix the pass, or report it to its authors",
        )


def _fits(before: TensorSpec | None, after: TensorSpec | None) -> bool:
    if before is None or after is None or before.dtype is not after.dtype or before.rank != after.rank:
        return False
    return all(extent in (-1, found) for extent, found in zip(before.shape, after.shape, strict=True))


def _described(border: Border, keys: Iterable[tuple[str, str]]) -> str:
    tensors = [(*key, border[key]) for key in keys if key in border]
    return ", ".join(f"{side} {name!r} {spec.dtype.name} {spec.shape}" for side, name, spec in tensors) or "nothing"


PassFunction = Callable[[Network], bool]
"""Rewrites the network in place without changing what it computes, and returns whether it changed anything.

This is all that a plugin's pass has to be."""

logger = logging.getLogger("dryfit.passes")


class Pass(Protocol):
    """A pass of a pipeline: rewrites a network in place without changing what it computes."""

    @property
    def name(self) -> str:
        """Unique in a pipeline, such as `fold-constants`."""

    @property
    def plugin(self) -> str:
        """The plugin that brings it, as `name version (distribution)`; "" for dryfit's own."""

    def run(self, network: Network, before: PassFindings) -> PassFindings:
        """Rewrite the network; returns what this pass found.

        Args:
            network: rewritten in place.
            before: what the passes before it found.
        """


@frozen
class NetworkPass:
    """A function that rewrites networks, with a name; it finds nothing but whether it changed the network.

    Attributes:
        name: unique in a pipeline, such as `fold-constants`.
        function: what it does.
        plugin: the plugin that provides it, as `name version (distribution)`; "" for dryfit's own.
    """

    name: str
    function: PassFunction
    plugin: str = ""

    def __call__(self, network: Network) -> bool:
        """Rewrite the network; returns whether it changed."""
        return self.function(network)

    def run(self, network: Network, before: PassFindings) -> PassFindings:  # noqa: ARG002  as `Pass` has it
        """Rewrite the network; returns whether it changed."""
        return PassFindings(changed=bool(self.function(network)))


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


@frozen
class StageReport:
    """What one pass did.

    Attributes:
        name: of the pass.
        found: what it found, and whether it changed the network.
        layers_before, layers_after: numbers of layers.
        seconds: how long it took.
    """

    name: str
    found: PassFindings
    layers_before: int
    layers_after: int
    seconds: float


@frozen(eq=False)
class PipelineRun:
    """What the passes of a pipeline did.

    Attributes:
        reports: of each pass, in order.
        found: what they found together.
    """

    reports: Sequence[StageReport]
    found: PassFindings


class Pipeline:
    """Passes in the order in which they run; no two have one name."""

    def __init__(self, passes: Iterable[Pass] = ()) -> None:
        self._passes: list[Pass] = []
        for network_pass in passes:
            self.append(network_pass)

    def __iter__(self) -> Iterator[Pass]:
        return iter(self._passes)

    @property
    def names(self) -> list[str]:
        """The passes' names, in order."""
        return [network_pass.name for network_pass in self._passes]

    def append(self, added: Pass) -> None:
        """Add a pass at the end.

        Raises:
            ConfigError: the pipeline has a pass of this name.
        """
        self._insert(len(self._passes), added)

    def insert_before(self, name: str, added: Pass) -> None:
        """Add a pass before the one of this name.

        Raises:
            UnknownNameError: there is none.
            ConfigError: the pipeline has a pass of the new one's name.
        """
        self._insert(self._position(name), added)

    def insert_after(self, name: str, added: Pass) -> None:
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

    def run(self, network: Network, dump_directory: Path | None = None) -> PipelineRun:
        """Run every pass once, in order.

        Args:
            network: rewritten in place.
            dump_directory: where the network's text before the first pass and after each one goes, as files that sort
                in the order of execution; created where it is missing.

        Raises:
            BuildError: a pass fails, or one of a plugin leaves a network that is wrong; names the pass and the plugin.
        """
        self._dump(network, dump_directory, 0, "start")
        reports, found = [], PassFindings()
        for number, network_pass in enumerate(self._passes, 1):
            before, started = len(network), time.perf_counter()
            own = self._run_one(network_pass, network, found, self.names[: number - 1])
            found = found.then(own)
            report = StageReport(network_pass.name, own, before, len(network), time.perf_counter() - started)
            reports.append(report)
            logger.info(
                "%s: %s, %d layers, %.3f s",
                report.name,
                f"{report.layers_before} -> {report.layers_after} layers" if own.changed else "nothing to do",
                report.layers_after,
                report.seconds,
            )
            self._dump(network, dump_directory, number, network_pass.name)
        return PipelineRun(reports, found)

    @staticmethod
    def _run_one(network_pass: Pass, network: Network, before: PassFindings, names: Sequence[str]) -> PassFindings:
        """Run a pass after those of these names, and check what a plugin's pass leaves; returns what it found.

        Raises:
            BuildError: it fails, or leaves a network that is wrong.
        """
        border = border_of(network) if network_pass.plugin else {}
        try:
            found = network_pass.run(network, before)
            network.refresh_shapes()
            if network_pass.plugin:
                check(network)
                require_same_border(border, border_of(network))
        except (Exception, SystemExit) as error:  # a plugin may raise anything: the name belongs to whatever it is
            text = str(error) if isinstance(error, DryfitError) else f"{type(error).__name__}: {error}"
            after = f"; before it ran {', '.join(names)}" if names else ""
            where, remedy = f"pass {network_pass.name!r}", None
            if network_pass.plugin:
                where += f" of {network_pass.plugin}"
                remedy = "Report it to the authors of the plugin, or switch the plugin off"
            raise BuildError("The pass failed", where=where, found=text + after, remedy=remedy) from error
        return found

    def _insert(self, position: int, added: Pass) -> None:
        if added.name in self.names:
            raise ConfigError(
                "Pass names must be unique", where="pass pipeline", found=added.name, remedy="Rename one of the passes"
            )
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
