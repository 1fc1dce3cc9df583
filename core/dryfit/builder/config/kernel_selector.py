"""A hook to choose among the kernels of each engine layer: the `IAlgorithmSelector` that TensorRT 11 removed."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.attrs_classes import frozen
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Specs


@frozen(eq=False)
class EngineLayer:
    """An engine layer whose kernel is chosen.

    Attributes:
        group: the layers that run as one.
        smallest, usual, largest: spec of each tensor, by name, at the shapes of the first profile.
    """

    group: LayerGroup
    smallest: Specs
    usual: Specs
    largest: Specs


@frozen(eq=False)
class SelectedKernel:
    """The kernel that an engine layer got.

    Attributes:
        layer: the engine layer.
        kernel: name of its kernel.
        microseconds: measured time of a run with one thread; None if it was not measured.
    """

    layer: EngineLayer
    kernel: str
    microseconds: float | None


class KernelSelector:
    """Chooses the kernels of engine layers. Derive from it and set `BuilderConfig.kernel_selector`.

    Each engine layer that is not part of a compiled segment is asked about.

    Example:
        >>> class WithoutWinograd(KernelSelector):
        ...     def select(self, layer, kernels):
        ...         return [name for name in kernels if "winograd" not in name]
        >>> config = BuilderConfig()
        >>> config.kernel_selector = WithoutWinograd()
    """

    def select(self, layer: EngineLayer, kernels: Sequence[str]) -> Sequence[str]:
        """Return those of the kernels among which the fastest is taken. None of them: the builder chooses.

        Args:
            layer: the engine layer.
            kernels: names of the kernels of the highest priority that can run it.
        """
        del layer
        return kernels

    def report(self, choices: Sequence[SelectedKernel]) -> None:
        """Receive the kernel that each engine layer got, once, in the order of the engine."""
        del choices
