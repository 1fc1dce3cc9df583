"""Compile all kernels for this machine ahead of time: `dryfit warmup`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

from dryfit.answers.json_data import Amount
from dryfit.answers.text import Answer, Block, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.engine.progress import ProgressMonitor, stepped
from dryfit.errors import PluginError
from dryfit.plugins import registry

PHASE = "Compiling kernels"


@frozen
class WarmFunction:
    """A compiled kernel function.

    Attributes:
        name: name of the function.
        compiled: whether the function was compiled now; False if it was already cached.
        seconds: compilation time in seconds.
    """

    name: str
    compiled: bool
    seconds: Amount


@frozen(repr=False)
class WarmupAnswer(Answer):
    """The kernels that are ready to run on this machine.

    Attributes:
        tier: instruction set tier that the kernels are compiled for.
        tiers: instruction set tiers of this machine, best first.
        cache: folder of compiled functions.
        seconds: total time in seconds.
        functions: functions in order of completion.
    """

    COMMAND: ClassVar[str] = "warmup"

    tier: str
    tiers: Sequence[str]
    cache: str
    seconds: Amount
    functions: Sequence[WarmFunction]

    @property
    def compiled(self) -> Sequence[WarmFunction]:
        """Functions that were not cached before."""
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
    """Compile all kernels for this machine's processor and cache them.

    Args:
        tier: instruction set tier, such as `avx2`; None for the best one of this machine.
        progress: monitor that receives each function.

    Raises:
        UnknownNameError: This machine does not have the tier.
        PluginError: The host's target does not compile kernels.
        ConfigError: The folder is not writable.
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
