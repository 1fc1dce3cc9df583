"""A loadable on a core, with what runs it there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit_dla.loadable import Loadable, LoadableTensor
from dryfit_dla.runtime.memory import Bytes

if TYPE_CHECKING:
    from dryfit_dla.runtime.device import Device


class Module:
    """A loadable that a core has loaded. Made by `Device.load`.

    Attributes:
        device: the core.
        loadable: what was loaded.
    """

    def __init__(self, device: Device, loadable: Loadable, num_threads: int) -> None:
        self.device = device
        self.loadable = loadable
        self._context = loadable.create_engine().create_execution_context(num_threads)

    def __repr__(self) -> str:
        return f"<Module {self.name!r} on {self.device.name}>"

    @property
    def name(self) -> str:
        """The loadable's name."""
        return self.loadable.name

    @property
    def input_attributes(self) -> Sequence[LoadableTensor]:
        """What each input is and how it lies in memory, in the order in which tasks give them."""
        return self.loadable.inputs

    @property
    def output_attributes(self) -> Sequence[LoadableTensor]:
        """What each output is and how it lies in memory, in the order in which tasks give them."""
        return self.loadable.outputs

    def unload(self) -> None:
        """Make room on the core.

        Raises:
            DlaError: a submission that has not ended uses it, or it is not loaded any more.
        """
        self.device.unload(self)

    def execute(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> None:
        """Run it once on raw memory, which is as large as the attributes say or larger; for the core's queue.

        The padding of inputs is not read. That of outputs becomes zero; bytes behind them stay as they are.

        Raises:
            DryfitError: a kernel fails.
        """
        arrays = {tensor.name: tensor.read(data) for tensor, data in zip(self.input_attributes, inputs, strict=True)}
        found = self._context.run(arrays)
        for tensor, data in zip(self.output_attributes, outputs, strict=True):
            tensor.write(data, found[tensor.name])
