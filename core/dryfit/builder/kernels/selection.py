"""Asks a user's kernel selector about each engine layer of a build, and reports to it what was chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from dryfit.attrs_classes import define
from dryfit.builder.config.kernel_selector import EngineLayer, KernelSelector, SelectedKernel
from dryfit.builder.kernels.timing import KernelTimes
from dryfit.errors import BuildError, DryfitError
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel, Specs


@define(eq=False)
class KernelSelection:
    """The selector of one build.

    Attributes:
        selector: the user's.
        bounds: gives the specs at the smallest, usual and largest shapes; called once the selector is asked.
        rejects_none: whether it is an error that the selector returns none of the kernels.
    """

    selector: KernelSelector
    bounds: Callable[[], Sequence[Specs]]
    rejects_none: bool = False
    _chosen: list[SelectedKernel] = attrs.field(init=False, factory=list)

    def among(self, candidates: Sequence[Kernel], group: LayerGroup) -> Sequence[Kernel]:
        """Return the candidates that the selector names; all where it names none.

        Raises:
            BuildError: The selector fails, names another kernel, or names none where that is an error.
        """
        names = [kernel.name for kernel in candidates]
        try:
            found = list(self.selector.select(EngineLayer(group, *self.bounds()), names))
        except DryfitError:
            raise
        except Exception as error:  # the selector is foreign code: whatever it raises is reported with the layer
            raise BuildError(
                f"The kernel selector failed: {error or type(error).__name__}",
                where=f"layer {group.name!r}",
                remedy="Fix its method `select`",
            ) from error
        unknown = [name for name in found if name not in names]
        if unknown or (self.rejects_none and not found):
            raise BuildError(
                "The kernel selector must return some of the kernels that it is given",
                where=f"layer {group.name!r}",
                found=", ".join(map(str, unknown)) or "none, and the flag REJECT_EMPTY_ALGORITHMS is set",
                allowed=", ".join(names),
                remedy="Return some of these names",
            )
        return [kernel for kernel in candidates if kernel.name in found] or candidates

    def note(self, group: LayerGroup, kernel: Kernel, times: KernelTimes | None) -> None:
        """Remember the kernel of an engine layer.

        Args:
            group: the engine layer.
            kernel: its kernel.
            times: knows its time if it was measured; None where nothing is measured.
        """
        found = None if times is None else times.known(kernel, group)
        self._chosen.append(SelectedKernel(EngineLayer(group, *self.bounds()), kernel.name, found))

    def report(self) -> None:
        """Report all kernels to the selector.

        Raises:
            BuildError: The selector fails.
        """
        try:
            self.selector.report(self._chosen)
        except Exception as error:  # foreign code, as above
            raise BuildError(
                f"The kernel selector failed: {error or type(error).__name__}", remedy="Fix its method `report`"
            ) from error
