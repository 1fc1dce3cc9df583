"""What a target's segment compiler is given, and what its loader gives back.

A target that has a compiler turns each of its segments into a program, which is bytes: an engine keeps them, and
`dryfit export loadables` hands them out. The target's loader makes of them what runs here instead.
A target without a compiler is run layer group by layer group, with kernels. It may still have an exporter, which writes
a segment as a file for the device's own runtime; no engine keeps that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

from dryfit.network.data_types import DataType

if TYPE_CHECKING:
    from dryfit.network.network import Network
    from dryfit.target.formats import TensorFormat
    from dryfit.target.kernels import Array, Step
    from dryfit.target.target import Platform


@attrs.frozen
class HostOperation:
    """Layers of a segment that the host runs as one.

    Attributes:
        layers: their names, in an order in which they can run; a dequantization may be in several operations.
        kernel: name of the host kernel.
        precision: computation type.
    """

    layers: Sequence[str]
    kernel: str
    precision: DataType


@attrs.frozen
class HostRun:
    """How the host runs a segment: what it takes to run it again elsewhere and get the same bits.

    Attributes:
        operations: in execution order.
        layouts: name of each tensor that is stored to the name of the `HostLayout` that the host keeps it in.
    """

    operations: Sequence[HostOperation]
    layouts: Mapping[str, str]


@attrs.frozen(eq=False)
class PlannedSegment:
    """One segment as the builder planned it.

    Attributes:
        device: the target's device.
        platform: the variant that is built for.
        software: the version that is built for; empty when the device has one rule set.
        index: number of the segment in the engine, in execution order.
        network: the segment's layers in execution order, each tensor in the type in which it is stored, with all
            constants and weights. Its inputs and outputs are the tensors that cross the segment's border, under the
            names that they have in the engine. It shares weights with the engine: read, do not write.
        input_formats, output_formats: name of an input or output to its format in the device's memory.
        precisions: layer name to computation type.
        pool_limits: pool name to the limit in bytes that the user set, or the device's own; None means no limit.
        pools: pool name to the bytes that it needs, as the engine's report has them. Empty for a compiler.
        host_run: how the host runs it; None for a compiler, whose loader does that.
        origins: name of an input or output to the tensor of the user's network that it is, in whatever type.
    """

    device: str
    platform: Platform
    software: tuple[int, ...]
    index: int
    network: Network
    input_formats: Mapping[str, TensorFormat]
    output_formats: Mapping[str, TensorFormat]
    precisions: Mapping[str, DataType]
    pool_limits: Mapping[str, int | None]
    pools: Mapping[str, int] = attrs.field(factory=dict)
    host_run: HostRun | None = None
    origins: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class SegmentBinding:
    """What a loaded segment is bound to: the memory of one execution context, at one set of shapes.

    Attributes:
        inputs, outputs: name of an input or output to its array, in the order of `PlannedSegment.network`. Arrays have
            the tensor's logical shape (N, C, H, W), whatever the format on the device, and any strides. They stay where
            they are while the steps live. Outputs overlap no inputs; what they hold before a run is undefined.
        num_threads: how many threads run the engine.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    num_threads: int = 1


class LoadedSegment(Protocol):
    """A program that was loaded. All execution contexts of an engine share it.

    A file that nobody vouches for may hold a program beside a segment that it was not made for. One with an attribute
    `tensors`, name of each input and output to the `TensorSpec` that the program was made for, is bound to these alone;
    an extent of -1 may be any. One without it compares the arrays in `bind` itself, and raises where the program would
    read or write beyond them.
    """

    def bind(self, binding: SegmentBinding) -> Sequence[Step | Callable[[], None]]:
        """Return the steps of one run, in order: they compute every output from the inputs. Called for each context.

        Contexts run at the same time in several threads: scratch memory belongs to the steps, not to the segment.
        """
        ...


CompileSegment = Callable[[PlannedSegment], bytes]
"""Makes a program of a segment: the same segment always gives the same bytes. Raises a `BuildError` for one that it
cannot compile."""

ExportSegment = Callable[[PlannedSegment], bytes]
"""Writes a segment that the host runs by kernels as a file for the device's own runtime: the same segment always gives
the same bytes. Raises a `BuildError` for one that it cannot write."""

LoadSegment = Callable[[bytes], LoadedSegment]
"""Makes of a program what can be bound. It may come from a file that nobody vouches for: executes nothing of it, and
raises where it is not what the compiler wrote, every offset and extent in it included."""
