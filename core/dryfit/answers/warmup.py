"""Which kernels are compiled for this machine? `dryfit warmup` compiles all of them ahead of time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs

from dryfit.answers.json_data import Amount
from dryfit.answers.text import Answer, Block, Line, Table
from dryfit.engine.progress import ProgressMonitor, stepped
from dryfit.errors import PluginError
from dryfit.plugins import registry

PHASE = "Compiling kernels"


@attrs.frozen
class WarmFunction:
    """A function that is ready.

    Attributes:
        name: name of the function.
        compiled: False where it was there already.
        seconds: compilation time in seconds.
    """

    name: str
    compiled: bool
    seconds: Amount


@attrs.frozen(repr=False)
class WarmupAnswer(Answer):
    """The kernels that are ready to run on this machine.

    Attributes:
        tier: the instruction set tier that was compiled for.
        tiers: those that this machine has, best first.
        cache: the folder in which compiled functions are kept.
        seconds: how long all of it took.
        functions: in the order in which they became ready.
    """

    COMMAND: ClassVar[str] = "warmup"

    tier: str
    tiers: Sequence[str]
    cache: str
    seconds: Amount
    functions: Sequence[WarmFunction]

    @property
    def compiled(self) -> Sequence[WarmFunction]:
        """The functions that were not there before."""
        return [one for one in self.functions if one.compiled]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        compiled = len(self.compiled)
        there = len(self.functions) - compiled
        return f"{self.tier}: {compiled} functions compiled in {self.seconds:.1f} s, {there} were already compiled"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit warmup` prints."""
        rows = [(one.name, f"{one.seconds:.1f}") for one in self.compiled]
        if rows:
            yield Table("Compiled", ["function", "seconds"], rows)
        yield Line(self.summary_line())
        yield Line(f"Kept in {self.cache}")


def warmup(tier: str | None = None, *, progress: ProgressMonitor | None = None) -> WarmupAnswer:
    """Compile all kernels for this machine's processor and keep them.

    Args:
        tier: the instruction set tier, such as `avx2`; None for the best of this machine.
        progress: is told of each function.

    Raises:
        UnknownNameError: This machine has no such tier.
        PluginError: The host's target compiles nothing.
        ConfigError: The folder cannot be written to.
        ExecutionError: `progress` cancelled the work.
    """
    host = registry.host()
    if host.machine_code is None:
        raise PluginError(
            "The host has no kernels to compile on this machine",
            where=host.device,
            remedy="Skip the warm-up: this host runs without compiled kernels",
        )
    code = host.machine_code(tier)
    start = time.perf_counter()
    functions = [
        WarmFunction(name=one.name, compiled=not one.was_kept, seconds=round(one.seconds, 3))
        for _, one in zip(stepped(code.names, PHASE, progress), code.compile(), strict=True)
    ]
    return WarmupAnswer(
        tier=code.tier,
        tiers=list(code.tiers),
        cache=code.place,
        seconds=round(time.perf_counter() - start, 3),
        functions=functions,
    )
